"""References of papers: RIS, PubMed's own format, and CSL, which citation managers share."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from deepera_graph.text.jsonl import NOT_UTF8, RawRecord, decode_lines, find_bad_byte
from deepera_graph.text.plain import clean_markup


def _list_letters(*, upper: bool) -> str:
    """Return the letters of one case, of Latin, Greek, Cyrillic and others: ``A...ZÀ...ŠŁŌ...``."""
    letters = map(chr, range(0x2C00))
    return "".join(one for one in letters if (one.isupper() if upper else one.islower()))


UPPER, LOWER = _list_letters(upper=True), _list_letters(upper=False)  # of a class: ``[{UPPER}]``

NO_ABSTRACT = "has no abstract"
# What stands before a surname and is of it: ``van der Berg``, ``d'Alembert``, ``al-Khatib``.
PARTICLES = (
    r"(?:(?<!\w)(?:[Vv]an|[Vv]on|[Dd]e|[Dd]er|[Dd]en|[Dd]el|[Dd]ell[ao]|[Dd]as?|[Dd]i|[Dd]u|[Dd]os|do"
    r"|[Ll]a|[Ll]e|[Ee]l|[Aa]l|[Tt]er|ten|te|zum?|zur|af|av|[Bb]in|[Ii]bn|Ó|St\.?|['’]t)\s+)*"
    r"(?:(?<!\w)(?:(?:d|dell|l)['’]|(?:al|el|as|ash|an|at|ar|ad|az|ul)[-‐‑]))?"
)
WITHIN_NAME = "\\w'’‐‑\u0300-\u036f-"  # of a class; accents may stand behind their letters
SURNAME = rf"{PARTICLES}[{UPPER}][{WITHIN_NAME}]+"  # as lists of references print it
_NBIB_LINE = re.compile(r"(?=.{4}- )([A-Z]{2,4}) *- (.*)")
_NBIB_DOI = re.compile(r"(\S+) \[doi\]")
_RIS_LINE = re.compile(r"([A-Z][A-Z0-9])  - ?(.*)")
_RIS_PREAMBLE = re.compile(r"(?:Provider|Database|Content) ?:")  # as some publishers begin a file
_RIS_FIELDS = {
    "key": ("ID",),
    "title": ("TI", "T1", "BT", "CT"),
    "journal": ("JF", "T2", "JO", "JA", "J2"),
    "url": ("UR",),
    "type": ("TY",),
}
_RIS_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi: *)?(10\.\d{4,9}/\S+)", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")
_NAME_PARTS = ("non-dropping-particle", "family", "given", "literal")


def read_nbib(source: BinaryIO) -> Iterator[RawRecord]:
    """Read records of PubMed, each begun by its ``PMID``; long values go on in indented lines."""
    # Source: https://www.nlm.nih.gov/bsd/mms/medlineelements.html
    for number, lines in _group_records(decode_lines(source), "PMID"):
        values, strange = _read_tags(lines, _NBIB_LINE, "      ")
        error = f"not a record of PubMed: {strange!r:.80}" if strange else ""
        yield _to_record(number, lines, error or _name_nbib_fields(values))


def read_ris(source: BinaryIO) -> Iterator[RawRecord]:
    """Read references, each from ``TY`` to ``ER``; a line without a tag goes on with a value."""
    # Which tag holds a title or a journal differs between programs; of several the fullest counts.
    # Source: https://en.wikipedia.org/wiki/RIS_(file_format), and exports of Zotero, EndNote,
    # Mendeley
    lines = ("\n" if _RIS_PREAMBLE.match(line) else line for line in decode_lines(source))
    for number, group in _group_records(lines, "TY  -", "ER  -"):
        values, strange = _read_tags(group, _RIS_LINE, "")
        strange = strange or ("" if "TY" in values else group[0])
        error = f"not a reference in RIS: {strange!r:.80}" if strange else ""
        yield _to_record(number, group, error or _name_ris_fields(values))


def _group_records(
    lines: Iterable[str], first: str, last: str | tuple[str, ...] = ()
) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of each record but blank ones, and the number of the line it begins in."""
    begun, group = 1, list[str]()
    for number, line in enumerate(lines, start=1):
        if line.startswith(first) and group:
            yield begun, group
            group = []
        if line.strip():
            begun = begun if group else number
            group.append(line.rstrip())
        if line.startswith(last):
            yield begun, group
            group = []
    if group:
        yield begun, group


