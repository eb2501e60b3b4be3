"""Sides that a text exchanges: of a comparison, or of what one thing does to another."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, pairwise, takewhile
from typing import NamedTuple

from deepera_graph.text.drift.parts import (
    AMOUNT,
    COMPARISONS,
    ENOUGH,
    LESSENING,
    NEAR,
    PATTERNS,
    SETS,
    WORTH,
    ReadClause,
    is_negation,
    list_stems,
    list_words,
)
from deepera_graph.text.words import STOP_WORDS, stem_verb

_CHOICE = COMPARISONS["prefer"][0]
_FEWEST = 2  # words in common that say that a comparison is about the same


class _Relation(NamedTuple):
    """Two sides of a clause: of a comparison, or of what one thing does to another."""

    word: str
    key: str
    sign: int
    left: frozenset[str]
    right: frozenset[str]
    head: frozenset[str]  # what the right side begins with: "girls" of "girls in mathematics"
    measured: frozenset[str] | set[str] = frozenset()  # "conduct" of "conduct better"


def turned_sides(told: Sequence[ReadClause], known: Sequence[ReadClause]) -> Iterator[str]:
    """Yield what a text turns around of the sides of its source."""
    graded = _grade([*told, *known])
    yield from _turned_relations(_comparisons(told, graded), [*_comparisons(known, graded)])
    yield from _exchanged(_actions(told), [*_actions(known)])


def _turned_relations(told: Iterator[_Relation], known: Sequence[_Relation]) -> Iterator[str]:
    for one in told:
        about = one.left | one.right
        shared = [len(about & (other.left | other.right)) for other in known]
        near = [
            other
            for other, n in zip(known, shared, strict=True)
            if _is_on_scale(one, other)
            and n == max(shared)
            and n >= max(ENOUGH * len(about), _FEWEST)
        ]
        if near and all(one.sign * other.sign * _orientation(one, other) < 0 for other in near):
            swapped = " of it the other way round" if one.sign == near[0].sign else ""
            yield f"{one.word}, where the passage has {near[0].word}{swapped}"


def _is_on_scale(one: _Relation, other: _Relation) -> bool:
    """Tell whether two compare the same, also "conducts better" and "higher conductivity"."""
    is_amount = AMOUNT in (one.key, other.key)
    return one.key == other.key or (is_amount and not one.measured.isdisjoint(other.measured))


def _orientation(one: _Relation, other: _Relation) -> int:
    """Return 1 if the sides are the same, -1 if they are exchanged, 0 if that is not clear."""
    both = other.left & other.right
    left, right = other.left - both, other.right - both
    if not right:  # neither says with what it compares: the words must be the same
        return int(not one.right and one.left == other.left)
    if one.right:
        head = other.head - both
        swapped = one.left & head and one.head & left and not one.head & right
        same = one.right & right and not one.left & right and not one.right & left
        return bool(same) - bool(swapped)
    if one.left & right:
        return -1 if right <= one.left and not left <= one.left else 0
    return 1 if one.left and left <= one.left else 0


def _grade(clauses: Sequence[ReadClause]) -> dict[str, str]:
    """Return each "sweet" that a clause has less of, and its "sweeter": what both stand for."""
    graded: dict[str, str] = {}
    for one in clauses:  # "sweeter than", but not "higher in winter than"
        if COMPARISONS.keys().isdisjoint(one.words):
            than = (word for word, after in pairwise(one.words) if after == "than")
            graded |= {word: stem_verb(word) for word in than if word.endswith("er")}
    known = {*(words := [word for one in clauses for word in one.words])}
    for word in {word for less, word in pairwise(words) if less == "less"} - STOP_WORDS:
        base, last = word.rstrip("ey"), word[-1]
        if more := known & {f"{base}{end}er" for end in ("", "i", last, f"{last}i")}:
            graded |= dict.fromkeys([word, *more], word)
    return graded


def _comparisons(clauses: Sequence[ReadClause], graded: Mapping[str, str]) -> Iterator[_Relation]:
    for clause in clauses:
        words = clause.words
        compared = [one for one in words if one in COMPARISONS or graded.get(one, one) != one]
        place = words.index(compared[0]) if len(compared) == 1 else -1
        if place < 0 or any(map(is_negation, words[max(0, place - NEAR) : place])):
            continue  # "not lower" is neither
        key, sign = COMPARISONS.get(word := words[place], ("", 1))
        degree = graded.get("".join(words[place + 1 : place + 2]) if key == AMOUNT else word, "")
        between = PATTERNS["preferred" if key == _CHOICE else "than"]
        left, *right = map(list_words, between.split(clause.text, maxsplit=1))
        sides = [list_stems([x for x in one if x not in graded]) for one in (left, sum(right, ()))]
        measured = list_stems(words[:place][-1:]) if key == WORTH else {degree} - {""}
        if key == AMOUNT and not degree and LESSENING.isdisjoint(words):
            measured = frozenset(one.removesuffix("iv").removesuffix("th") for one in sides[0])
        head = list_stems(_find_head(sum(right, ())))
        yield _Relation(word, degree or key, sign, sides[0], sides[1], head, measured)


def _find_head(words: Sequence[str]) -> Sequence[str]:
    """Return the words up to a preposition, behind those that only lead to them: "with that of"."""
    own = [*dropwhile(lambda word: word in STOP_WORDS, words)]
    return [*takewhile(lambda word: word not in SETS["prepositions"], own)]


def _exchanged(told: Iterator[_Relation], known: Sequence[_Relation]) -> Iterator[str]:
    for one in told:
        same = [other for other in known if other.key == one.key]
        swapped = [
            other
            for other in same
            if one.left & (other.right - one.right)  # "in rats", which both have, says nothing
            and (one.right - other.right) & other.left
            and not one.left & other.left
        ]
        if swapped and len(swapped) == len(same):
            yield f"{one.word}, where the passage has its sides the other way round"


def _actions(clauses: Sequence[ReadClause]) -> Iterator[_Relation]:
    for clause in clauses:
        words = clause.words
        for place, word in enumerate(words):
            if word not in SETS["actions"]:
                continue
            left, right = list_stems(words[:place]), list_stems(words[place + 1 :])
            before, after = words[place - 1] if place else "", "".join(words[place + 1 : place + 2])
            if before in SETS["passive"] and after == "by":
                left, right = right, left
            elif before in SETS["passive"] or not left or not right:
                continue
            yield _Relation(word, stem_verb(word), 1, left, right, right)
