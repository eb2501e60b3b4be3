"""Names and numbers in the snippets that may answer a factoid or a list question.

Every run of up to six words that could be a name is a candidate. Decision trees weigh how many
snippets name it, how near it stands to the words of the question, what stands before and after it,
and whether its form is that of what is asked for: an enzyme, a drug, a disease, a number with a
unit. ``benchmarks/bioasq/extractive.py`` fits them on questions that people answered.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np

from deepera_graph.bioasq.phase_b import compile_lines, read_weights
from deepera_graph.bioasq.phase_b.mentions import KINDS, LONGEST, Doubles, Mentions, Places
from deepera_graph.bioasq.questions import QuestionType
from deepera_graph.bioasq.settings import MAX_CANDIDATES
from deepera_graph.judges.trained.trees import Trees
from deepera_graph.text.plain import read_lists
from deepera_graph.text.words import rarity, stems

_TERMS: Final = read_lists(__file__, "words.toml")["terms"]
_NUMBER: Final = compile_lines(_TERMS["number"], flags=0)
_ASKS_NUMBER: Final = compile_lines(_TERMS["asks_number"])
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_ASKS_YEAR: Final = re.compile(r"^(?:when\b|(?:in )?(?:which|what) year)", re.IGNORECASE)
_HEAD: Final = re.compile(
    r"\b(?:which|what|name|list)\b(?:\s+(?:is|are|was|were)\s+the)?\s+(?:the\s+)?"
    r"((?:[\w-]+\s+){0,5}?[\w-]+)",
    re.IGNORECASE,
)
_FORMS: Final = {  # of what a question asks for, how names of it look
    compile_lines(one["asked"], flags=0): compile_lines(
        one["named"], flags=re.IGNORECASE if one["ignores_case"] else 0
    )
    for one in _TERMS["forms"]
}
MOST_TERMS: Final = 60  # that are put in order
MOST_READ: Final = 50  # snippets; of more the first are read


class Term(NamedTuple):
    """A name or number that may answer, as it is written, and the log odds that it does."""

    score: float
    text: str


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a question."""

    names: Sequence[str]  # as each is written most often
    features: Doubles  # of each, shape (n, n_features), in the order of `list_features`


def find_terms(question: str, snippets: Sequence[str]) -> list[Term]:
    """Return what best answers a question, the best first; each once, whatever its case."""
    return order_terms(find_candidates(question, snippets), _shipped())


def order_terms(found: Candidates, trees: Trees) -> list[Term]:
    """Return the best candidates as trees weigh them, the best first; `MOST_TERMS`, and ties."""
    scores = trees.predict(found.features)
    last = len(scores) - min(len(scores), MOST_TERMS)
    least = np.partition(scores, last)[last] if len(scores) else 0.0
    best = np.flatnonzero(scores >= least).tolist()
    terms = [Term(float(scores[one]), found.names[one]) for one in best]
    return sorted(terms, key=lambda one: (-one.score, one.text.lower()))


@lru_cache(maxsize=1)
def _shipped() -> Trees:
    return Trees.from_dict(read_weights()["names"]["trees"])


def find_candidates(question: str, snippets: Sequence[str]) -> Candidates:
    """Return the candidates of a question in the order in which the snippets name them."""
    asked = {one: rarity(one) for one in stems(question)}
    found = Mentions.read(snippets[:MOST_READ], asked)
    if _ASKS_NUMBER.search(question):
        years = [bool(_YEAR.fullmatch(one)) for one in found.texts]
        found = found.of(np.flatnonzero(~np.array(years, np.bool_)))
    if not found.texts:
        return Candidates((), np.zeros((0, len(list_features()))))
    name, first = _group(found.texts)
    form, n_read = _form_asked(question), min(len(snippets), MOST_READ)
    written = found.of(first)
    table = np.hstack(
        [
            _describe_names(written, form),
            _count_longer(found, name, written)[:, None],
            _describe_spread(found.snippet, name, n_read),
            _describe_places(found.describe_places(np.array([*asked.values()])), name),
        ]
    )
    beside = table[:, [list_features().index(one) for one in _COMPARED]]
    best = np.maximum(beside.max(axis=0), 1e-9)
    asks = np.tile(_describe_question(question, form), (len(table), 1))
    return Candidates(written.texts, np.hstack([table, beside / best, asks]))


