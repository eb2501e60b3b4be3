"""Conditions on metadata as filters of Qdrant, and what is stored beside metadata for them.

A year may be a number, a text or part of a date, and a name may have accents: a filter compares
what the metadata says, and for what it cannot compare as it stands a plain form that was stored.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from pydantic import ValidationError
from qdrant_client import models

from deepera_graph.errors import SettingsError
from deepera_graph.literature.citation import Citation
from deepera_graph.retrieval import Where, read_where, spell_field
from deepera_graph.text.plain import fold_accents, read_number

METADATA = "metadata"
COMPARED = "compared"  # beside it: texts without accents, numbers of texts, and the year
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BOUNDS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_YEAR = "year"
_FIRST, _LAST = 1000, 2999  # what a number in a condition may be to be the year of a date
_LISTED = range(1500, 2101)  # years that are looked for as texts
_LEAST = -1e300


def build_filter(where: Where | None) -> models.Filter | None:
    """Turn conditions on metadata into a Qdrant filter; all of them must hold.

    They are an object, or texts as `read_where` reads them: ``year>=2015``.

    | value | holds if the field |
    |---|---|
    | string, number, bool | equals it, or is a list that contains it |
    | list | equals any of the values |
    | ``{"gte": 2015, "lt": 2020}`` | lies in the range; numbers, or ISO dates as "2019-05-31" |
    | ``{"not": "Letter"}`` | does not equal it, or any of a list |
    | ``{"contains": "smith"}`` | has these words in it, in any case, with accents or without |
    | None | is missing, null or an empty list |

    A dot in a name goes into a nested object: ``journal.name``. `journal` and `venue` are one
    field, and so are `authors` and `author`. A number equals the text of it, a year is also that of
    a date, and `year` is the one that the citation of a passage shows.
    """
    conditions = read_where(where)
    if not conditions:
        return None
    return models.Filter(must=[build_condition(name, value) for name, value in conditions.items()])


def build_condition(name: str, value: object) -> models.Condition:
    """Turn one condition into a part of a filter; see `build_filter`."""
    if isinstance(value, Mapping) and [*value] == ["not"]:
        return models.Filter(must_not=[build_condition(name, value["not"])])
    every = [_build_condition(one, value) for one in spell_field(name)]
    return models.Filter(must=every) if value is None else _any_of(every)


def build_unknown(name: str, value: object) -> models.Condition | None:
    """Return what holds if a passage has nothing that a condition can be compared with.

    None for conditions that such a passage meets.
    """
    if value is None or (isinstance(value, Mapping) and [*value] == ["not"]):
        return None
    readable: dict[str, Any] = {"not": None}
    if name == _YEAR:
        readable = {"gte": _FIRST, "lte": _LAST}
    elif isinstance(value, Mapping) and value.keys() <= _BOUNDS.keys():
        readable = {"gte": "0001-01-01" if _are_strings(value) else _LEAST}
    return models.Filter(must_not=[build_condition(name, readable)])


def list_compared(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plain forms of fields whose values cannot be compared as they stand."""
    plain = _to_plain(metadata) or {}
    if not isinstance(metadata.get(_YEAR), int | float):
        plain.pop(_YEAR, None)
        if year := Citation.of(metadata, "").year:
            plain[_YEAR] = int(year)
    return plain


def _to_plain(value: object) -> Any:
    """Return the number that a text is, or the text without accents; None where nothing changes."""
    if isinstance(value, str):
        number = read_number(value)
        folded = None if value.isascii() else fold_accents(value)
        return folded if number is None else number
    if isinstance(value, Mapping):
        plain = {str(name): _to_plain(one) for name, one in value.items()}
        return {name: one for name, one in plain.items() if one is not None} or None
    if isinstance(value, list | tuple):
        every = [(_to_plain(one), one) for one in value]
        changed = any(one is not None for one, _ in every)
        return [old if one is None else one for one, old in every] if changed else None
    return None


def _any_of(every: Sequence[models.Condition]) -> models.Condition:
    return every[0] if len(every) == 1 else models.Filter(should=[*every])


def _build_condition(name: str, value: object) -> models.Condition:
    if '"' in name or not all(name.split(".")):
        raise SettingsError(f"where: {name!r} names no metadata field")
    steps = ".".join(map(_quote_step, name.split(".")))
    keys = f"{METADATA}.{steps}", f"{COMPARED}.{steps}"
    if isinstance(value, Mapping):
        if [*value] == ["contains"]:
            return _build_contains(name, keys, value["contains"])
        return _build_range(name, keys, value)
    if isinstance(value, list | tuple | set | frozenset):
        if not value:
            raise SettingsError(f"where: the list of values for {name!r} is empty")
        return models.Filter(should=[_build_equal(name, keys, item) for item in value])
    return _build_equal(name, keys, value)


