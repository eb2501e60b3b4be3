"""BibTeX: entries with their fields as plain text."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from deepera_graph.errors import InputError
from deepera_graph.text.jsonl import NOT_UTF8, RawRecord, decode_lines, find_bad_byte
from deepera_graph.text.plain import read_lists, write_raised
from deepera_graph.text.references import find_year, to_reference

_ENTRY = re.compile(r"@(\w+)\s*(?:\{|(\()(?=\s*[^\s,(){}=]+\s*[,=]))")
_KEY = re.compile(r"\s*([^\s,{}]*)\s*,")
_FIELD = re.compile(r"\s*,?\s*([^\s,=(){}\"#%']+)\s*=\s*")
_NEXT_FIELD = re.compile(r",\s*(?=[a-zA-Z][\w+:-]*\s*=\s*[\"{\d])")
_MOST_TIMES, _LEAST_EXPANDED = 10, 1_000_000  # characters in place of names, by the file's length
_NO_PAPERS = ("comment", "preamble", "string")
_ACCENT = re.compile(
    r"\{?\\([`'^\"~=.]|[cvuHk](?![a-zA-Z]))\s*\{?(?:\\(?=[ij](?![a-zA-Z])))?([a-zA-Z])\}?\}?"
)
_TEX = read_lists(__file__)
_MARKS, _LETTERS, _RELATIONS = _TEX["marks"], _TEX["letters"], _TEX["relations"]
_GREEK = _TEX["greek"]
_LETTER = re.compile(
    rf"\\({'|'.join(sorted(_LETTERS, key=len, reverse=True))})(?![a-zA-Z])(?:\{{\}}|(?=\}})|\s*)"
)
_BRACES = re.compile(r"(?<!\\)[{}]")
_ESCAPED = re.compile(r"\\([&%$#_{}])")
_AS_IT_IS = ("doi", "url", "eprint", "file")  # fields in which dashes and letters are no TeX
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_OTHERS = "others"
_BRACE = re.compile(r"\\.|[{}]|\n@|\)(?=\s*(?:[@%]|\Z))", re.DOTALL)
_QUOTE = re.compile(r"\\.|[{}\"]", re.DOTALL)
_BARE = re.compile(r"[^,\s}#]*")
_SUM = re.compile(r"\s*#\s*")
_STYLE = re.compile(
    r"\\(?:emph|ce|text(?:it|bf|rm|sc|sf|tt|up|normal|subscript)|math(?:rm|it|bf|sf))(?=\s*\{)"
)
_FORMULA = re.compile(r"(?<!\\)\$([^$]+)\$")
_POWER = re.compile(r"\\textsuperscript\s*\{([^{}]*)\}")
# A blank that no line ends at; "~5", "5~6" and "/~me" stay.
_SPACE = re.compile(r"\\[,;: ]|(?<=[^\s(\\/\d])~(?=\S)|(?<=\d)~(?=[^\s\d])")
# What is lowered or raised in a formula: "CO_2", "10^{-3}"; "χ^2" stays.
_INDEX = re.compile(
    r"(?<![^\W\d_a-zA-Z])(?:\{\})?(?P<how>[_^])(?:\{(?P<all>[\w\s+*.,°−-]*)\}|(?P<one>[\w+*°−-]))"
)
_READABLE = re.compile(
    r"(?!\d[\d.,]*\s+[a-z]{2})[\w\s{}+*<>=≤≥≈±×·~().,/°⁺⁻−-]*"
)  # "$5 per" is none
_NAME = re.compile(rf"\\({'|'.join((*_RELATIONS, *_GREEK))})(?![a-zA-Z])")
_SIMPLE = re.compile(
    rf"(?=\s*\S)\s*(?:[a-zA-Z]|\\(?:{'|'.join(_GREEK)})(?![a-zA-Z]))?\s*"
    rf"(?:(?:[-+<>=]|\\(?:{'|'.join(_RELATIONS)})(?![a-zA-Z]))\s*-?[\d.,]*\s*)?"
)


class Entry(NamedTuple):
    """An entry of a file, or what is wrong with it."""

    line: int  # that it begins in, from 1
    kind: str  # such as ``article``
    key: str
    fields: dict[str, str]  # names in lower case
    error: str = ""


def read_bibtex(source: BinaryIO) -> Iterator[RawRecord]:
    """Read references with their common names, as `read_records` gives those of other forms."""
    for entry in read_entries("".join(decode_lines(source))):
        if entry.error or find_bad_byte(entry.fields.values()):
            yield RawRecord(entry.line, {}, entry.error or NOT_UTF8)
        else:
            yield to_reference(entry.line, _name_fields(entry))


def _name_fields(entry: Entry) -> dict[str, Any]:
    given = entry.fields
    is_arxiv = "arxiv" in (given.get("archiveprefix", "") + given.get("eprinttype", "")).lower()
    return {
        "key": entry.key,
        "title": given.get("title"),
        "abstract": given.get("abstract"),
        "authors": "; ".join(split_authors(given.get("author", ""))),
        "year": find_year([given.get("year", ""), given.get("date", "")]),
        "journal": given.get("journal") or given.get("journaltitle") or given.get("booktitle"),
        "arxiv": given.get("eprint") if is_arxiv else None,
        "type": entry.kind,
        **{name: given.get(name) for name in ("doi", "pmid", "url", "keywords", "pages")},
    }


def split_authors(names: str) -> list[str]:
    """Return the names of a field that joins them with "and"; "others" at its end is no name."""
    return [one for one in _AND.split(names.strip()) if one and one != _OTHERS]


def read_entries(text: str) -> Iterator[Entry]:
    """Yield the entries of a file in order, in time linear in its length."""
    # What ``@string`` defines is put in its place; comments and preambles are none.
    strings, ends = _Strings(len(text)), _match_braces(text)
    line, counted, at = 1, 0, 0
    while found := _ENTRY.search(text, at):
        line, counted = line + text.count("\n", counted, found.start()), found.start()
        end = _find_end(text, found.end(), ")") if found[2] else ends.get(found.end())
        kind = found[1].lower()
        at = found.end() if end is None else end
        if kind in _NO_PAPERS:
            if kind == "string" and end:
                fields, error = _try_fields(text[found.end() : at - 1], strings)
                strings.known |= fields
                if error:
                    yield Entry(line, kind, "", {}, error)
        elif end is None:
            yield Entry(line, kind, "", {}, "the entry is not closed")
        else:
            yield _read_entry(line, kind, text[found.end() : end - 1], strings)


class _Strings:
    """What ``@string`` defined; what is put in its place is at most some times the file's length.

    A name may be defined by another one twice over, and that by a third one: a few lines would
    stand for gigabytes.
    """

    def __init__(self, length: int) -> None:
        self.known: dict[str, str] = {}
        self._left = _LEAST_EXPANDED + _MOST_TIMES * length

    def expand(self, name: str) -> str:
        """Return what a name stands for; itself if it was not defined."""
        text = self.known.get(name.lower(), name)
        self._left -= len(text)
        if self._left < 0:
            raise InputError(
                f"the @string {name!r:.60} is not put in its place: with it they would have more "
                f"than {_MOST_TIMES} times as many characters as the file"
            )
        return text


def _try_fields(body: str, strings: _Strings) -> tuple[dict[str, str], str]:
    """Return fields, or none and what is wrong."""
    try:
        return _read_fields(body, strings), ""
    except InputError as error:
        return {}, str(error)


def _read_entry(line: int, kind: str, body: str, strings: _Strings) -> Entry:
    key = _KEY.match(body)
    if not key:
        return Entry(line, kind, "", {}, f"the entry has no key: {body!r:.60}")
    fields, error = _try_fields(body[key.end() :], strings)
    return Entry(line, kind, key[1], fields, error)


def _match_braces(text: str) -> dict[int, int]:
    """Return where each brace closes, by where its inside begins; none that an entry interrupts."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for mark in _BRACE.finditer(text):
        if mark[0] == "{":
            opened.append(mark.end())
        elif mark[0] == "}" and opened:
            ends[opened.pop()] = mark.end()
        elif mark[0] == "\n@":
            opened.clear()
    return ends


