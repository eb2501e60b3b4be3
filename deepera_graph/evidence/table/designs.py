"""How a study was made, as rules read it in a text."""

import re
from dataclasses import dataclass

from deepera_graph.text.plain import read_lists

_LISTS = read_lists(__file__, "studies.toml")
Span = tuple[int, int]  # of the text, [start, end)
_FOUND = [
    (name, re.compile(rf"(?<!non-)(?<!non)(?:{said})", re.IGNORECASE))
    for name, said in _LISTS["designs"].items()
]
_AHEAD, _BEHIND, PLANNED, _TITLED = (
    re.compile(_LISTS[one], re.IGNORECASE) for one in ("ahead", "behind", "planned", "titled")
)
_FOUND.append(("trial", _TITLED))
_FAR = 200  # characters that a sentence is read on either side of a design


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A value, and the place of the text that it is taken from, [start, end)."""

    value: str
    span: Span


def find_design(text: str) -> Cell | None:
    """Return how a study was made, in the first words that say so; None if none do."""
    if PLANNED.search(text):
        return None
    for name, pattern in _FOUND:
        for found in pattern.finditer(text):
            if not _is_wanted(text, found):
                return Cell(value=name, span=found.span())
    return None


def _is_wanted(text: str, found: re.Match[str]) -> bool:
    """Tell whether a sentence says of such a study that it is not there yet."""
    begin = max(text.rfind(". ", 0, found.start()), text.rfind("\n", 0, found.start())) + 1
    end = text.find(". ", found.end())
    begin = max(begin, found.start() - _FAR)
    end = min(len(text) if end < 0 else end, found.end() + _FAR)
    before, after = text[begin : found.start()], text[found.end() : end]
    return bool(_AHEAD.search(before) or _BEHIND.match(after))


def is_finer(design: str, other: str) -> bool:
    """Tell whether a design is one of the kind that the other one names more roughly."""
    return design in _LISTS["finer"].get(other, ())
