"""The map of a table: a harvest plot, and all figures for a page or as a file.

The harvest plot has every study once, by direction, design, size and year.

Source: Ogilvie et al. 2008, The harvest plot: a method for synthesising evidence about the
differential effects of interventions, BMC Medical Research Methodology 8:8.
"""

import math
import re
from collections.abc import Mapping, Sequence

from deepera_graph.errors import InputError
from deepera_graph.evidence.table.cells import find_design
from deepera_graph.evidence.table.forest import draw_forests
from deepera_graph.evidence.table.rows import StudyRow
from deepera_graph.evidence.table.svg import (
    SMALL,
    WIDTH,
    Figure,
    at,
    clean,
    cross,
    describe,
    inline,
    join,
    key_of,
    look,
    rule,
    study,
    tag,
    wrap,
    write,
)
from deepera_graph.evidence.table.table import EvidenceTable

Numbered = tuple[int, StudyRow]
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "contradicts": ("contradicts",),
    "no difference": ("no_difference",),
    "mixed or unclear": ("mixed", "unclear", ""),
    "supports": ("supports",),
}
_OPTIONAL = "mixed or unclear"
_OTHER = "Design not stated"
_DESIGNS: Mapping[str, tuple[str, ...]] = {
    "Reviews": ("meta-analysis", "systematic review"),
    "Trials": ("crossover trial", "cluster-randomised trial", "randomised trial"),
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
        title: sum(row.status != "retracted" for _, row in held) for title, held in columns.items()
    }
    parts, heads = [], [wrap(f"{one} ({n})", wide - 6) for one, n in counts.items()]
    for place, lines in enumerate(heads):
        parts += [
            write((place + 0.5) * wide, 14.0 + 16 * n, said, text_anchor="middle",
                  font_weight="bold")
            for n, said in enumerate(lines)
        ]  # fmt: skip
    y = 8.0 + 16 * max(map(len, heads))
    for design in (*_DESIGNS, _OTHER):
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
    n_said = ", ".join(f"{n} {title}" for title, n in counts.items())
    n_gone = len(rows) - sum(counts.values())
    n_said += f", {n_gone} retracted and not counted" if n_gone else ""
    studies = f"{len(rows)} {'study' if len(rows) == 1 else 'studies'}"
    return Figure(
        title=f"Harvest plot: {studies} by direction, design and size",
        about=f"{studies} by what they say to the question: {n_said}. The table has each of them.",
        height=height,
        body="".join([*parts, key]),
    )


def _group(row: StudyRow) -> str:
    found = find_design(row.find("design").value)
    known = _DESIGNS.items() if found else ()
    return next((name for name, designs in known if found and found.value in designs), _OTHER)


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
        write(middle, top - 4, str(number), text_anchor="middle", font_size=SMALL),
        write(middle, bottom + 13, year, text_anchor="middle", font_size=SMALL),
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
    for said, shape in key_of(rows):
        parts += [at(shape, y), write(20.0, y + 11, said, font_size=SMALL)]
        y += 18
    if any(read_size(one) is None for one in rows):
        circle = tag("circle", cx=_BAR / 2, cy=7, r=_BAR / 2, **_FILLED)
        parts += [at(circle, y), write(20.0, y + 11, "round: size not stated", font_size=SMALL)]
        y += 18
    return "".join(parts), y


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