def _find_end(text: str, start: int, last: str | None = None) -> int | None:
    """Return where the brace that is open closes; None if another entry begins before."""
    # An entry in parentheses ends with its *last* one, outside of braces.
    depth = 0 if last else 1
    for mark in _BRACE.finditer(text, start):
        if mark[0] == "\n@":
            return None
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if not depth and mark[0] == (last or "}"):
            return mark.end()
    return None


def _read_fields(body: str, strings: _Strings) -> dict[str, str]:
    """Read fields; what is none between them, such as a stray brace, costs no other field."""
    fields: dict[str, str] = {}
    at = 0
    while found := _FIELD.match(body, at) or _skip_to_field(body, at):
        raw, at = _read_value(body, found.end(), strings)
        while more := _SUM.match(body, at):
            part, at = _read_value(body, more.end(), strings)
            raw += part
        name = found[1].lower()
        fields.setdefault(name, _unescape(raw) if name in _AS_IT_IS else write_plain(raw))
    return fields


def _skip_to_field(body: str, at: int) -> re.Match[str] | None:
    begin = _NEXT_FIELD.search(body, at)
    return _FIELD.match(body, begin.end()) if begin else None


def _read_value(body: str, at: int, strings: _Strings) -> tuple[str, int]:
    if body[at : at + 1] == "{":
        end = _find_end(body, at + 1) or len(body) + 1
        return body[at + 1 : end - 1], end
    if body[at : at + 1] == '"':
        end = _find_quote(body, at + 1)
        return body[at + 1 : end - 1], end
    bare = _BARE.match(body, at)
    word = bare[0] if bare else ""
    return strings.expand(word), at + len(word)


