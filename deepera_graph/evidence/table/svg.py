"""Figures of a few shapes as SVG, which take their colour from the page and read without any."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from deepera_graph.evidence.table.rows import StudyRow
from deepera_graph.schema import POSSIBLE
from deepera_graph.text.plain import in_one_line

WIDTH = 400.0  # of a figure; a page shows it as wide as there is room, so its letters stay legible
SIZE, SMALL = 13, 11  # of letters
_PER_LETTER = 0.53  # width of a letter, of its size; what is longer than its place is cut
_NO_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")
_ALONE = (
    "<style>svg{color:#1a1d21;background:#fff}@media(prefers-color-scheme:dark)"
    "{svg{color:#e6e9ec;background:#191d22}}"
    "@media print{svg{color:#000;background:none}}</style>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure that is drawn."""

    title: str  # what it is, in a line
    about: str  # what it shows, for those who do not see it
    height: float  # of the drawing, whose width is `WIDTH`
    body: str  # SVG
    notes: tuple[str, ...] = ()  # what is to be known of it, a sentence each


def tag(name: str, content: str = "", /, **attributes: object) -> str:
    """Return an element; ``stroke_width=2`` is its attribute ``stroke-width``, escaped."""
    said = "".join(
        f' {key.replace("_", "-")}="{_write(value)}"' for key, value in attributes.items()
    )
    return f"<{name}{said}>{content}</{name}>" if content else f"<{name}{said}/>"


def _write(value: object) -> str:
    return f"{round(value, 2):g}" if isinstance(value, float) else clean(str(value))


def clean(text: str) -> str:
    """Return a text in one line as XML may have it, escaped."""
    return escape(_NO_XML.sub("\ufffd", in_one_line(text)))


def write(x: float, y: float, said: str, *, room: float = WIDTH, **more: object) -> str:
    """Return a text at a place, cut to the *room* there is for it."""
    size = float(str(more.setdefault("font_size", SIZE)))
    return tag("text", clean(cut(said, room, size)), x=x, y=y, fill="currentColor", **more)


def label(x: float, y: float, said: str) -> str:
    """Return a small text whose middle is at a place."""
    return write(x, y, said, text_anchor="middle", font_size=SMALL)


def cut(said: str, room: float, size: float = SIZE) -> str:
    """Return a text that fits a width, with dots in place of what does not."""
    most = max(1, int(room / (size * _PER_LETTER)))
    return said if len(said) <= most else said[: most - 1].rstrip() + "…"


def wrap(said: str, room: float, size: float = SIZE) -> list[str]:
    """Return a text in lines that fit a width; a word that is longer is cut."""
    lines = [""]
    for word in in_one_line(said).split():
        joined = f"{lines[-1]} {word}".strip()
        if lines[-1] and cut(joined, room, size) != joined:
            lines.append(word)
        else:
            lines[-1] = joined
    return [cut(one, room, size) for one in lines]


def rule(x1: float, y1: float, x2: float, y2: float, **more: object) -> str:
    """Return a line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, **{"stroke": "currentColor", **more})


def look(row: StudyRow) -> dict[str, object]:
    """Return how a study looks: filled if it is evidence, else an outline, dashed if possible."""
    if row.status != "retracted" and row.band != POSSIBLE:
        return {"fill": "currentColor", "stroke": "currentColor"}
    dashes = {"stroke_dasharray": "3 2"} if row.band == POSSIBLE else {}
    return {"fill": "none", "stroke": "currentColor", "stroke_width": 1.5, **dashes}


def cross(row: StudyRow, x: float, y: float, width: float, height: float) -> str:
    """Return the cross through a study that was retracted; nothing for others."""
    if row.status != "retracted":
        return ""
    return rule(x, y, x + width, y + height) + rule(x, y + height, x + width, y)


def key_of(rows: Sequence[StudyRow]) -> list[tuple[str, str]]:
    """Return what the looks of studies mean, with a sample, of those looks that occur."""
    said: dict[str, StudyRow] = {}
    for row in rows:
        is_possible, is_gone = row.band == POSSIBLE, row.status == "retracted"
        band = f"dashed outline: {POSSIBLE} evidence" if is_possible else "filled: evidence"
        said.setdefault("crossed: retracted, not counted" if is_gone else band, row)
    return [
        (
            words,
            tag("rect", x=1.0, y=1.0, width=11.0, height=11.0, **look(row))
            + cross(row, 1.0, 1.0, 11.0, 11.0),
        )
        for words, row in said.items()
    ]


def draw_list(items: Sequence[tuple[str, str]], y: float) -> tuple[list[str], float]:
    """Return words with a sample before each, from a height on, and where that ends."""
    parts = [
        part
        for line, (words, sample) in enumerate(items)
        for part in (
            at(sample, y + 18 * line),
            write(20.0, y + 18 * line + 11, words, font_size=SMALL),
        )
    ]
    return parts, y + 18 * len(items)


def describe(number: int, row: StudyRow) -> str:
    """Return what tells a study from others, in a line: ``3 Lee and Roy 2019``."""
    return " ".join(filter(None, (str(number), in_one_line(row.name), row.year)))


def study(number: int, row: StudyRow, said: str, *parts: str) -> str:
    """Return what is drawn of a study, which says whose it is where it is pointed at."""
    about = ": ".join(filter(None, (describe(number, row), said)))
    return tag("g", tag("title", clean(about)) + "".join(parts), data_study=number)


def at(body: str, y: float) -> str:
    """Return a drawing moved down."""
    return tag("g", body, transform=f"translate(0 {y:g})")


def inline(figure: Figure) -> str:
    """Return a figure for a page; its colour is that of the text."""
    return _root(figure.title, figure.about, figure.height, figure.body)


def join(question: str, figures: Sequence[Figure], key: Sequence[str]) -> str:
    """Return a file: the question, figures with titles and notes, and a *key* of their numbers."""
    parts, y = [], 20.0
    for said in wrap(question, WIDTH, 15):
        parts.append(write(0.0, y, said, font_size=15, font_weight="bold"))
        y += 20
    for one in figures:
        parts.append(write(0.0, y + 12, one.title, font_weight="bold"))
        parts.append(at(one.body, y + 20))
        y += one.height + 36
        for said in (line for note in one.notes for line in wrap(note, WIDTH, SMALL)):
            parts.append(write(0.0, y, said, font_size=SMALL))
            y += 16
        y += 8
    for said in key:
        parts.append(write(0.0, y + 8, said, font_size=SMALL))
        y += 16
    about = " ".join(one.about for one in figures) or "There is nothing to draw."
    return _root(question, about, y + 8, "".join(parts), alone=True) + "\n"


def _root(title: str, about: str, height: float, body: str, *, alone: bool = False) -> str:
    edge = 12 if alone else 0
    said = tag("title", clean(title)) + tag("desc", clean(about))
    return tag(
        "svg",
        said + _ALONE * alone + body,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"{-edge} {-edge} {WIDTH + 2 * edge:g} {height + 2 * edge:g}",
        role="img",
        aria_label=f"{title}. {about}",
        font_family="system-ui, sans-serif",
    )
