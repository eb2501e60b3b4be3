"""Records as they stand in a file, and lines of text, of which a bad byte spoils only its own."""

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

from deepera_graph.text.files.jsonl import BOM


class RawRecord(NamedTuple):
    """One record of a file: its fields, or what is wrong with it; of a reference maybe both."""

    number: int  # of the line it begins in, or its place in a JSON list; from 1
    fields: dict[str, Any]
    error: str = ""


def decode_lines(source: BinaryIO) -> Iterator[str]:
    """Decode by lines, so that only line feeds end them; a byte that is no UTF-8 is marked."""
    for number, line in enumerate(source):
        text = line.removeprefix(BOM) if number == 0 else line
        yield text.decode("utf-8", "surrogateescape")


def find_bad_byte(texts: Iterable[str]) -> bool:
    """Tell whether a byte was no UTF-8, as `decode_lines` marks it."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return True
    return False
