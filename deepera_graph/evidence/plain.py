"""Records as plain data and back, by the types of their fields: for states, journals and files."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import TypeAdapter

from deepera_graph.text.jsonl import format_json

FORMAT = 1


class PlainRecord:
    """A dataclass that travels as plain data; what is no dataclass, list or mapping stays as it is.

    Attributes:
        kind: How its file is called; the plain data of one that is written to files name a format.
    """

    __slots__ = ()
    kind: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `from_dict` reads."""
        return {**({"format": FORMAT} if self.kind else {}), **_write(self)}

    def to_json(self) -> str:
        """Return the plain data as a text, whose control characters are escaped."""
        return format_json(self.to_dict())

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        if cls.kind and plain.get("format") != FORMAT:
            raise ValueError(f"{cls.kind} format must be {FORMAT}, got {plain.get('format')!r}")
        reader = _reader(cls)  # type: ignore[arg-type]  # a class is hashable
        found: Self = reader.validate_python(plain)
        return found


@lru_cache
def _reader(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _write(value: Any) -> Any:
    if is_dataclass(value):
        return {one.name: _write(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {key: _write(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [*map(_write, value)]
    return str(value) if isinstance(value, Path) else value
