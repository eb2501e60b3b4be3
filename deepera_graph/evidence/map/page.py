"""The figures of a table: for a page, and as a file."""

from deepera_graph.errors import InputError
from deepera_graph.evidence.map.forest import draw_forests
from deepera_graph.evidence.map.harvest import draw_harvest
from deepera_graph.evidence.map.svg import Figure, clean, describe, inline, join
from deepera_graph.evidence.table.table import EvidenceTable


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
