"""Conditions on metadata, as Qdrant filters."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from qdrant_client import models

from deepera_graph.errors import SettingsError

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BOUNDS = ("gt", "gte", "lt", "lte")


def build_filter(where: Mapping[str, Any] | None) -> models.Filter | None:
    """Turn conditions on metadata into a Qdrant filter; all of them must hold.

    | value | holds if the field |
    |---|---|
    | string, number, bool | equals it, or is a list that contains it |
    | list | equals any of the values |
    | ``{"gte": 2015, "lt": 2020}`` | lies in the range; numbers, or ISO dates as "2019-05-31" |
    | None | is missing, null or an empty list |

    A dot in a name goes into a nested object: ``journal.name``.

    Raises:
        SettingsError: A name is empty or a value is none of these.
    """
    if not where:
        return None
    return models.Filter(must=[_condition(name, value) for name, value in where.items()])


def _condition(name: str, value: object) -> models.Condition:
    if '"' in name or not all(name.split(".")):
        raise SettingsError(f"where: {name!r} names no metadata field")
    key = "metadata." + ".".join(map(_path_step, name.split(".")))
    if isinstance(value, Mapping):
        return _range(name, key, value)
    if isinstance(value, list | tuple | set | frozenset):
        if not value:
            raise SettingsError(f"where: the list of values for {name!r} is empty")
        return models.Filter(should=[_equal(name, key, item) for item in value])
    return _equal(name, key, value)


def _path_step(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f'"{name}"'


def _equal(name: str, key: str, value: object) -> models.Condition:
    if value is None:
        return models.IsEmptyCondition(is_empty=models.PayloadField(key=key))
    if isinstance(value, bool | str):
        return models.FieldCondition(key=key, match=models.MatchValue(value=value))
    if isinstance(value, int | float):
        # A range, because Qdrant's exact match tells 1 and 1.0 apart.
        return models.FieldCondition(key=key, range=models.Range(gte=value, lte=value))
    raise SettingsError(f"where: {name!r} cannot be compared with {value!r:.80}")


def _range(name: str, key: str, bounds: Mapping[str, Any]) -> models.Condition:
    if not bounds or not set(bounds) <= set(_BOUNDS):
        raise SettingsError(
            f"where: a range of {name!r} has {', '.join(_BOUNDS)}, got {dict(bounds)!r:.80}"
        )
    kind = models.DatetimeRange if _are_strings(bounds) else models.Range
    try:
        return models.FieldCondition(key=key, range=kind.model_validate(_checked(bounds)))
    except (ValidationError, TypeError) as error:
        raise SettingsError(
            f"where: a range of {name!r} has numbers or ISO dates, got {dict(bounds)!r:.80}"
        ) from error


def _are_strings(bounds: Mapping[str, Any]) -> bool:
    return all(isinstance(bound, str) for bound in bounds.values())


def _checked(bounds: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse what pydantic would turn into numbers: True, "3"."""
    numbers = all(
        isinstance(bound, int | float) and not isinstance(bound, bool) for bound in bounds.values()
    )
    if not numbers and not _are_strings(bounds):
        raise TypeError("bounds are neither numbers nor dates")
    return dict(bounds)
