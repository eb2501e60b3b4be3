"""Typed answers put together from the snippets by rules and small linear models, without a key.

Nothing is understood here: yes or no follows the wording of the findings, names are phrases of the
right form that the snippets repeat, and an ideal answer is the question restated with its answer
and the sentence that adds most. Whoever shows such an answer says that it was extracted.
"""

from collections.abc import Sequence

from deepera_graph.bioasq.phase_b.local.restate import restate
from deepera_graph.bioasq.phase_b.local.sentences import rank
from deepera_graph.bioasq.phase_b.local.terms import find_terms, synonyms_in
from deepera_graph.bioasq.phase_b.local.yes_no import probability_of_yes
from deepera_graph.bioasq.phase_b.replies import MOST_CANDIDATES, MOST_WORDS
from deepera_graph.bioasq.phase_b.roles import AnswerTask, ExactAnswered, IdealAnswered
from deepera_graph.text.questions import asks_yes_or_no

YES = 0.5  # probability from which yes is said
_OF_BEST = 0.75  # of the score of the best term, from which a term is in a list
_OF_BEST_ALIKE = 0.5  # the same for one that is told as the best one is
_MOST_LISTED = 10
_SENTENCES = {"factoid": 2, "list": 3, "summary": 2}  # of an ideal answer


def extract_exact(task: AnswerTask) -> ExactAnswered:
    """Return yes or no, up to five candidates, or a list; without names if none was found."""
    if task["type"] == "yesno":
        return ExactAnswered(names=[_say(task)])
    terms = find_terms(task["question"], task["snippets"])
    if task["type"] == "factoid":
        return ExactAnswered(names=[one.text for one in terms[:MOST_CANDIDATES]])
    best = terms[0].score if terms else 0.0
    listed = [
        one.text
        for one in terms
        if one.score >= best * (_OF_BEST_ALIKE if one.is_alike else _OF_BEST)
    ]
    return ExactAnswered(names=_without_synonyms(listed[:_MOST_LISTED], task["snippets"]))


def _without_synonyms(names: Sequence[str], snippets: Sequence[str]) -> list[str]:
    """Leave out a short form whose long form is named too: a synonym counts as a false answer."""
    long_of = synonyms_in(snippets)
    lower = {one.lower() for one in names}
    return [one for one in names if long_of.get(one, "").lower() not in lower or one not in long_of]


def extract_ideal(task: AnswerTask) -> IdealAnswered:
    """Return the question restated with its answer, and the sentences that say most to it."""
    asks = task["type"] == "yesno" or (
        task["type"] == "summary" and asks_yes_or_no(task["question"])
    )
    if not asks:
        return IdealAnswered(text=" ".join(_choose_sentences(task, _SENTENCES[task["type"]])))
    said = task["exact"] or [_say(task)]
    claim = restate(task["question"], "yes" if said[0] == "yes" else "no")
    return IdealAnswered(text=" ".join([claim, *_choose_sentences(task, 1)]))


def _say(task: AnswerTask) -> str:
    return "yes" if probability_of_yes(task["question"], task["snippets"]) >= YES else "no"


def _choose_sentences(task: AnswerTask, most: int) -> list[str]:
    """Return the best sentences in their order, as few as name the exact answer if there is one."""
    ranked = rank(task["question"], task["snippets"])
    chosen = _naming(ranked, task)[:most] or ranked[:most]
    texts: list[str] = []
    for _, _, text in sorted(chosen, key=lambda one: one[1]):
        if texts and sum(len(one.split()) for one in (*texts, text)) > MOST_WORDS:
            break
        texts.append(text)
    return texts or list(task["snippets"][:1])


def _naming(
    ranked: Sequence[tuple[float, int, str]], task: AnswerTask
) -> list[tuple[float, int, str]]:
    """Return the sentences that name the best candidate, or the names of a list, each once."""
    names = {"factoid": (task["exact"] or [])[:1], "list": task["exact"] or []}.get(
        task["type"], []
    )
    left = {one.lower() for one in names}
    chosen = []
    for one in ranked:
        named = {name for name in left if name in one[2].lower()}
        if named:
            chosen.append(one)
            left -= named
    return chosen
