"""The members of one large JSON object, read one at a time."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deepera_graph.bench.errors import DatasetError

_AT_ONCE = 1 << 16
_MAY_GO_ON = ("", *"0123456789.eE+-")


def read_members(path: Path, *, block: int = _AT_ONCE) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of an object's members in file order, one value in memory at a time.

    Args:
        path: The file.
        block: Characters read at once, >= 1; a value may be longer.

    Raises:
        DatasetError: The file cannot be read, or is not one JSON object in UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from _Reader(path, iter(lambda: file.read(block), "")).members()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not UTF-8: {error.reason}") from error


class _Reader:
    """A window on the file that grows until the next value fits and is cut after it."""

    def __init__(self, path: Path, blocks: Iterator[str]) -> None:
        self._path, self._blocks = path, blocks
        self._text, self._place = "", 0
        self._decoder = json.JSONDecoder()
        self._last = ""

    def members(self) -> Iterator[tuple[str, Any]]:
        self._expect("{")
        closing = self._next() == "}"
        while not closing:
            name = self._value()
            if not isinstance(name, str):
                raise self._bad(f"a name must be a string, got {name!r}")
            self._last = name
            self._expect(":")
            yield name, self._value()
            closing = self._next() == "}"
            if not closing:
                self._expect(",")
        self._expect("}")
        if self._next():
            raise self._bad("something follows the object")

    def _next(self) -> str:
        """The next character that is no white space, without taking it; empty at the end."""
        while True:
            while self._place < len(self._text):
                if not self._text[self._place].isspace():
                    return self._text[self._place]
                self._place += 1
            if not self._grow():
                return ""

    def _expect(self, mark: str) -> None:
        found = self._next()
        if found != mark:
            raise self._bad(f"expected {mark!r}, got {found or 'the end'!r}")
        self._place += 1

    def _value(self) -> Any:
        self._next()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._place)
            except json.JSONDecodeError as error:
                if not self._grow():
                    raise self._bad(error.msg) from error
                continue
            if self._text[end : end + 1] in _MAY_GO_ON and self._grow():
                continue  # the block may end in the middle of a number
            self._place = end
            return value

    def _grow(self) -> bool:
        block = next(self._blocks, "")
        self._text = self._text[self._place :] + block
        self._place = 0
        return bool(block)

    def _bad(self, what: str) -> DatasetError:
        after = f" after {self._last!r}" if self._last else ""
        return DatasetError(f"{self._path} is not one JSON object{after}: {what}")
