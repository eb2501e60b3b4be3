"""Conditions on what is searched: one language for the command line, the server and Python.

A condition is written ``year>=2015``, or as part of an object: ``{"year": {"gte": 2015}}``. What
passages have in their metadata can all be asked for; papers know `PAPER_FIELDS`.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deepera_graph.errors import SettingsError

Where = Mapping[str, Any] | str | Sequence[str]
SIGNS = {">=": "gte", "<=": "lte", "!=": "not", ">": "gt", "<": "lt", "~": "contains", "=": ""}
PAPER_FIELDS = ("year", "date", "journal", "id", "undated")
_ALIKE = (("journal", "venue"), ("authors", "author", "Author"))  # names of one field
_CONDITION = re.compile(r"\s*([^=<>!~]*[^=<>!~\s])\s*(>=|<=|!=|>|<|~|=)\s*(.*)", re.DOTALL)
_AND = re.compile(r"\s+and\s+(?=[\w.]+\s*(?:[=<>~]|!=))")


def read_where(
    where: Where | None, read_words: Callable[[str], Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """Return conditions as an object, from however they are written; all of them must hold.

    Bounds of one field make a range. *read_words* reads what has no sign, such as "since 2015".
    """
    if where is None or isinstance(where, Mapping):
        return dict(where or {})
    conditions: dict[str, Any] = {}
    texts = [where] if isinstance(where, str) else where
    for text in (one for given in texts for one in _AND.split(given)):
        found = _CONDITION.fullmatch(text)
        if found is not None:
            name, sign, value = found[1], SIGNS[found[2]], _read_value(found[3])
            new = {name: {sign: value} if sign else value}
        elif read_words is not None:
            new = {name: dict(value) for name, value in read_words(text).items()}
        else:
            raise SettingsError(f"where: a condition is FIELD=VALUE or 'year>=2015', got {text!r}")
        for name, value in new.items():
            earlier = conditions.get(name)
            is_range = isinstance(earlier, dict) and isinstance(value, dict)
            conditions[name] = {**conditions[name], **value} if is_range else value
    return conditions


def _read_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def spell_field(name: str) -> tuple[str, ...]:
    """Return the names that a field of metadata may have: what makes files differs in them."""
    return next((names for names in _ALIKE if name in names), (name,))