def _find_quote(body: str, start: int) -> int:
    """Return where a text in quotation marks ends; those in braces are part of it."""
    depth = 0
    for mark in _QUOTE.finditer(body, start):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if mark[0] == '"' and not depth:
            return mark.end()
    return len(body) + 1


def write_plain(raw: str) -> str:
    """Return TeX as text: accents as letters, without braces; what else is a formula stays."""
    text = _FORMULA.sub(_write_formula, _STYLE.sub("", _SPACE.sub(" ", raw)))
    text = _POWER.sub(lambda found: write_raised(_end_before(found), found[1]), text)
    text = _ACCENT.sub(lambda found: found[2] + _MARKS[found[1]], text)
    text = _LETTER.sub(lambda found: _LETTERS[found[1]], text)
    return unicodedata.normalize("NFC", _unescape(text.replace("---", "—").replace("--", "–")))


def _write_formula(found: re.Match[str]) -> str:
    """Return a formula of names, numbers, relations and indices as text, any other as it is."""
    symbols = {**_RELATIONS, **_GREEK}
    text = _NAME.sub(lambda name: symbols[name[1]], found[1])
    end = _end_before(found)
    if _SIMPLE.fullmatch(found[1]):
        return text
    text, n_written = _INDEX.subn(lambda one: _write_index(_end_before(one) or end, one), text)
    return text if n_written and _READABLE.fullmatch(text) else found[0]


def _write_index(before: str, found: re.Match[str]) -> str:
    text = found["one"] or found["all"]
    return text if found["how"] == "_" else write_raised(before, text)


def _end_before(found: re.Match[str]) -> str:
    return found.string[max(0, found.start() - 1) : found.start()]


def _unescape(raw: str) -> str:
    """Return a text in one line, without the braces that only group it."""
    return " ".join(_ESCAPED.sub(r"\1", _BRACES.sub("", raw)).split())