def _read_tags(
    lines: Sequence[str], tagged: re.Pattern[str], indent: str
) -> tuple[dict[str, list[str]], str]:
    """Return the values of each tag, and the first line that is none and goes on with none."""
    values: dict[str, list[str]] = {}
    tag = ""
    for line in lines:
        if found := tagged.fullmatch(line):
            tag = found[1]
            values.setdefault(tag, []).append(found[2].strip())
        elif tag and line.startswith(indent):
            values[tag][-1] = f"{values[tag][-1]} {line.strip()}".lstrip()
        else:
            return values, line
    return values, ""


def _to_record(number: int, lines: Sequence[str], found: dict[str, Any] | str) -> RawRecord:
    """Return a record of the fields that were *found*, or of an error."""
    if isinstance(found, str):
        return RawRecord(number, {}, found)
    if find_bad_byte(lines):
        return RawRecord(number, {}, NOT_UTF8)
    return to_reference(number, found)


def to_reference(number: int, found: dict[str, Any]) -> RawRecord:
    """Return a record of the fields that have a value; one without an abstract says so."""
    fields = {name: value for name, value in found.items() if value}
    return RawRecord(number, fields, "" if "abstract" in fields else NO_ABSTRACT)


def _name_nbib_fields(values: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    names = {"PMID": "pmid", "TI": "title", "AB": "abstract", "JT": "journal"}
    dois = map(_NBIB_DOI.fullmatch, [*values.get("LID", ()), *values.get("AID", ())])
    return {
        **{name: values[tag][0] for tag, name in names.items() if tag in values},
        "year": find_year(values.get("DP", ())),
        "authors": "; ".join(values.get("FAU", values.get("AU", ()))),
        "doi": next((doi[1] for doi in dois if doi), None),
    }


def _name_ris_fields(values: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    def gather(*tags: str) -> list[str]:
        return [value for tag in tags for value in values.get(tag, ()) if value]

    dois = map(_RIS_DOI.fullmatch, gather("DO", "UR", "M3", "L3"))
    return {
        **{name: next(iter(gather(*tags)), None) for name, tags in _RIS_FIELDS.items()},
        "abstract": " ".join(gather("AB") or gather("N2")),
        "year": find_year(gather("PY", "Y1", "DA")),
        "authors": "; ".join(gather("AU") or gather("A1")),
        "doi": next((doi[1] for doi in dois if doi), None),
        "keywords": "; ".join(gather("KW")),
    }


def find_year(dates: Iterable[str]) -> int | None:
    """Return the first year, from 1500 to 2099, that a date names."""
    years = map(_YEAR.search, dates)
    return next((int(year[0]) for year in years if year), None)


def name_csl_fields(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fields of a reference in CSL-JSON under their common names; None if it is none."""
    # Zotero, Mendeley and pandoc write it, and doi.org gives it; Crossref has titles as lists, and
    # abstracts with tags of JATS.
    # Source: https://docs.citationstyles.org/en/stable/specification.html#appendix-iv-variables
    if not (_is_csl_date(item.get("issued")) or "container-title" in item):
        return None
    named = {"type": "type", "DOI": "doi", "PMID": "pmid", "PMCID": "pmcid", "URL": "url",
             "page": "pages", "volume": "volume", "keyword": "keywords"}  # fmt: skip
    return {
        "title": _first_text(item.get("title")),
        "abstract": clean_markup(_first_text(item.get("abstract"))),
        "authors": "; ".join(filter(None, map(_name_author, _list(item.get("author"))))),
        "year": _find_csl_year(item.get("issued")),
        "journal": _first_text(item.get("container-title")),
        "key": item.get("citation-key") or item.get("id"),
        **{ours: _first_text(item.get(theirs)) for theirs, ours in named.items()},
    }


def _is_csl_date(value: Any) -> bool:
    return isinstance(value, Mapping) and not {"date-parts", "raw", "literal"}.isdisjoint(value)


def _find_csl_year(issued: Any) -> int | None:
    if not isinstance(issued, Mapping):
        return None
    parts: Any = issued.get("date-parts")
    while isinstance(parts, list):
        parts = parts[0] if parts else None
    return find_year(map(_first_text, (parts, issued.get("raw"), issued.get("literal"))))


def _first_text(value: Any) -> str:
    """Return a text or a number as text, of a list its first; else nothing."""
    if isinstance(value, list):
        value = value[0] if value else ""
    return str(value).strip() if isinstance(value, str | int) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _name_author(author: Any) -> str:
    if not isinstance(author, Mapping):
        return ""
    particle, family, given, literal = (
        one if isinstance(one := author.get(part), str) else "" for part in _NAME_PARTS
    )
    family = " ".join(filter(None, (particle, family)))
    return ", ".join(filter(None, (family, given))) or literal
