"""Bytes as text: byte order marks, declared charsets, and what to take where neither helps."""

import codecs
import io
from typing import BinaryIO, cast

from deepera_graph.errors import InputError

_MARKS = (  # longer ones first, as UTF-32 begins as UTF-16 does
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
# What browsers take these names for, see https://encoding.spec.whatwg.org/#names-and-labels
_MEANT = {"iso8859-1": "cp1252", "ascii": "cp1252"}
_N_LOOKED_AT = 4096


def peek(source: BinaryIO) -> bytes:
    """Return the beginning of a file, up to 4096 bytes, without reading on."""
    buffered = cast("io.BufferedReader", source)
    return buffered.peek(_N_LOOKED_AT)[:_N_LOOKED_AT]


def find_mark(raw: bytes) -> str:
    """Return the encoding that a byte order mark names; nothing if there is none."""
    return next((name for mark, name in _MARKS if raw.startswith(mark)), "")


def decode(raw: bytes, name: object, *, declared: str = "", otherwise: str = "") -> str:
    """Decode a text by its byte order mark, as UTF-8, or as it *declared* itself; in this order.

    Args:
        raw: The file.
        name: Of it, for messages.
        declared: The charset that the file names, if it does.
        otherwise: What is taken if none of these fits; bytes that do not fit are marked.

    Raises:
        InputError: None of them fits, and there is no *otherwise*.
    """
    tried = find_mark(raw) or "utf-8"
    try:
        return raw.decode(tried)
    except UnicodeDecodeError as error:
        if tried == "utf-8" and (known := _look_up(declared) or otherwise):
            return raw.decode(known, "replace")
        number = raw.count(b"\n", 0, error.start) + 1
        kind = "UTF-8" if tried == "utf-8" else tried.upper().removesuffix("-SIG")
        hint = "; save it as UTF-8" if kind == "UTF-8" else ""
        message = f"{name}: not {kind}: {error.reason} in line {number}{hint}"
        raise InputError(message) from error


def _look_up(charset: str) -> str:
    try:
        info = codecs.lookup(charset.strip())
    except (LookupError, ValueError):
        return ""
    try:
        b"\xff".decode(info.name, "replace")
    except (LookupError, ValueError):  # "hex", "punycode" and the like are no charsets
        return ""
    # UTF-16 with a readable declaration is a contradiction
    return "" if info.name.startswith("utf") else _MEANT.get(info.name, info.name)


def to_utf8(source: BinaryIO, name: object) -> BinaryIO:
    """Return a text in UTF-16 or UTF-32 that says so as UTF-8, and any other file as it is."""
    if find_mark(peek(source)) in {"", "utf-8-sig"}:
        return source
    return io.BytesIO(decode(source.read(), name).encode("utf-8", "replace"))
