"""The search as a tree: the question, its limits, its rounds, every call, and what it brought."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

from deepera_graph.errors import SettingsError
from deepera_graph.packages import import_extra
from deepera_graph.papers.agent.state import ActionRecord
from deepera_graph.papers.paper import list_set_fields
from deepera_graph.papers.results import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a question asks for, and what it does not want.

    Attributes:
        question: As it was asked.
        topic: What is searched for: the question without its limits.
        exclude: What a paper must not be about, use or be evaluated on, in the question's words.
        year_from: Earliest year, inclusive.
        year_to: Latest year, inclusive.
        not_years: Years left out.
        venues: Only these.
        not_venues: None of these.
        types: Only these kinds of documents: ``review``, ``meta-analysis``, ``trial`` ...
        not_types: None of these.
        better: What has to come out ahead, and of what: ``("A", "B")``; empty if nothing has to.
        notes: What could not be read, in words.
    """

    question: str
    topic: str
    exclude: tuple[str, ...] = ()
    year_from: int | None = None
    year_to: int | None = None
    not_years: tuple[int, ...] = ()
    venues: tuple[str, ...] = ()
    not_venues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    not_types: tuple[str, ...] = ()
    better: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def narrow(self, scope: Scope, venues: Sequence[str] = ()) -> tuple[Scope, tuple[str, ...]]:
        """Return a scope with the question's years and venues in it, and notes on what was not.

        What the caller limited stays limited: the narrower of two limits holds. Limits that leave
        no year are an error of `Scope`, unless the question alone causes it: then its years are
        left out, with a note. A venue that the base does not know cannot be asked for.
        """
        notes: list[str] = []
        low = _latest(scope.year_from, self.year_from)
        high = _earliest(scope.year_to, self.year_to)
        if low is not None and high is not None and low > high:
            notes.append(f"no year is from {low} and up to {high}: the question's are left out")
            low, high = scope.year_from, scope.year_to
        known = {one.casefold(): one for one in venues}
        only = tuple(one for one in self.venues if one.casefold() in known)
        barred = tuple(one for one in self.not_venues if one.casefold() in known)
        unknown = [one for one in (*self.venues, *self.not_venues) if one.casefold() not in known]
        notes += [f"no paper of the base is from the venue {one!r}" for one in unknown]
        if scope.venues and only:
            asked = {one.casefold() for one in only}
            only = tuple(one for one in scope.venues if one.casefold() in asked)
            if not only:
                notes.append("the question's venues are not among those searched: left out")
        narrowed = replace(
            scope,
            year_from=low,
            year_to=high,
            venues=only or scope.venues,
            not_venues=tuple(dict.fromkeys((*scope.not_venues, *barred))),
        )
        return narrowed, tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the limits that are set, with question and topic, as JSON has them."""
        return list_set_fields(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Limits":
        """Return the limits of `to_dict`."""
        lists = {name: tuple(value) for name, value in plain.items() if isinstance(value, list)}
        return cls(**{**plain, **lists})


def check_limits(limits: Limits) -> Limits:
    """Return limits that were written by a model or a caller, or raise."""
    if limits.year_from and limits.year_to and limits.year_from > limits.year_to:
        raise SettingsError(f"no year is from {limits.year_from} and up to {limits.year_to}")
    if len(limits.better) not in (0, 2):
        raise SettingsError(f"a comparison has two sides, got {list(limits.better)!r}")
    return limits


def _latest(*years: int | None) -> int | None:
    return max((one for one in years if one is not None), default=None)


def _earliest(*years: int | None) -> int | None:
    return min((one for one in years if one is not None), default=None)


_LABEL = 60  # characters of a query in the picture


def draw_mermaid(question: str, actions: Sequence[ActionRecord]) -> str:
    """Return the tree as a Mermaid flowchart, which Markdown viewers and notebooks draw.

    A search hangs on the question, an expansion on the call that found its paper first.
    """
    first: dict[str, str] = {}
    lines = ["flowchart LR", f'  Q["{_text(question)}"]']
    for one in actions:
        parent = first.get(one["text"], "Q") if one["tool"] != "search" else "Q"
        lines.append(f'  {one["id"]}["{_describe(one)}"]')
        lines.append(f"  {parent} -->|round {one['step']}| {one['id']}")
        for id in one["ids"]:
            first.setdefault(id, one["id"])
    return "\n".join(lines) + "\n"


def draw_svg(question: str, actions: Sequence[ActionRecord]) -> str:
    """Return the tree as an SVG picture, a row a call; needs nothing but a browser."""
    depth, parents = _depths(actions)
    width, height, column, row = 0, 40, 34, 46
    parts: list[str] = []
    place: dict[str, tuple[int, int]] = {"Q": (10, 8)}
    rows = [("Q", question, ""), *((one["id"], _title(one), _yield(one)) for one in actions)]
    for number, (name, head, below) in enumerate(rows):
        x, y = 10 + column * depth[name], 8 + row * number
        place[name] = (x, y)
        box = max(160, 7 * max(len(head[:_LABEL]), len(below)) + 20)
        width, height = max(width, x + box + 10), y + row
        if name != "Q":
            px, py = place[parents[name]]
            parts.append(
                f'<path d="M{px + 12},{py + 36} V{y + 18} H{x}" fill="none" stroke="#999"/>'
            )
        parts.append(
            f'<rect x="{x}" y="{y}" width="{box}" height="36" rx="4" fill="#f6f6f6" stroke="#555"/>'
            f'<text x="{x + 8}" y="{y + 15}">{_xml(head[:_LABEL])}</text>'
            f'<text x="{x + 8}" y="{y + 30}" fill="#555">{_xml(below)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12">{"".join(parts)}</svg>\n'
    )


def draw_png(question: str, actions: Sequence[ActionRecord]) -> bytes:
    """Return the tree of `draw_svg` as a PNG picture."""
    figures = import_extra("matplotlib.figure", extra="bench", what="a picture as PNG")
    depth, parents = _depths(actions)
    rows = [("Q", question, ""), *((one["id"], _title(one), _yield(one)) for one in actions)]
    place = {name: (0.3 * depth[name], -number) for number, (name, _, _) in enumerate(rows)}
    figure = figures.Figure(figsize=(8, 0.5 * len(rows) + 0.2), dpi=120)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-0.1, 6), ylim=(-len(rows) + 0.4, 0.6))
    axes.set_axis_off()
    box = {"boxstyle": "round,pad=0.3", "facecolor": "#f6f6f6", "edgecolor": "#555"}
    for name, head, below in rows:
        x, y = place[name]
        if name != "Q":
            px, py = place[parents[name]]
            axes.plot([px + 0.1, px + 0.1, x], [py, y, y], color="#999", linewidth=0.8, zorder=0)
        text = "\n".join(filter(None, (_line(head), below)))
        axes.text(x, y, text, fontsize=7, va="center", bbox=box, parse_math=False)
    out = BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight", pad_inches=0.1)
    return out.getvalue()


def _depths(actions: Sequence[ActionRecord]) -> tuple[dict[str, int], dict[str, str]]:
    first: dict[str, str] = {}
    depth, parents = {"Q": 0}, {}
    for one in actions:
        parent = first.get(one["text"], "Q") if one["tool"] != "search" else "Q"
        parents[one["id"]], depth[one["id"]] = parent, depth[parent] + 1
        for id in one["ids"]:
            first.setdefault(id, one["id"])
    return depth, parents


def _describe(one: ActionRecord) -> str:
    return f"{_text(_title(one))}<br/>{_yield(one)}"


def _title(one: Mapping[str, Any]) -> str:
    page = f", from place {one['offset'] + 1}" if one["offset"] else ""
    return f"{one['id']} {one['tool']}: {one['text']}{page}"


def _yield(one: Mapping[str, Any]) -> str:
    if one["status"] not in ("ok", "empty"):
        return str(one["status"]).replace("_", " ")
    return f"{one['found']} found, {one['new']} new, {one['kept']} kept"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else f"{line[:_LABEL].rstrip()} ..."


def _text(text: str) -> str:
    line = _line(text)
    for letter, code in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        line = line.replace(letter, code)
    return line


def _xml(text: str) -> str:
    return " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
