"""CSV for spreadsheets, which take some texts for formulas."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any

from deepera_graph.text.controls import replace_controls

_FORMULAS = ("=", "+", "-", "@", "\t", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def write_sheet(rows: Iterable[Sequence[Any]], *, end: str = "\n") -> str:
    """Return rows as CSV in which no text is a formula: such a one has an apostrophe in front.

    Numbers are written as they are, also those that are text already; None is an empty cell.

    Source: https://owasp.org/www-community/attacks/CSV_Injection
    """
    text = StringIO()
    csv.writer(text, lineterminator=end).writerows(map(defuse, row) for row in rows)
    return text.getvalue()


def defuse(cell: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula."""
    if not isinstance(cell, str):
        return cell
    text = replace_controls(
        cell.replace("\r\n", "\n").replace("\r", "\n")
    )  # which `csv` would leave unquoted
    return f"'{text}" if text.startswith(_FORMULAS) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
