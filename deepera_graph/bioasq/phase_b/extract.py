"""Typed answers put together from the snippets by small models, without a key.

Nothing is understood here: yes or no follows the wording of the findings, names are phrases that
look and stand as answers do, and an ideal answer is made of the sentences that people would copy.
Whoever shows such an answer says that it was extracted.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from itertools import product

from deepera_graph.bioasq.phase_b.replies import MOST_CANDIDATES, MOST_WORDS
from deepera_graph.bioasq.phase_b.roles import ExactAnswered, IdealAnswered, TypedAnswerTask
from deepera_graph.bioasq.phase_b.sentences import Told, rank
from deepera_graph.bioasq.phase_b.terms import (
    MOST_TERMS,
    Term,
    find_terms,
    synonyms_in,
    without_parts,
)
from deepera_graph.bioasq.phase_b.yes_no import probability_of_yes
from deepera_graph.bioasq.questions import QuestionType

YES = 0.5  # probability from which yes is said
_BEHIND = 1.5  # log odds behind the best name, beyond which a name is not in a list
_BEHIND_IN_SERIES = 3.0  # the same, of a name that a snippet joins to one of the list
_JOINT = re.compile(r"(?:,\s*(?:(?:and|or)\s)?|\s(?:and|or)\s)\s*")  # in lower case
_EDGE = re.compile(r"\b")
_LEAST_LISTED, _MOST_LISTED = 2, 30
_SENTENCES = {"yesno": 1, "factoid": 2, "list": 2, "summary": 4}  # of an ideal answer


def extract_exact(task: TypedAnswerTask) -> ExactAnswered:
    """Return yes or no, up to five candidates, or a list; without names if none was found."""
    if task["type"] == "yesno":
        return ExactAnswered(names=[_say(task)])
    terms = find_terms(task["question"], task["snippets"])
    return ExactAnswered(names=choose_names(task["type"], terms, task["snippets"]))


def choose_names(kind: QuestionType, terms: Sequence[Term], snippets: Sequence[str]) -> list[str]:
    """Return the best five candidates, or those of a list, each once, of the terms in order.

    Names of which one is a part of the other may both be candidates, but are one item of a list.
    """
    if kind == "factoid":
        return [one.text for one in terms[:MOST_CANDIDATES]]
    apart = without_parts(terms[:MOST_TERMS])[:_MOST_LISTED]
    listed = [
        one.text
        for place, one in enumerate(apart)
        if place < _LEAST_LISTED or one.score >= apart[0].score - _BEHIND
    ]
    beside = _find_joined([one.text for one in apart], snippets)
    joined = [
        one.text
        for one in apart
        if one.text not in listed
        and one.score >= apart[0].score - _BEHIND_IN_SERIES
        and not beside[one.text].isdisjoint(listed)
    ]
    return _without_synonyms([*listed, *joined], snippets)


def _find_joined(names: Sequence[str], snippets: Sequence[str]) -> Mapping[str, Set[str]]:
    """Return by name which others a snippet joins to it by a comma, "and" or "or"."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    lower = {one: one.lower() for one in names}
    any_name = tuple(lower.values())
    for text in map(str.lower, snippets):
        for begin, end in (joint.span() for joint in _JOINT.finditer(text)):
            if text.endswith(any_name, 0, begin) and text.startswith(any_name, end):
                left = (one for one in names if _ends_at(begin, lower[one], text))
                right = [one for one in names if _begins_at(end, lower[one], text)]
                for one, other in product(left, right):
                    found[one].add(other)
                    found[other].add(one)
    return found


def _ends_at(place: int, name: str, text: str) -> bool:
    return text.endswith(name, 0, place) and bool(_EDGE.match(text, place - len(name)))


def _begins_at(place: int, name: str, text: str) -> bool:
    return text.startswith(name, place) and bool(_EDGE.match(text, place + len(name)))


def _without_synonyms(names: Sequence[str], snippets: Sequence[str]) -> list[str]:
    """Leave out a short form whose long form is named too: a synonym counts as a false answer."""
    long_of = synonyms_in(snippets)
    lower = {one.lower() for one in names}
    return [one for one in names if long_of.get(one, "").lower() not in lower or one not in long_of]


def extract_ideal(task: TypedAnswerTask) -> IdealAnswered:
    """Return yes or no if that is asked, and the sentences that say most to the question."""
    ranked = rank(task["question"], task["snippets"])
    exact = task["exact"] or ([_say(task)] if task["type"] == "yesno" else [])
    text = join_sentences(task["type"], ranked, exact) or task["snippets"][0]
    return IdealAnswered(text=text)


def join_sentences(kind: QuestionType, ranked: Sequence[Told], exact: Sequence[str]) -> str:
    """Return an ideal answer of the best sentences, in the order in which the snippets have them.

    *exact* is the exact answer, with which that to a yes/no question begins. Empty without any
    sentence.
    """
    chosen = sorted(ranked[: _SENTENCES[kind]], key=lambda one: one.place)
    texts = [f"{exact[0].capitalize()}."] if chosen and kind == "yesno" and exact else []
    for one in chosen:
        if texts and sum(len(text.split()) for text in (*texts, one.text)) > MOST_WORDS:
            break
        texts.append(one.text)
    return " ".join(texts)


def _say(task: TypedAnswerTask) -> str:
    return "yes" if probability_of_yes(task["question"], task["snippets"]) >= YES else "no"