def _quote_step(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f'"{name}"'


def _build_equal(name: str, keys: Sequence[str], value: object) -> models.Condition:
    if value is None:
        empty = [models.IsEmptyCondition(is_empty=models.PayloadField(key=one)) for one in keys]
        return models.Filter(must=[*empty])
    if isinstance(value, bool):
        return _match(keys[0], value)
    if isinstance(value, str):
        number = read_number(value)
        same = [] if number is None else [_build_range(name, keys, {"gte": number, "lte": number})]
        return _any_of([_match(keys[0], value), *same])
    if isinstance(value, int | float):
        # A range, because Qdrant's exact match tells 1 and 1.0 apart.
        texts = {str(value), str(int(value)) if value == int(value) else str(value)}
        alike = _build_range(name, keys, {"gte": value, "lte": value})
        return _any_of([alike, *(_match(keys[0], one) for one in sorted(texts))])
    raise SettingsError(f"where: {name!r} cannot be compared with {value!r:.80}")


def _match(key: str, value: str | bool) -> models.Condition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def _build_contains(name: str, keys: Sequence[str], value: object) -> models.Condition:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise SettingsError(f"where: {name!r} cannot contain {value!r:.80}")
    given = str(value).casefold()
    folded = fold_accents(given)
    asked = dict.fromkeys([(keys[0], given), (keys[0], folded), (keys[1], folded)])
    every = [
        models.FieldCondition(key=key, match=models.MatchText(text=text)) for key, text in asked
    ]
    return _any_of(every)


def _build_range(name: str, keys: Sequence[str], bounds: Mapping[str, Any]) -> models.Condition:
    if not bounds or not set(bounds) <= set(_BOUNDS):
        raise SettingsError(
            f"where: a range of {name!r} has {', '.join(_BOUNDS)}, got {dict(bounds)!r:.80}"
        )
    kind = models.DatetimeRange if _are_strings(bounds) else models.Range
    try:
        range = kind.model_validate(_check_bounds(bounds))
    except (ValidationError, TypeError) as error:
        raise SettingsError(
            f"where: a range of {name!r} has numbers or ISO dates, got {_show_range(name, bounds)}"
        ) from error
    every: list[models.Condition] = [
        models.FieldCondition(key=one, range=range)
        for one in (keys if kind is models.Range else keys[:1])
    ]
    if _are_years(name, bounds):
        every += _build_years(keys[0], bounds, as_texts=name == _YEAR)
    return _any_of(every)


def _build_years(key: str, bounds: Mapping[str, int], *, as_texts: bool) -> list[models.Condition]:
    """Return what holds for dates of a range of years, and for years that are texts."""
    first = max(bounds.get("gte", _FIRST), bounds.get("gt", _FIRST - 1) + 1)
    last = min(bounds.get("lte", _LAST), bounds.get("lt", _LAST + 1) - 1)
    if first > last:
        return []
    days = models.DatetimeRange(gte=date(first, 1, 1), lt=date(last + 1, 1, 1))
    found: list[models.Condition] = [models.FieldCondition(key=key, range=days)]
    texts = [str(one) for one in _LISTED if first <= one <= last] if as_texts else []
    if texts:
        found.append(models.FieldCondition(key=key, match=models.MatchAny(any=texts)))
    # A number was compared already: embedded, Qdrant would look through the texts one by one.
    number = models.FieldCondition(key=key, range=models.Range(gte=_LEAST))
    return [models.Filter(must=[models.Filter(must_not=[number]), _any_of(found)])]


def _are_years(name: str, bounds: Mapping[str, Any]) -> bool:
    if not all(isinstance(one, int) for one in bounds.values()):
        return False
    return name == _YEAR or any(_FIRST <= one <= _LAST for one in bounds.values())


def _show_range(name: str, bounds: Mapping[str, Any]) -> str:
    """Return the bounds as they are read: ``year > '2015 and year<2018'``."""
    return " and ".join(f"{name} {_BOUNDS[sign]} {bound!r:.80}" for sign, bound in bounds.items())


def _are_strings(bounds: Mapping[str, Any]) -> bool:
    return all(isinstance(bound, str) for bound in bounds.values())


def _check_bounds(bounds: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse what pydantic would turn into numbers: True, "3"."""
    numbers = all(
        isinstance(bound, int | float) and not isinstance(bound, bool) for bound in bounds.values()
    )
    if not numbers and not _are_strings(bounds):
        raise TypeError("bounds are neither numbers nor dates")
    return dict(bounds)
