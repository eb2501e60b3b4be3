"""The cells of a study that rules fill, each with the words that it is taken from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from deepera_graph.evidence.table.effects import FoundCell, SentencePart, Span, find_effect
from deepera_graph.evidence.table.studies import find_design, find_size

RuledColumn = Literal["n", "design", "effect", "unit", "measure", "interval", "p", "direction"]
RULED: tuple[str, ...] = get_args(RuledColumn)
FINDING = ("effect", "unit", "measure", "interval", "p", "direction")  # told in one sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A value of a study.

    Attributes:
        value: What is shown.
        words: The words of the study that it is taken from.
        span: Where they stand in the text, [start, end).
    """

    value: str
    words: str
    span: tuple[int, int]


def read_cells(text: str, decides: Span | None = None) -> dict[str, Cell]:
    """Return the cells that a text tells, by the names of their columns.

    The finding is that of the sentence that *decides*, [start, end), if it tells one.
    """
    finding = find_effect(text, decides)
    parts: dict[str, SentencePart | None] = {"n": find_size(text), "design": find_design(text)}
    if finding is not None:
        parts |= {name: take(finding) for name, take in _OF_FINDING.items()}
    return {
        name: Cell(value=part.value, words=text[part.span[0] : part.span[1]], span=part.span)
        for name, part in parts.items()
        if part is not None
    }


def _take_measure(finding: FoundCell) -> SentencePart | None:
    effect = finding.effect
    return None if effect is None else SentencePart(value=finding.measure, span=effect.span)


def _take_unit(finding: FoundCell) -> SentencePart | None:
    if finding.effect is None or not finding.unit:
        return None
    return SentencePart(value=finding.unit, span=finding.effect.span)


def _take_direction(finding: FoundCell) -> SentencePart | None:
    if not finding.direction:
        return None
    return SentencePart(value=finding.direction, span=finding.sentence)


_OF_FINDING: Mapping[str, Callable[[FoundCell], SentencePart | None]] = {
    "effect": lambda finding: finding.effect,
    "unit": _take_unit,
    "measure": _take_measure,
    "interval": lambda finding: finding.interval,
    "p": lambda finding: finding.p,
    "direction": _take_direction,
}
