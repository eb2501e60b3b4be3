"""Sources as reference managers read them: BibTeX and RIS."""

import re
from collections.abc import Iterable
from itertools import chain, count
from unicodedata import normalize
from urllib.parse import quote

from deepera_graph.literature.citation import Citation
from deepera_graph.literature.paper_keys import invert_name
from deepera_graph.text.plain import in_one_line, replace_controls

_FILE = re.compile(
    r"\.(?:jsonl?|ndjson|csv|tsv|xlsx|ris|nbib|bib|xml|html?|md|txt|tex|pdf|docx?)(?:\.gz)?$",
    re.IGNORECASE,
)
_LONG_WORD = re.compile(r"[a-z]{4,}")


def write_bibtex(sources: Iterable[tuple[Citation, str]]) -> str:
    """Return an entry a source, each with a note of its own; keys are in no two entries."""
    taken: set[str] = set()
    return "\n".join(_bibtex_of(source, note, taken) for source, note in sources)


def write_ris(records: Iterable[tuple[Citation, str, str]]) -> str:
    """Return a record of the RIS format a source, each with a note and an abstract, or empty ones.

    Source: the tags as reference managers export and read them, `JOUR` for what has a journal.
    """
    return "".join(_ris_of(*one) for one in records)


def _ris_of(source: Citation, note: str, abstract: str) -> str:
    rows = [
        ("TY", "JOUR" if source.venue else "GEN"),
        ("TI", source.title or str(source)),
        *(("AU", invert_name(author)) for author in source.authors),
        ("PY", source.year),
        ("JO", source.venue),
        ("DO", source.doi),
        ("UR", source.link),
        ("AB", abstract),
        ("N1", note),
        ("ID", source.id),
    ]
    lines = [f"{name}  - {in_one_line(text)}" for name, text in rows if text]
    return "\n".join([*lines, "ER  - "]) + "\n\n"


def _bibtex_of(source: Citation, note: str, taken: set[str]) -> str:
    fields = {
        "title": source.title,
        "journal": source.venue,
        "year": source.year,
        "doi": source.doi,
        "pmid": source.pmid,
        "url": source.url,
        "howpublished": "" if source.link or _is_file(source) else source.source,
        "annote": note,
    }
    plain = ("doi", "pmid", "url")
    authors = " and ".join(map(_bibtex_name, source.authors))
    lines = [f"  author = {{{authors}}},"] if authors else []
    lines += [
        f"  {name} = {{{_encode_address(value) if name in plain else _escape_tex(value)}}},"
        for name, value in fields.items()
        if value
    ]
    kind = "article" if source.venue else "misc"
    return "\n".join([f"@{kind}{{{_bibtex_key(source, taken)},", *lines, "}"]) + "\n"


def _is_file(source: Citation) -> bool:
    """Tell whether what is known of a work is more than the file that it was read from."""
    return bool(source.title and _FILE.search(source.source))


def _bibtex_name(author: str) -> str:
    """Return a name as BibTeX reads it: family name first, a group in braces as one word."""
    name = _escape_tex(invert_name(author))
    return f"{{{name}}}" if " " in name and "," not in name else name


def _bibtex_key(source: Citation, taken: set[str]) -> str:
    """Return its own key, else one of family name, year and a long word of the title; each once."""
    # An id such as hansen2014 with the year of the work is one's own key, by which drafts cite it.
    words = [word for one in source.authors[:1] for word in invert_name(one).split(",")[0].split()]
    name = words[-1] if words else ""
    word = _LONG_WORD.search(_to_ascii(source.title))
    stem = _to_ascii(name) + source.year + (word.group() if word else "")
    is_key = source.year and re.fullmatch(
        rf"[A-Za-z]{{2,40}}[-_]?{source.year}[A-Za-z]{{0,20}}", source.id
    )
    stem = source.key or (source.id if is_key else stem) or _to_ascii(source.id) or "passage"
    numbered = (f"{stem}-{n}" for n in count(2))
    key = next(one for one in chain([stem], numbered) if one not in taken)
    taken.add(key)
    return key


def _to_ascii(text: str) -> str:
    plain = normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9 ]", "", plain.lower()).strip()


_TEX = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)
_OF_NO_ADDRESS = re.compile(r"[\s\\{}]")


def _encode_address(address: str) -> str:
    """Return an address or identifier that cannot end its field: RFC 3986, 2.1."""
    return _OF_NO_ADDRESS.sub(
        lambda found: quote(found.group(), errors="replace"), replace_controls(address)
    )


def _escape_tex(text: str) -> str:
    return in_one_line(text).translate(_TEX)
