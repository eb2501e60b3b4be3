"""Counterfactual lessons: what a question asks about gives way to something else that is near it.

In the question alone, its evidence no longer answers; in the evidence alone, neither; in both, it
does. Where evidence names the thing in other words, the question alone is changed. So a reader
learns to look for what is asked, and not for the subject at large: all of these texts share it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepera_graph.lab.training.lessons.groups import Group, Lesson, draw
from deepera_graph.text.words import STOP_WORDS

Embed = Callable[
    [Sequence[str]], NDArray[np.float32]
]  # vectors of length 1, shape (n_texts, n_dimensions)
Span = tuple[int, int]

MOST_COMMON = 0.01  # share of the texts that a word may be in to name something particular
LEAST_LETTERS, MOST_WORDS = 4, 4  # of a term
NEAREST, FARTHEST = 8, 120  # places among the neighbours of a term; those before may mean the same
SHARE_IN_EVIDENCE = 0.6  # of exchanges, where it can be so, of a term that the evidence names
SHARE_IN_OTHERS = 0.7  # of wrong passages in which the term is exchanged, too
MAX_CHANGED, MAX_WRONG = 2, 3  # passages of a group
_TRIES = 8
_PARTS = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9'‐-―/+.-]*[A-Za-z0-9])?|\S")
_LONG_WORDS = re.compile(r"[a-z]{4,}")
_ENDINGS = ("s", "ing", "ed")
# They ask, and say how two things are related; they do not say what these are.
_ASKING_TEXT = """
    affect affects associate associated association better cause causes change changes compared
    contribute decrease decreases depend depends determine determines differ difference differences
    effect effective effects good help helps higher impact important improve improves increase
    increases influence influences less lower make makes more most necessary need new possible
    predict predicts reduce reduces related relation role safe same useful using worse
    """
_NAMES_NOTHING = STOP_WORDS.union(_ASKING_TEXT.split())


class _Exchange(NamedTuple):
    question: str
    old: str
    new: str


def find_runs(question: str) -> list[Span]:
    """Return where runs of words stand that name something, as ``colorectal cancer``."""
    found: list[Span] = []
    follows = False
    for part in _PARTS.finditer(question):
        names = _names_something(part.group())
        if names and follows:
            found[-1] = (found[-1][0], part.end())
        elif names:
            found.append(part.span())
        follows = names
    return [(start, end) for start, end in found if end - start >= LEAST_LETTERS]


def find_words(question: str) -> list[Span]:
    """Return where single words stand that name something."""
    return [
        part.span()
        for part in _PARTS.finditer(question)
        if _names_something(part.group())
        and part.group()[0].isalpha()
        and len(part.group()) >= LEAST_LETTERS
    ]


def _names_something(part: str) -> bool:
    return part[0].isalnum() and part.lower() not in _NAMES_NOTHING


def put(text: str, old: str, new: str) -> str:
    """Return the text with one term in the place of another, wherever it stands as a whole."""

    def like(found: re.Match[str]) -> str:
        return new[0].upper() + new[1:] if found.group()[0].isupper() else new

    return _find_whole(old).sub(like, text)


def _find_whole(term: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(term)}(?!\w)", re.IGNORECASE)


class _Terms:
    """The terms of all questions, and which of them are near another."""

    def __init__(
        self, questions: Iterable[str], find: Callable[[str], list[Span]], embed: Embed
    ) -> None:
        self.find = find
        named = {_lower(asked[a:b]) for asked in questions for a, b in find(asked)}
        self._terms = sorted(one for one in named if len(one.split()) <= MOST_WORDS)
        self._places = {term: place for place, term in enumerate(self._terms)}
        self._vectors = embed(self._terms)

    def draw_near(self, term: str, chance: Random) -> str | None:
        """Return one that is near, but shares no long word and has the same form; None if rare."""
        place = self._places.get(_lower(term))
        if place is None:
            return None
        order = np.argsort(-(self._vectors @ self._vectors[place]), kind="stable")
        near = order[NEAREST:FARTHEST].tolist()
        for _ in range(_TRIES if near else 0):
            one: str = self._terms[chance.choice(near)]
            if _is_like(one, term):
                return one
        return None


def _lower(term: str) -> str:
    """Return a term with small letters, but for abbreviations and names with capitals inside."""
    return term.lower() if term[1:].islower() or not term[1:] else term


def _is_like(one: str, other: str) -> bool:
    shared = set(_LONG_WORDS.findall(one.lower())) & set(_LONG_WORDS.findall(other.lower()))
    lengths = abs(len(one.split()) - len(other.split()))
    forms = all(one.endswith(ending) == other.endswith(ending) for ending in _ENDINGS)
    return not shared and lengths <= 1 and (forms or " " in f"{one}{other}")


def teach_counterfactuals(
    groups: Sequence[Group], embed: Embed, chance: Random, share: float = 0.8
) -> Iterator[Group]:
    """Yield two groups for a share of those with evidence: of another question, and of its own.

    *embed* tells which terms are near each other.
    """
    texts = {one.text for one in chain.from_iterable(groups)}
    counts = Counter(word for text in texts for word in set(_LONG_WORDS.findall(text.lower())))

    def is_particular(term: str) -> bool:
        seen = [counts[word] for word in _LONG_WORDS.findall(term.lower())]
        return bool(seen) and min(seen) <= MOST_COMMON * len(texts)

    questions = sorted({group[0].question for group in groups if group})
    kinds = [_Terms(questions, find, embed) for find in (find_runs, find_words)]
    for group in groups:
        evidence = [one for one in group if one.label]
        if evidence and chance.random() < share:
            found = _exchange(
                group[0].question, evidence, chance.choice(kinds), is_particular, chance
            )
            if found is not None:
                yield from _tell_apart(group, found, chance)


def _exchange(
    question: str,
    evidence: Sequence[Lesson],
    terms: _Terms,
    is_particular: Callable[[str], bool],
    chance: Random,
) -> _Exchange | None:
    spans = [(a, b) for a, b in terms.find(question) if is_particular(question[a:b])]
    named = [
        (a, b) for a, b in spans
        if any(_find_whole(question[a:b]).search(one.text) for one in evidence)
    ]  # fmt: skip
    if not spans:
        return None
    start, end = chance.choice(named if named and chance.random() < SHARE_IN_EVIDENCE else spans)
    new = terms.draw_near(question[start:end], chance)
    if new is None:
        return None
    old = question[start:end]
    return _Exchange(put(question, old, new), old, new)


def _tell_apart(group: Group, found: _Exchange, chance: Random) -> Iterator[Group]:
    own = group[0].question
    evidence = [one for one in group if one.label]
    wrong = [one for one in group if not one.label]
    chosen = draw(evidence, MAX_CHANGED, chance)
    changed = [(one, put(one.text, found.old, found.new)) for one in chosen]
    changed = [(one, text) for one, text in changed if text != one.text]
    right = [Lesson(found.question, text, 1, one.directions) for one, text in changed]
    unchanged = [Lesson(found.question, one.text, 0) for one in chosen]
    others = [
        put(one.text, found.old, found.new) if chance.random() < SHARE_IN_OTHERS else one.text
        for one in draw(wrong, MAX_WRONG, chance)
    ]
    beside = [Lesson(found.question, text, 0) for text in (others if right else others[:1])]
    yield (*right, *unchanged, *beside)
    about_other = [Lesson(own, text, 0) for _, text in changed]
    n_wrong = MAX_CHANGED if about_other else MAX_WRONG
    yield (chance.choice(evidence), *about_other, *draw(wrong, n_wrong, chance))