def _group(texts: Sequence[str]) -> tuple[Places, Places]:
    """Return the name of each text, whatever its case, and the text in which each is written."""
    # That is the first of the form that is there most often.
    forms, names = dict[str, int](), dict[str, int]()
    form = np.array([forms.setdefault(one, len(forms)) for one in texts])
    keys = (" ".join(one.lower().split()) for one in forms)
    name = [names.setdefault(one, len(names)) for one in keys]
    first = np.empty(len(forms), np.int64)
    first[form[::-1]] = np.arange(len(texts))[::-1]  # of several the last stays
    count = np.bincount(form)
    best: dict[int, str] = {}
    for number, text in zip(name, forms, strict=True):
        other = best.setdefault(number, text)
        if other is not text:
            best[number] = max(
                (other, text),
                key=lambda one: (count[forms[one]], -sum(map(str.isupper, one)), one),
            )
    return np.array(name)[form], first[[forms[one] for one in best.values()]]


def _count_longer(found: Mentions, name: Places, written: Mentions) -> Doubles:
    """Return how often the commonest name that has one word more is there, beside each name."""
    count = np.bincount(name)
    names = np.full((len(found.tokens.asked) + 1, LONGEST + 1), -1)
    names[found.begin, found.end - found.begin] = name
    longer, n = np.zeros(len(count)), len(found.tokens.is_apart)
    apart = np.append(np.flatnonzero(found.tokens.is_apart), n)  # nothing is behind the last
    after_first = apart[np.searchsorted(apart, written.begin, "right")]
    last = apart[np.searchsorted(apart, written.end, "left") - 1]
    for begin, end in ((after_first, written.end), (written.begin, last)):
        part = names[begin, np.maximum(end - begin, 0)]
        np.maximum.at(longer, part[part >= 0], count[part >= 0])
    return longer / count


_OF_NAME: Final = (
    *("words", "characters", "rarest", "commonest", "first word", "last word"),
    *("asked", "verbs and the like", "stop words", "ends in a general word"),
    *("capitals", "begins with a capital", "digits", "is a quantity", "has the form", "longer"),
)


def _describe_names(written: Mentions, form: re.Pattern[str] | None) -> Doubles:
    tokens, first, last = written.tokens, written.begin, written.end - 1
    n_words = written.end - written.begin
    n_characters = np.array([*map(len, written.texts)])
    inside = np.minimum(first[:, None] + np.arange(LONGEST), last[:, None])
    rare = tokens.rarity[inside]
    quantities = [one[0].isdigit() and bool(_NUMBER.fullmatch(one)) for one in written.texts]
    has_form: Any = -1
    if form is not None:
        is_of_words = " " in form.pattern or any("_" in one for one in written.texts)
        has_form = (
            [bool(form.search(one)) for one in written.texts] if is_of_words else written.have(form)
        )
    return np.column_stack(
        [
            *(n_words, n_characters, rare.max(axis=1), rare.min(axis=1)),
            *(tokens.rarity[first], tokens.rarity[last]),
            *(written.sum(tokens.asked >= 0) / n_words, written.sum(tokens.is_breaker) / n_words),
            *(written.sum(tokens.is_stop), tokens.is_general[last]),
            *(written.sum(tokens.capitals) / n_characters, tokens.is_capital[first]),
            *(written.sum(tokens.has_digit) > 0, quantities),
            np.broadcast_to(has_form, len(n_words)),
        ]
    )


_OF_SPREAD: Final = ("mentions", "snippets", "share of snippets", "all snippets", "first snippet")


