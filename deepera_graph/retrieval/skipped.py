"""Records and files that are left out while passages are read: each with its reason."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath
from typing import NamedTuple

OTHER_KIND = "cannot read this kind of file"
_MOST_PLACES = 5  # named of those that are left out for one reason
_LINE = re.compile(r":\d+$")
_VALUE = re.compile(r"'.*'|\".*\"|\d+")


class Skipped(NamedTuple):
    """A record or a file that was left out."""

    place: str  # the file, and the line
    reason: str
    other_kind: str = ""  # the suffix, if it is a file of a kind that is never read
    without_text: bool = False  # whether it is a paper, or a row, that merely has no abstract

    def __str__(self) -> str:
        """Return the place and the reason."""
        return f"{self.place}: {self.reason}"


def describe_other_kinds(skipped: Iterable[Skipped], most: int = 5) -> str:
    """Return ``skipped 2 files (1 .bib, 1 .png): lib.bib, plot.png``, and what would read them."""
    files = list(skipped)
    kinds = sorted(Counter(one.other_kind or PurePath(one.place).suffix for one in files).items())
    counts = ", ".join(f"{n} {kind}" for kind, n in kinds)
    names = ", ".join(one.place for one in files[:most])
    more = f" and {len(files) - most} more" if len(files) > most else ""
    hints = "".join(f"; {one}" for one in dict.fromkeys(one.reason for one in files))
    hints = hints.replace(f"; {OTHER_KIND}", "")
    return f"skipped {len(files)} file{'s' * (len(files) > 1)} ({counts}): {names}{more}{hints}"


class SkippedKind:
    """What was left out for one reason: how many, and the first of them."""

    def __init__(self) -> None:
        self.n = 0
        self.first: list[Skipped] = []

    def add(self, one: Skipped) -> None:
        """Count one."""
        self.n += 1
        if len(self.first) < _MOST_PLACES:
            self.first.append(one)

    def __str__(self) -> str:
        """Return ``6 records without text: lib.csv:3, 4, 6, 7, 9 and 1 more``."""
        one = self.first[0]
        if self.n == 1 and not one.without_text:
            return str(one)
        what = "record" if _LINE.search(one.place) else "file"
        example = "e.g. " if len({each.reason for each in self.first}) > 1 else ""
        why = " without text" if one.without_text else f" ({example}{_shorten(one.reason)})"
        more = f" and {self.n - len(self.first)} more" if self.n > len(self.first) else ""
        return f"{self.n} {what}{'s' * (self.n > 1)}{why}: {self._places()}{more}"

    def _places(self) -> str:
        """Name the file once for all its lines."""
        named, before = list[str](), None
        for place in (one.place for one in self.first):
            file, _, number = place.rpartition(":") if _LINE.search(place) else (place, "", "")
            named.append(number if file == before else place)
            before = file
        return ", ".join(named)


def kind_of(one: Skipped) -> str:
    """Return what records that are left out for the same reason have in common."""
    return f"{bool(_LINE.search(one.place))} {_VALUE.sub('', _shorten(one.reason))}"


def _shorten(reason: str) -> str:
    return reason.partition(";")[0]
