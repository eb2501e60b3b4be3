"""A table of studies in the forms that people and programs read it in."""

import io
from collections.abc import Sequence
from html import escape
from typing import Any, Literal, get_args

from deepera_graph.evidence.table.map import draw_map, map_html
from deepera_graph.evidence.table.rows import StudyRow, TableCell
from deepera_graph.evidence.table.table import EvidenceTable
from deepera_graph.export.page import build_page, head_html, link_html
from deepera_graph.packages import import_extra
from deepera_graph.pipeline.shown import describe_calls
from deepera_graph.result import RerankResult
from deepera_graph.settings.ranges import check_choice
from deepera_graph.text.plain import (
    count,
    defuse,
    in_one_line,
    mark_markdown,
    read_number,
    replace_controls,
    write_sheet,
)

TableFormat = Literal["markdown", "html", "csv", "json", "svg"]
_ABOUT = ("study", "year", "status", "band", "says")
_LEAST_DIRECTIONS = 2  # from which on the page of a result has a map


def export_table(table: EvidenceTable, form: TableFormat) -> str:
    """Return a table as text; `write_xlsx` has it as a workbook.

    Args:
        table: Of studies.
        form: ``"markdown"``; ``"html"``, a page with the map, and the words below each cell;
            ``"csv"``, with a column of words and one of notes beside each; ``"json"``, which
            `EvidenceTable.from_dict` reads; or ``"svg"``, the map alone: a harvest plot of what
            studies say to a yes/no question, and forest plots of effects with intervals.

    Raises:
        SettingsError: There is no such form.
        InputError: A map of studies that do not say yes or no.
    """
    check_choice("form", form, get_args(TableFormat))
    if form == "json":
        return table.to_json()
    if form == "svg":
        return draw_map(table)
    if form == "csv":
        return write_sheet(_to_sheet(table))
    return _to_page(table) if form == "html" else _to_markdown(table)


def write_xlsx(table: EvidenceTable) -> bytes:
    """Return a workbook: the table with its words as comments of cells, and a sheet of the words.

    Raises:
        SettingsError: The extra `tables` is not installed.
    """
    workbooks: Any = import_extra("openpyxl", extra="tables", what="writing .xlsx")
    comments: Any = import_extra("openpyxl.comments", extra="tables", what="writing .xlsx")
    book = workbooks.Workbook()
    sheet = book.active
    sheet.title = "Studies"
    sheet.append([*_ABOUT, *table.columns])
    for number, row in enumerate(table.rows, start=2):
        cells = [row.cells[name] for name in table.columns]
        _append(sheet, [*_about(row), *(cell.value for cell in cells)])
        for place, cell in enumerate(cells, start=len(_ABOUT) + 1):
            if said := "\n".join(filter(None, (cell.words, cell.note))):
                sheet.cell(number, place).comment = comments.Comment(said, "deepera")
    words = book.create_sheet("Words")
    for line in _to_sheet(table):
        _append(words, line)
    held = io.BytesIO()
    book.save(held)
    return held.getvalue()


def _append(sheet: Any, line: Sequence[str]) -> None:
    """Append a line to a sheet: plain numbers as numbers, shown with the places that they have."""
    sheet.append([defuse(one) if (n := read_number(one)) is None else n for one in line])
    for place, one in enumerate(line, start=1):
        _, dot, places = one.partition(".")
        if dot and read_number(one) is not None:
            sheet.cell(sheet.max_row, place).number_format = f"0.{'0' * len(places)}"


def _about(row: StudyRow) -> tuple[str, str, str, str, str]:
    return row.source, row.year, row.status, row.band, row.says.replace("_", " ")


def _to_sheet(table: EvidenceTable) -> list[Sequence[str]]:
    head = [*_ABOUT, "link", "score", "quote"]
    for name in table.columns:
        head += [name, f"{name}: words", f"{name}: page", f"{name}: note"]
    lines: list[Sequence[str]] = [head]
    for row in table.rows:
        line = [*_about(row), row.link, f"{row.score:.2f}", row.quote]
        for name in table.columns:
            cell = row.cells[name]
            line += [cell.value, cell.words, cell.page, cell.note]
        lines.append(line)
    return lines


def _to_markdown(table: EvidenceTable) -> str:
    head = [*_ABOUT, *table.columns]
    lines = [f"# {in_one_line(table.question)}", "", _to_line(head), _to_line(["---"] * len(head))]
    for number, row in enumerate(table.rows, start=1):
        values = [row.cells[name].value or "–" for name in table.columns]
        source, *about = _about(row)
        lines.append(_to_line([f"{number}. {source}", *about, *values]))
    lines += ["", *(f"- {in_one_line(one)}" for one in table.notes)] if table.notes else []
    said = [
        f"- {number}, {name}: {_say(cell)}"
        for number, row in enumerate(table.rows, start=1)
        for name, cell in row.cells.items()
        if _say(cell)
    ]
    lines += ["", "## Words", "", *said] if said else []
    return mark_markdown(replace_controls("\n".join(lines)))


def _to_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(in_one_line(one).replace('|', '¦') for one in cells)} |"


def _say(cell: TableCell) -> str:
    """Return the words of a cell with their page, and its note."""
    page = f" (p. {cell.page})" if cell.page else ""
    words = f"“{in_one_line(cell.words)}”{page}" if cell.words else ""
    return "; ".join(filter(None, (words, in_one_line(cell.note) if cell.value else "")))


def _to_page(table: EvidenceTable) -> str:
    about = f"judged by {table.judge}; {describe_calls(table.usage)}"
    head = head_html(count(len(table.rows), "study"), about, table.notes)
    main = map_html(table) + table_html(table)
    return build_page(table.question, head, main, more_style="body { max-width: 90rem; }")


def table_html(table: EvidenceTable) -> str:
    """Return the table as a part of a page."""
    titles = "".join(f'<th scope="col">{escape(one)}</th>' for one in (*_ABOUT, *table.columns))
    rows = "\n".join(
        _row_html(number, row, table.columns) for number, row in enumerate(table.rows, start=1)
    )
    return (
        f'<div class="wide" role="region" aria-label="Studies" tabindex="0">\n<table>\n'
        f"<thead><tr>{titles}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>\n"
    )


def result_studies(result: RerankResult) -> str:
    """Return map and table of a result as a part of its page; nothing for a single direction."""
    if sum(result.direction_counts.values()) < _LEAST_DIRECTIONS:
        return ""
    table = EvidenceTable.of_result(result)
    return (
        f"<h2>Studies</h2>\n{map_html(table)}<details>\n<summary>Table of the studies</summary>\n"
        f"{table_html(table)}</details>\n"
    )


def _row_html(number: int, row: StudyRow, columns: Sequence[str]) -> str:
    source, *rest = _about(row)
    about = f'<th scope="row">{number}. {link_html(source, row.link)}</th>'
    about += "".join(f"<td>{escape(one)}</td>" for one in rest)
    return f"<tr>{about}{''.join(_cell_html(row.cells[name]) for name in columns)}</tr>"


def _cell_html(cell: TableCell) -> str:
    if not cell.value:
        return f'<td class="empty">{escape(cell.note)}</td>'
    note = f"<br>{escape(cell.note)}" if cell.note else ""
    page = f" page {escape(cell.page)}" if cell.page else ""
    return f"<td>{escape(cell.value)}<q>{escape(cell.words)}</q>{page}{note}</td>"