def _describe_spread(snippet: Places, name: Places, n_read: int) -> Doubles:
    count = np.bincount(name)
    is_in = np.zeros((len(count), n_read), np.bool_)
    is_in[name, snippet] = True
    n_having = is_in.sum(axis=1)
    everywhere = np.full(len(count), n_read)
    return np.column_stack(
        [np.log1p(count), n_having, n_having / n_read, everywhere, is_in.argmax(axis=1)]
    )


_OF_PLACE: Final = (
    *("near", "place", "open before", "open after", "in brackets"),
    *(f"{kind} {side}" for side in ("before", "after") for kind in KINDS),
    *("named beside", "named beside, most", "close, most"),
)


def _describe_places(places: Doubles, name: Places) -> Doubles:
    """Return the mean over all mentions, and the most of some."""
    count = np.bincount(name)
    sums = [np.bincount(name, column) for column in places.T[:-1]]
    most = np.zeros((len(count), 2))
    np.maximum.at(most, name, places[:, -2:])
    return np.hstack([np.column_stack(sums) / count[:, None], most])


_COMPARED: Final = ("mentions", "close, most")  # beside the best of all candidates
_OF_QUESTION: Final = ("asks for several", "asks for a number", "asks for a year", "asks for")
_SEVERAL: Final = re.compile(r"\b(?:are|were|list|all)\b", re.IGNORECASE)


def _describe_question(question: str, form: re.Pattern[str] | None) -> list[float]:
    return [
        bool(_SEVERAL.search(question)),
        bool(_ASKS_NUMBER.search(question)),
        bool(_ASKS_YEAR.search(question.strip())),
        -1 if form is None else [*_FORMS.values()].index(form),
    ]


def list_features() -> tuple[str, ...]:
    """Return the names of the features of a candidate, in their order."""
    compared = (f"{one} beside the best" for one in _COMPARED)
    return (*_OF_NAME, *_OF_SPREAD, *_OF_PLACE, *compared, *_OF_QUESTION)


def _form_asked(question: str) -> re.Pattern[str] | None:
    """Return how names look of the kind that a question asks for; None if that is not known."""
    found = _HEAD.search(question)
    head = (found[1] if found else question).lower()
    for kind, form in _FORMS.items():
        if kind.search(head):
            return form
    return next((form for kind, form in _FORMS.items() if kind.search(question.lower())), None)


def without_parts(ranked: Sequence[Term]) -> list[Term]:
    """Leave out a term whose words are all in a better one, or that has all words of a better."""
    kept: list[tuple[frozenset[str], Term]] = []
    for one in ranked:
        own = frozenset(one.text.lower().split())
        if not any(own <= other or other <= own for other, _ in kept):
            kept.append((own, one))
    return [one for _, one in kept]


def synonyms_in(snippets: Sequence[str]) -> Mapping[str, str]:
    """Return short forms with the long ones before them: ``{"TNF": "tumor necrosis factor"}``."""
    found: dict[str, str] = {}
    for snippet in snippets:
        for match in re.finditer(r"\(([A-Z][A-Za-z0-9-]{1,9})\)", snippet):
            short = match[1]
            before = snippet[: match.start()].split()[-len(short) :]
            initials = "".join(one[0] for one in before if one).lower()
            letters = re.sub(r"[^a-z]", "", short.lower())
            for skip in range(len(before)):
                if letters and initials[skip:] == letters:
                    found[short] = " ".join(before[skip:])
                    break
    return found


_BEHIND = 1.5  # log odds behind the best name, beyond which a name is not in a list
_BEHIND_IN_SERIES = 3.0  # the same, of a name that a snippet joins to one of the list
_JOINT = re.compile(r"(?:,\s*(?:(?:and|or)\s)?|\s(?:and|or)\s)\s*")  # in lower case
_EDGE = re.compile(r"\b")
_LEAST_LISTED, _MOST_LISTED = 2, 30


def choose_names(kind: QuestionType, terms: Sequence[Term], snippets: Sequence[str]) -> list[str]:
    """Return the best five candidates, or those of a list, each once, of the terms in order."""
    # Names of which one is a part of the other may both be candidates, but are one item of a list.
    if kind == "factoid":
        return [one.text for one in terms[:MAX_CANDIDATES]]
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
