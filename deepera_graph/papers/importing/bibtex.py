"""BibTeX as reference managers and publishers export it."""

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from deepera_graph.errors import InputError
from deepera_graph.papers.importing.reading import BAD_LINE, DAMAGED, Problem, make_record
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.text.records import open_records

_ENTRY = re.compile(r"@(\w+)\s*\{", re.IGNORECASE)
_KEY = re.compile(r"\s*([^\s,{}]*)\s*,")
_FIELD = re.compile(r"\s*,?\s*([\w-]+)\s*=\s*")
_NO_PAPERS = ("comment", "preamble", "string")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_NUMBER = {name: f"{at:02}" for at, name in enumerate(_MONTHS.split(), start=1)}
_ACCENT = re.compile(r"\{?\\([`'^\"~=.cvuHk])\s*\{?\\?([a-zA-Z])\}?\}?")
_MARKS = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304",
    ".": "\u0307", "c": "\u0327", "v": "\u030c", "u": "\u0306", "H": "\u030b", "k": "\u0328",
}  # fmt: skip
_LETTERS = {r"\ss": "ß", r"\o": "ø", r"\O": "Ø", r"\l": "ł", r"\L": "Ł", r"\ae": "æ", r"\aa": "å"}
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)


def read_file(path: Path) -> Iterator[PaperRecord | Problem]:
    """Yield the entries of a file in order; a paper is known by its DOI, its eprint or its key.

    Raises:
        InputError: The file cannot be opened.
    """
    problem = None
    with open_records(path) as (stream, _):
        chunks: list[bytes] = []
        try:
            while chunk := stream.read(1 << 20):
                chunks.append(chunk)
        except InputError as error:
            problem = str(error)
    text = b"".join(chunks).decode("utf-8", "replace")
    place, at = 0, 0
    while found := _ENTRY.search(text, at):
        end = _find_end(text, found.end())
        if found[1].lower() in _NO_PAPERS:
            at = found.end() if end is None else end
            continue
        place += 1
        if end is None:
            yield Problem(BAD_LINE, place, "the entry is not closed")
            at = found.end()
            continue
        yield _to_record(place, text[found.end() : end - 1])
        at = end
    if problem is not None:
        yield Problem(DAMAGED, place + 1, problem)


def _find_end(text: str, start: int) -> int | None:
    """Return where the brace that is open closes; None if another entry begins before."""
    depth = 1
    for mark in re.finditer(r"\\.|[{}]|\n@", text[start:]):
        if mark[0] == "\n@":
            return None
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if not depth:
            return start + mark.end()
    return None


def _to_record(place: int, body: str) -> PaperRecord | Problem:
    key = _KEY.match(body)
    if not key:
        return Problem(BAD_LINE, place, f"the entry has no key: {body!r:.60}")
    fields = _read_fields(body[key.end() :])
    is_arxiv = "arxiv" in (fields.get("archiveprefix", "") + fields.get("eprinttype", "")).lower()
    eprint = fields.get("eprint", "") if is_arxiv else ""
    year, month = fields.get("year", ""), _NUMBER.get(fields.get("month", "")[:3].lower())
    doi = fields.get("doi", "")
    return make_record(
        place,
        ids=[doi, eprint and f"arXiv:{eprint}", key[1]],
        title=fields.get("title", ""),
        abstract=fields.get("abstract", ""),
        authors=[_turn_name(one) for one in _AND.split(fields.get("author", "")) if one],
        year=year or fields.get("date", ""),
        date=fields.get("date") or (f"{year}-{month}" if year and month else year),
        venue=fields.get("journal") or fields.get("booktitle") or fields.get("journaltitle"),
        categories=re.split(r"[;,]\s*", fields.get("keywords", "")),
        doi=doi,
        arxiv=eprint,
        url=fields.get("url", ""),
        source="bibtex",
    )


def _read_fields(body: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    at = 0
    while found := _FIELD.match(body, at):
        raw, at = _read_value(body, found.end())
        fields.setdefault(found[1].lower(), _to_plain(raw))
    return fields


def _read_value(body: str, at: int) -> tuple[str, int]:
    if body[at : at + 1] == "{":
        end = _find_end(body, at + 1) or len(body)
        return body[at + 1 : end - 1], end
    if body[at : at + 1] == '"':
        depth = 0
        for mark in re.finditer(r"\\.|[{}\"]", body[at + 1 :]):
            depth += {"{": 1, "}": -1}.get(mark[0], 0)
            if mark[0] == '"' and not depth:
                end = at + 1 + mark.end()
                return body[at + 1 : end - 1], end
        return body[at + 1 :], len(body)
    bare = re.match(r"[^,\s}]*", body[at:])
    word = bare[0] if bare else ""
    return word, at + len(word)


def _to_plain(raw: str) -> str:
    """Return TeX as text: accents as letters, without braces; formulas stay as they are."""
    text = _ACCENT.sub(lambda found: found[2] + _MARKS[found[1]], raw)
    for command, letter in _LETTERS.items():
        text = re.sub(re.escape(command) + r"(?![a-zA-Z])\s*(?:\{\})?", letter, text)
    text = text.replace("\\&", "&").replace("\\%", "%").replace("--", "–")

    return unicodedata.normalize("NFC", " ".join(text.replace("{", "").replace("}", "").split()))


def _turn_name(name: str) -> str:
    last, comma, first = name.partition(",")
    return f"{first.strip()} {last.strip()}" if comma else name.strip()
