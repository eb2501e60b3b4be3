"""The search as a tree: the question, its rounds, every call, and what it brought."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from deepera_graph.packages import import_extra
from deepera_graph.papers.agent.state import ActionRecord

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
    """Return the tree of `draw_svg` as a PNG picture.

    Raises:
        SettingsError: Matplotlib is not installed (extra ``bench``).
    """
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
