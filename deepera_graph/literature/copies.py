"""Copies of one text under other names: a file that was downloaded twice, or exported in two forms.

A text tells studies to be one unless titles, first authors, years or ids differ. Of documents a
part is compared with the same part: one that differs tells them apart.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

LEAST_WORDS = 8  # of a text that may tell the same of its copies


class Copied(NamedTuple):
    """A passage as it is compared: its text, and what its source says of itself."""

    text: str  # its `text_key`
    facts: tuple[tuple[str, str], ...]  # title, author, year and ids, each with its kind
    part: object  # of a document; None if it is none


def text_key(text: str) -> str:
    """Return what is compared of a text: white space and case do not count."""
    return " ".join(text.casefold().split())


def join_copies(numbers: Sequence[int], passages: Sequence[Copied]) -> list[int]:
    """Return the studies of passages, of which those with one text are one; from 1 as they come."""
    studies, alike = list(numbers), defaultdict[str, list[int]](list)
    members: dict[int, list[int]] = defaultdict(list)
    for place, (number, one) in enumerate(zip(numbers, passages, strict=True)):
        members[number].append(place)
        if one.text.count(" ") + 1 >= LEAST_WORDS:
            alike[one.text].append(place)
    for places in alike.values():
        shared = [*dict.fromkeys(studies[place] for place in places)]
        said = {one: _Said.of(passages[place] for place in members[one]) for one in shared}
        for first, *others in _part(said):
            for place in (place for other in others for place in members.pop(other)):
                studies[place] = first
                members[first].append(place)
    found: dict[int, int] = {}
    return [found.setdefault(number, len(found) + 1) for number in studies]


class _Said(NamedTuple):
    """What passages of a study say that may tell it from another with the same text."""

    facts: frozenset[tuple[str, str]]
    parts: frozenset[tuple[object, str]]

    @classmethod
    def of(cls, passages: Iterable[Copied]) -> "_Said":
        """Read all of them."""
        ones = list(passages)
        return cls(
            frozenset(fact for one in ones for fact in one.facts),
            frozenset((one.part, one.text) for one in ones if one.part is not None),
        )

    def contradicts(self, other: "_Said") -> bool:
        """Tell whether a fact of one kind, or a part, is another here and there."""
        return _differ(self.facts, other.facts) or _differ(self.parts, other.parts)


def _part(said: dict[int, _Said]) -> list[list[int]]:
    """Return studies with one text in those that are one: all, or those that say the same."""
    if len(said) < 2:
        return []
    if _agree(said, said):
        return [[*said]]
    same: dict[frozenset[tuple[str, str]], list[int]] = defaultdict(list)
    for study, one in said.items():
        same[one.facts].append(study)
    return [ones for ones in same.values() if _agree(ones, said)]


def _agree(studies: Iterable[int], said: dict[int, _Said]) -> bool:
    return not any(said[one].contradicts(said[other]) for one, other in combinations(studies, 2))


def _differ(here: Iterable[tuple[object, str]], there: Iterable[tuple[object, str]]) -> bool:
    """Tell whether of what both name no value is in common."""
    values: dict[object, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for side, pairs in enumerate((here, there)):
        for name, value in pairs:
            values[name][side].add(value)
    return any(one and other and one.isdisjoint(other) for one, other in values.values())
