"""The map of a table: a harvest plot, and forest plots, for a page or as a file.

The harvest plot has every study once, by direction, design, size and year. The forest plots have
effects of one kind with their intervals, a row a study; no estimate is pooled: rules cannot tell
whether outcomes and comparisons of studies are the same.

Source: Ogilvie et al. 2008, The harvest plot: a method for synthesising evidence about the
differential effects of interventions, BMC Medical Research Methodology 8:8.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from deepera_graph.errors import InputError
from deepera_graph.evidence.table.designs import find_design
from deepera_graph.evidence.table.rows import StudyRow
from deepera_graph.evidence.table.svg import (
    SMALL,
    WIDTH,
    Figure,
    clean,
    cross,
    cut,
    describe,
    draw_list,
    inline,
    join,
    key_of,
    label,
    look,
    rule,
    study,
    tag,
    wrap,
    write,
)
from deepera_graph.evidence.table.table import EvidenceTable
from deepera_graph.schema import POSSIBLE
from deepera_graph.text.plain import count, in_one_line, read_lists

Numbered = tuple[int, StudyRow]
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "contradicts": ("contradicts",),
    "no difference": ("no_difference",),
    "mixed or unclear": ("mixed", "unclear", ""),
    "supports": ("supports",),
}
_OPTIONAL = "mixed or unclear"
_OTHER = "Design not stated"
DESIGNS: Mapping[str, tuple[str, ...]] = {
    "Reviews": ("meta-analysis", "systematic review", "review"),
    "Trials": ("crossover trial", "cluster-randomised trial", "randomised trial", "trial"),
    "Observational studies": (
        "case-control", "cohort", "cross-sectional", "before-after", "time series", "case report",
        "observational",
    ),
    "Experiments": (
        "field experiment", "laboratory experiment", "animal experiment", "experiment",
    ),
}  # fmt: skip
_PITCH, _BAR = 21.0, 14.0
_LEAST, _MOST, _DECADES = 5.0, 40.0, 5  # heights of n = 1 and of n = 100 000 or more
_LINE = 74.0  # number, bar and year of a line of studies
_SHOWN = (10, 1000, 100_000)
_FILLED = {"fill": "currentColor", "stroke": "currentColor"}
_COUNT = re.compile(r"\d[\d,\s\u00a0\u202f]*")
LEFT, RIGHT = 132.0, 262.0  # of the axis
_STANDARDISED = "standardised mean difference"
_LISTS = read_lists(__file__)
_ROW, _MARK = 24.0, 9.0
_EDGE = 0.06  # of the axis, beyond either end of all intervals: a tick that is near gets on it
_GAP = (
    20.0  # between the name of a study and the axis; letters may be wider than they are taken for
)
_LEAST_STUDIES = 2
_RATIOS, _DIFFERENCES = (
    {name: kind for kind, names in lists.items() for name in names}
    for lists in (_LISTS["ratios"], _LISTS["differences"])
)
_NAMED_RATIO = re.compile(r"(?:hazard|odds|risk|rate|prevalence|response) ratio")
_NUMBER = re.compile(r"(?:(?<![\d.])-)?\d*\.?\d+")


def draw_map(table: EvidenceTable) -> str:
    """Return a file of SVG: the studies of a table as a harvest plot, and forest plots of effects.

    Raises:
        InputError: No study says anything to the question, as if it cannot be answered yes or no.
    """
    figures = _draw(table)
    if table.rows and not figures:
        raise InputError(
            "a map needs a question of yes or no, or a claim, and a judge that tells directions; "
            f"no study has one for {table.question!r:.200}"
        )
    key = [describe(number, row) for number, row in enumerate(table.rows, start=1)]
    return join(table.question, figures, key or list(table.notes))


def map_html(table: EvidenceTable) -> str:
    """Return the figures of a table as a part of a page; nothing if there are none."""
    joined = "".join(map(_to_html, _draw(table)))
    return f'<div class="figures">\n{joined}</div>\n' if joined else ""


def _draw(table: EvidenceTable) -> list[Figure]:
    if not any(one.says for one in table.rows):
        return []
    return [draw_harvest(table.rows), *draw_forests(table.rows)]


def _to_html(figure: Figure) -> str:
    notes = "".join(f'<br><span class="soft">{clean(one)}</span>' for one in figure.notes)
    title = f"<figcaption><b>{clean(figure.title)}</b>{notes}</figcaption>"
    return f"<figure>\n{title}\n{inline(figure)}\n</figure>\n"


def read_size(row: StudyRow) -> int | None:
    """Return of how many a study is; None if that is not known."""
    found = _COUNT.search(row.find("n").value)
    return int(re.sub(r"\D", "", found.group())) if found else None


def size_height(n: int) -> float:
    """Return the height of a bar: linear in the logarithm of *n*, up to 100 000."""
    share = min(max(math.log10(max(n, 1)) / _DECADES, 0.0), 1.0)
    return _LEAST + (_MOST - _LEAST) * share


def draw_harvest(rows: Sequence[StudyRow]) -> Figure:
    """Return the harvest plot of the studies of a yes/no question, numbered from 1."""
    numbered = list(enumerate(rows, start=1))
    columns = {
        title: [one for one in numbered if one[1].says in said] for title, said in _COLUMNS.items()
    }
    if not columns[_OPTIONAL]:
        del columns[_OPTIONAL]
    wide = WIDTH / len(columns)
    counts = {
        title: Counter(row.band == POSSIBLE for _, row in held if row.status != "retracted")
        for title, held in columns.items()
    }
    parts = []
    heads = [
        wrap(f"{one} ({n[False]})", wide - 6) + [f"+ {n[True]} possible"] * (n[True] > 0)
        for one, n in counts.items()
    ]
    for place, lines in enumerate(heads):
        parts += [
            write((place + 0.5) * wide, 14.0 + 16 * n, said, text_anchor="middle",
                  font_weight="bold")
            for n, said in enumerate(lines)
        ]  # fmt: skip
    y = 8.0 + 16 * max(map(len, heads))
    for design in (*DESIGNS, _OTHER):
        cells = [[one for one in held if _group(one[1]) == design] for held in columns.values()]
        if not any(cells):
            continue
        parts += [rule(0.0, y, WIDTH, y, stroke_opacity=0.4), write(0.0, y + 16, design)]
        y += 22
        most = max(1, int(wide / _PITCH))
        for place, held in enumerate(cells):
            held.sort(key=lambda one: (one[1].year or "9999", one[0]))
            for n, one in enumerate(held):
                line, n_there = divmod(n, most)
                n_of_line = min(most, len(held) - line * most)
                left = (place + 0.5) * wide + (n_there - n_of_line / 2) * _PITCH
                parts.append(_draw_study(one, left + (_PITCH - _BAR) / 2, y + line * _LINE))
        y += _LINE * max(math.ceil(len(held) / most) for held in cells)
    parts.append(rule(0.0, y, WIDTH, y, stroke_opacity=0.4))
    key, height = _draw_key(rows, y + 8)
    n_said = ", ".join(
        f"{n[False]} {one}" + f" and {n[True]} possible" * (n[True] > 0)
        for one, n in counts.items()
    )
    n_gone = len(rows) - sum(n.total() for n in counts.values())
    n_said += f", {n_gone} retracted and not counted" if n_gone else ""
    studies = count(len(rows), "study")
    return Figure(
        title=f"Harvest plot: {studies} by direction, design and size",
        about=f"{studies} by what they say to the question: {n_said}. The table has each of them.",
        height=height,
        body="".join([*parts, key]),
    )


def _group(row: StudyRow) -> str:
    said = in_one_line(row.find("design").value).lower()
    found = find_design(f"design: {said}")  # as a title ends: "pilot trial"
    names = {said, found.value if found else ""}
    return next((name for name, designs in DESIGNS.items() if names & {*designs}), _OTHER)


def _draw_study(one: Numbered, x: float, y: float) -> str:
    number, row = one
    n, bottom, middle = read_size(row), y + 14 + _MOST, x + _BAR / 2
    height = _BAR if n is None else size_height(n)
    top = bottom - height
    if n is None:
        shape = tag("circle", cx=middle, cy=bottom - _BAR / 2, r=_BAR / 2, **look(row))
    else:
        shape = tag("rect", x=x, y=top, width=_BAR, height=height, **look(row))
    year = f"’{row.year[-2:]}" if row.year else "–"
    return study(
        number,
        row,
        ", ".join(filter(None, ("" if n is None else f"n = {n:,}", row.find("design").value))),
        shape,
        cross(row, x, top, _BAR, height),
        label(middle, top - 4, str(number)),
        label(middle, bottom + 13, year),
    )


def _draw_key(rows: Sequence[StudyRow], y: float) -> tuple[str, float]:
    """Return what heights and shapes mean, of those that occur, and where that ends."""
    parts = [write(0.0, y + _MOST, "n =", font_size=SMALL)]
    for place, n in enumerate(_SHOWN):
        x, height = 26 + 80.0 * place, size_height(n)
        parts += [
            tag("rect", x=x, y=y + _MOST - height, width=_BAR, height=height, **_FILLED),
            write(x + 18, y + _MOST, f"{n:,}" + " or more" * (n == _SHOWN[-1]), font_size=SMALL),
        ]
    y += _MOST + 8
    looks = key_of(rows)
    if any(read_size(one) is None for one in rows):
        circle = tag("circle", cx=_BAR / 2, cy=7, r=_BAR / 2, **_FILLED)
        looks.append(("round: size not stated", circle))
    listed, y = draw_list(looks, y)
    return "".join([*parts, *listed]), y


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestEffect:
    """An effect as it is drawn."""

    number: int  # of the study, from 1
    row: StudyRow
    kind: str  # of the effect, such as ``odds ratio``, with the unit of a difference
    is_ratio: bool  # whether 1, and not 0, is no effect
    value: float  # of the effect; above 0 for a ratio
    low: float  # of its interval; ``low <= value <= high``
    high: float
    said: str  # all three, in the digits of the study


def list_effects(rows: Sequence[StudyRow]) -> list[ForestEffect]:
    """Return the effects that can be drawn: of a known kind, each within its interval."""
    found = (read_effect(number, row) for number, row in enumerate(rows, start=1))
    return [one for one in found if one is not None]


def read_effect(number: int, row: StudyRow) -> ForestEffect | None:
    """Return the effect of a study; None if its kind, value or interval is not known."""
    # Value and interval have to be of one passage.
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
            label(x, bottom + 16, _with_minus(f"{round(value, 4):g}")),
        ]
    no_effect = "1" if first.is_ratio else "0"
    scale = " (log scale)" if first.is_ratio else ""
    said = f"{first.kind}{scale}; {no_effect}: no difference"
    parts.append(label((LEFT + RIGHT) / 2, bottom + 34, said))
    looks, y = draw_list(key_of([one.row for one in effects]), bottom + 46)
    parts += looks
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


def make_axis(effects: Sequence[ForestEffect]) -> tuple[Callable[[float], float], list[float]]:
    """Return the function from a value to its place on the axis, and the values of its ticks."""
    # All intervals and no effect lie on the axis, which is logarithmic for ratios.
    is_ratio = effects[0].is_ratio
    null = 1.0 if is_ratio else 0.0
    least = min(null, *(one.low for one in effects))
    most = max(null, *(one.high for one in effects))
    if is_ratio:
        least, most = math.log(least), math.log(most)
    edge = (most - least) * _EDGE or 1.0
    least, most = least - edge, most + edge

    def place(value: float) -> float:
        on_axis = math.log(value) if is_ratio else value
        return LEFT + (RIGHT - LEFT) * (on_axis - least) / (most - least)

    if is_ratio:
        return place, _ratio_ticks(math.exp(least), math.exp(most))
    return place, _ticks(least, most)


def _ratio_ticks(least: float, most: float) -> list[float]:
    """Return 1 and a few round ratios between two; round numbers where both are near 1."""
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    for steps in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        found = [n * 10.0**one for one in decades for n in steps if least <= n * 10.0**one <= most]
        if len(found) <= 5:
            return found if len(found) > 1 else _ticks(least, most)
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
    room = LEFT - _GAP
    name = f"{one.number} {in_one_line(one.row.name)}"
    name = cut(name, room - len(year) * 5.5, SMALL) + year
    return study(
        one.number,
        one.row,
        one.said,
        write(0.0, middle + 4, name, room=room, font_size=SMALL),
        rule(place(one.low), middle, place(one.high), middle),
        *(rule(place(end), middle - 3, place(end), middle + 3) for end in (one.low, one.high)),
        tag("rect", x=x - half, y=middle - half, width=_MARK, height=_MARK, **look(one.row)),
        cross(one.row, x - half, middle - half, _MARK, _MARK),
        write(WIDTH, middle + 4, one.said, text_anchor="end", font_size=SMALL),
    )


def _with_minus(said: str) -> str:
    return said.replace("-", "−")
