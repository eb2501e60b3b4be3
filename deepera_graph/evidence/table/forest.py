"""Forest plots: effects of one kind with their intervals, a row a study.

No estimate is pooled: rules cannot tell whether outcomes and comparisons of studies are the same.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deepera_graph.evidence.table.rows import StudyRow
from deepera_graph.evidence.table.svg import (
    SMALL,
    WIDTH,
    Figure,
    at,
    cross,
    cut,
    key_of,
    look,
    rule,
    study,
    tag,
    write,
)
from deepera_graph.text.plain import in_one_line, read_lists

LEFT, RIGHT = 132.0, 262.0  # of the axis
_STANDARDISED = "standardised mean difference"
_LISTS = read_lists(__file__)
_ROW, _MARK = 24.0, 9.0
_LEAST_STUDIES = 2
_RATIOS, _DIFFERENCES = (
    {name: kind for kind, names in lists.items() for name in names}
    for lists in (_LISTS["ratios"], _LISTS["differences"])
)
_NAMED_RATIO = re.compile(r"(?:hazard|odds|risk|rate|prevalence|response) ratio")
_NUMBER = re.compile(r"(?:(?<![\d.])-)?\d*\.?\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestEffect:
    """An effect as it is drawn.

    Attributes:
        number: Of the study, from 1.
        row: The study.
        kind: Of the effect, such as ``odds ratio``, with the unit of a difference.
        is_ratio: Whether 1, and not 0, is no effect.
        value: Of the effect; above 0 for a ratio.
        low, high: Of its interval; ``low <= value <= high``.
        said: All three, in the digits of the study.
    """

    number: int
    row: StudyRow
    kind: str
    is_ratio: bool
    value: float
    low: float
    high: float
    said: str


def list_effects(rows: Sequence[StudyRow]) -> list[ForestEffect]:
    """Return the effects that can be drawn: of a known kind, each within its interval."""
    found = (read_effect(number, row) for number, row in enumerate(rows, start=1))
    return [one for one in found if one is not None]


def read_effect(number: int, row: StudyRow) -> ForestEffect | None:
    """Return the effect of a study; None if its kind, value or interval is not known.

    Value and interval have to be of one passage.
    """
    effect, interval, measure = map(row.find, ("effect", "interval", "measure"))
    unit = row.find("unit").value
    name, is_ratio = _name_kind(measure.value)
    values, bounds = _read_numbers(effect.value), _read_numbers(interval.value)[-2:]
    if not name or not values or len(bounds) != 2 or effect.passage != interval.passage:
        return None
    value, (low, high) = values[0], sorted(bounds, key=float)
    if not float(low) <= float(value) <= float(high) or (is_ratio and float(low) <= 0):
        return None
    if not is_ratio and name != _STANDARDISED:  # which has no unit
        name = f"{name}, {in_one_line(unit) or 'no unit'}"
    return ForestEffect(
        number=number,
        row=row,
        kind=name,
        is_ratio=is_ratio,
        value=float(value),
        low=float(low),
        high=float(high),
        said=_with_minus(f"{value} ({low} to {high})"),
    )


def _name_kind(measure: str) -> tuple[str, bool]:
    """Return what an effect is called in the plot, and whether it is a ratio; empty if neither."""
    said = " ".join(measure.lower().replace("’", "'").split())
    ratio = _RATIOS.get(said) or (said if _NAMED_RATIO.fullmatch(said) else "")
    return ratio or _DIFFERENCES.get(said, ""), bool(ratio)


def _read_numbers(said: str) -> list[str]:
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", said.replace("·", "."))
    found: list[str] = _NUMBER.findall(re.sub("[−–—]", "-", plain))
    return found


def draw_forests(rows: Sequence[StudyRow]) -> list[Figure]:
    """Return a forest plot for each kind of effect that two studies have, most studies first."""
    kinds: defaultdict[str, list[ForestEffect]] = defaultdict(list)
    for one in list_effects(rows):
        kinds[one.kind].append(one)
    enough = [group for group in kinds.values() if len(group) >= _LEAST_STUDIES]
    enough.sort(key=len, reverse=True)
    return [_draw_kind(one, len(rows)) for one in enough]


def _draw_kind(effects: list[ForestEffect], n_rows: int) -> Figure:
    effects = sorted(effects, key=lambda one: (one.row.year or "9999", one.number))
    first = effects[0]
    place, ticks = make_axis(effects)
    bottom = _ROW * len(effects) + 4
    null = place(1.0 if first.is_ratio else 0.0)
    parts = [rule(null, 0.0, null, bottom, stroke_dasharray="2 3")]
    parts += [_draw_effect(one, n * _ROW, place) for n, one in enumerate(effects)]
    parts.append(rule(LEFT, bottom, RIGHT, bottom))
    for value in ticks:
        x = place(value)
        parts += [
            rule(x, bottom, x, bottom + 4),
            write(
                x,
                bottom + 16,
                _with_minus(f"{round(value, 4):g}"),
                text_anchor="middle",
                font_size=SMALL,
            ),
        ]
    no_effect = "1" if first.is_ratio else "0"
    scale = " (log scale)" if first.is_ratio else ""
    said = f"{first.kind}{scale}; {no_effect}: no difference"
    parts.append(
        write((LEFT + RIGHT) / 2, bottom + 34, said, text_anchor="middle", font_size=SMALL)
    )
    y = bottom + 46
    for words, shape in key_of([one.row for one in effects]):
        parts += [at(shape, y), write(20.0, y + 11, words, font_size=SMALL)]
        y += 18
    rest = n_rows - len(effects)
    tells = "other study tells" if rest == 1 else "other studies tell"
    others = f" {rest} {tells} no {first.kind} with an interval." if rest else ""
    return Figure(
        title=f"Forest plot: {first.kind}",
        about="; ".join(f"{one.number}: {one.said}" for one in effects),
        height=y,
        body="".join(parts),
        notes=(f"No pooled estimate: outcomes and comparisons may differ.{others}",),
    )


def make_axis(
    effects: Sequence[ForestEffect],
) -> tuple[Callable[[float], float], list[float]]:
    """Return the function from a value to its place on the axis, and the values of its ticks.

    All intervals and no effect lie on the axis, which is logarithmic for ratios.
    """
    is_ratio = effects[0].is_ratio
    null = 1.0 if is_ratio else 0.0
    least = min(null, *(one.low for one in effects))
    most = max(null, *(one.high for one in effects))
    if is_ratio:
        least, most = math.log(least), math.log(most)
    edge = (most - least) * 0.04 or 1.0
    least, most = least - edge, most + edge

    def place(value: float) -> float:
        on_axis = math.log(value) if is_ratio else value
        return LEFT + (RIGHT - LEFT) * (on_axis - least) / (most - least)

    if is_ratio:
        return place, _ratio_ticks(math.exp(least), math.exp(most))
    return place, _ticks(least, most)


def _ratio_ticks(least: float, most: float) -> list[float]:
    """Return 1 and a few round ratios between two."""
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    for steps in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        found = [n * 10.0**one for one in decades for n in steps if least <= n * 10.0**one <= most]
        if len(found) <= 5:
            return found
    return [found[0], 1.0, found[-1]] if 1.0 not in (found[0], found[-1]) else [found[0], found[-1]]


def _ticks(least: float, most: float) -> list[float]:
    """Return 0 and a few round numbers between two."""
    step = 10.0 ** math.floor(math.log10(most - least))
    step = next(one * step for one in (0.2, 0.5, 1, 2, 5) if (most - least) / (one * step) <= 5)
    first = math.ceil(least / step)
    return [n * step for n in range(first, math.floor(most / step) + 1)]


def _draw_effect(one: ForestEffect, y: float, place: Callable[[float], float]) -> str:
    middle, x = y + _ROW / 2, place(one.value)
    half = _MARK / 2
    year = f" {one.row.year}" if one.row.year else ""
    room = LEFT - 8
    name = f"{one.number} {in_one_line(one.row.name)}"
    name = cut(name, room - len(year) * 5.5, SMALL) + year
    return study(
        one.number,
        one.row,
        one.said,
        write(0.0, middle + 4, name, room=room + 8, font_size=SMALL),
        rule(place(one.low), middle, place(one.high), middle),
        *(rule(place(end), middle - 3, place(end), middle + 3) for end in (one.low, one.high)),
        tag("rect", x=x - half, y=middle - half, width=_MARK, height=_MARK, **look(one.row)),
        cross(one.row, x - half, middle - half, _MARK, _MARK),
        write(WIDTH, middle + 4, one.said, text_anchor="end", font_size=SMALL),
    )


def _with_minus(said: str) -> str:
    return said.replace("-", "−")
