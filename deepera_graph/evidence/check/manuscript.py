"""A manuscript: its claims and its list of references, from Word, LaTeX, Markdown, PDF or CSV."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deepera_graph.errors import InputError
from deepera_graph.evidence.check.citing import Claim, find_claims
from deepera_graph.evidence.check.fields import (
    LISTED,
    RAISED_NUMBERS,
    CitedItems,
    FieldReader,
    join_fields,
)
from deepera_graph.evidence.check.marks import ManuscriptParagraph, choose_cited
from deepera_graph.evidence.check.references import (
    CitedName,
    Reference,
    ReferenceIndex,
    read_bibliography,
    read_printed,
    split_entries,
    write_notes,
)
from deepera_graph.evidence.check.tex import mark_citations, read_tex
from deepera_graph.evidence.plain import PlainRecord
from deepera_graph.literature.paper_keys import title_key
from deepera_graph.literature.same_study import list_ids
from deepera_graph.passages import MOST_QUESTION, field_key
from deepera_graph.retrieval.documents import DOCX
from deepera_graph.retrieval.documents.article import (
    Block,
    build_article,
    decode,
    is_references,
    take_title,
)
from deepera_graph.retrieval.documents.docx import read_docx_blocks
from deepera_graph.retrieval.documents.markdown import read_markdown_blocks
from deepera_graph.retrieval.documents.pdf import read_pdf, read_reference_lines
from deepera_graph.retrieval.documents.pdf_pages import PdfReader
from deepera_graph.text.jsonl import open_records, suffix_of
from deepera_graph.text.plain import write_raised
from deepera_graph.text.records import TABLES, read_records
from deepera_graph.text.references import UPPER

_SQUARED = re.compile(r"(?:\b(?:[a-z]?m|chi|ft|in)|\b[A-Za-zΑ-ω])\Z", re.IGNORECASE)
_LINKED = re.compile(r"(?<!\[)(\[\d{1,4}(?:\s*[-–,]\s*\d{1,4})*\])\(#[^()\s]*\)")  # ``[1](#ref-1)``
_CAPTION = re.compile(r"(?:supplementary\s+)?(?:table|fig(?:ure|\.)?)\s+[a-z]?\d", re.IGNORECASE)
FORMS = (DOCX, ".tex", ".md", ".markdown", ".pdf", ".csv", ".tsv")
_ID = re.compile(  # of a work, or a key with a number in it
    r"(?:(?:doi|pmid|arxiv):?\s*)?(?:[^\W\d]\S*\d\S*|10\.\d{4,9}/\S+|\d{5,9}|\d{4}\.\d{4,5})",
    re.IGNORECASE,
)
MANY = 400  # references, from which on it is said how long the work is
_CLAIM_FIELDS = ("claim", "statement", "sentence", "text", "assertion")
_REFERENCE_FIELDS = (
    *("reference", "citation", "cited", "ref", "citedwork", "cites", "source", "work", "paper"),
    *("doi", "pmid", "citationkey", "citekey", "bibkey", "key", "title"),
)
BIB_HINT = "; --bib names a file of them, also one that is a SOURCE"  # on the command line


@dataclass(frozen=True, slots=True, kw_only=True)
class Manuscript(PlainRecord):
    """What a manuscript says, and what it cites."""

    path: Path  # of the file
    title: str  # as far as the file says it
    claims: tuple[Claim, ...]  # sentences with citations, in order
    references: tuple[Reference, ...]  # the list of references, in order
    duplicates: tuple[tuple[str, ...], ...] = ()  # groups of references to one work, by their keys
    uncited: tuple[str, ...] = ()  # keys of references that no sentence cites
    faults: tuple[str, ...] = ()  # rows of a table that were not read, and why

    @property
    def n_pairs(self) -> int:
        """How many pairs of a claim and a reference there are."""
        return sum(len(one.keys) for one in self.claims)


def read_manuscript(
    path: str | Path,
    *,
    bibliography: str | Path | None = None,
    works: Iterable[Reference] = (),
    pdf_reader: PdfReader = "pypdf",
) -> Manuscript:
    """Read a manuscript.

    - ``.docx``: citations as numbers in brackets or raised, or as names and years, and a list under
      a heading such as "References"; of Zotero and Mendeley, the data that they keep in it.
    - ``.tex``: commands such as ``\\cite``, and the ``.bib`` that the file names, or
      ``thebibliography``.
    - ``.md``: ``[@key]`` with the `bibliography` of its front matter, or numbers (in brackets,
      or raised as ``<sup>2</sup>``, ``^2^`` or ``²``) or names and a list under a heading.
    - ``.pdf``: numbers in brackets or raised, or names and years, and a list under a heading.
    - ``.csv``, ``.tsv``: columns `claim` and `reference` (a DOI, a title, a key or a whole entry).

    Args:
        path: Of the manuscript.
        bibliography: File of references (BibTeX, RIS, CSL-JSON), in place of the one that the
            manuscript names or prints.
        works: Which the keys of a manuscript without references name; not read if it has any.
        pdf_reader: ``"pypdf"`` or ``"pdfium"``.

    Raises:
        InputError: The file is missing, of another kind, scanned or broken; or it has no
            references, or nothing in it cites any.
        SettingsError: The package that reads it is not installed.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"no such manuscript: {str(path)!r}")
    form, faults = suffix_of(path), list[str]()
    if form not in FORMS:
        raise InputError(f"{path}: a manuscript must be {', '.join(FORMS)}, got {form or 'none'!r}")
    given = None if bibliography is None else read_bibliography(Path(bibliography))
    if form in TABLES:
        title, claims, references, faults = _read_pairs(path, given)
    else:
        fields = list[CitedItems]()
        if form == DOCX:
            (title, paragraphs, named, printed), fields = _read_docx(path)
        else:
            title, paragraphs, named, printed = _READERS[form](path, given is None, pdf_reader)
        named = named if given is None else given
        references, cited = join_fields(fields, named or printed)
        references = references or choose_cited(paragraphs, works)
        if not references:
            raise InputError(
                f"{path}: no references found: it has no list under a heading such as References"
                + (", and names no .bib file" if form in (".tex", ".md") else "")
                + BIB_HINT
            )
        index = ReferenceIndex(references, cited, printed if named else ())
        title, claims = index.show(title), find_claims(paragraphs, index)
        references += index.list_used(key for one in claims for key in one.keys)
    if not claims:
        raise InputError(
            f"{path}: nothing cites any of its {len(references)} references; known are [3], [3-7], "
            "raised numbers, (Lee et al., 2019), [@key] and \\cite{key}"
        )
    keys = {key for one in claims for key in one.keys}
    return Manuscript(
        path=path,
        title=title,
        claims=tuple(claims),
        references=tuple(references),
        duplicates=tuple(
            tuple(one.key for one in group) for group in ReferenceIndex(references).duplicates()
        ),
        uncited=tuple(one.key for one in references if one.key not in keys),
        faults=tuple(faults),
    )


def name_bibliographies(path: Path) -> list[str]:
    """Return the files of references that a manuscript names and would be read for them."""
    form = suffix_of(path)
    if form in (".md", ".markdown"):
        with path.open("rb") as source:
            named = read_markdown_blocks(path, source)[1].get("bibliography") or []
        return [str(one) for one in (named if isinstance(named, list) else [named])]
    if form != ".tex":
        return []
    found = read_tex(path)
    return [] if found.printed else [one.name for one in found.bibliographies]


@contextmanager
def as_file(text: str) -> Iterator[Path]:
    """Give a text in Markdown as a manuscript; it can name no file of references."""
    with TemporaryDirectory(prefix="deepera-") as folder:
        path = Path(folder, "manuscript.md")
        path.write_text(text, encoding="utf-8", errors="replace")
        if named := name_bibliographies(path):
            named_first = named[0] if len(named) == 1 else named
            raise InputError(
                f"a text has its references under a heading, no file {named_first!r:.80}"
            )
        try:
            yield path
        except InputError as error:
            raise InputError(str(error).replace(str(path), "manuscript")) from error


# Title and text, and the references of files that it names, and those that it prints.
Read = tuple[str, list[ManuscriptParagraph], list[Reference], list[Reference]]


def _read_docx(path: Path) -> tuple[Read, list[CitedItems]]:
    fields = FieldReader()
    with path.open("rb") as source:
        blocks, title, _ = read_docx_blocks(path, source, _write_raised, fields.take)
    return _read_blocks(blocks, title), fields.citations


def _read_markdown(path: Path, wants_list: bool, pdf_reader: PdfReader) -> Read:
    text = _LINKED.sub(r"\1", decode(path.read_bytes(), path))
    text, notes = write_notes(mark_citations(text))
    blocks, about, _ = read_markdown_blocks(
        path, BytesIO(text.encode()), keep_lines=True, raise_text=_write_raised
    )
    named = about.get("bibliography")
    title, paragraphs, _, printed = _read_blocks(blocks, str(about.get("title", "")))
    if named and wants_list:
        files = named if isinstance(named, list) else [named]
        listed = [one for file in files for one in read_bibliography(path.parent / str(file))]
        return title, paragraphs, listed, [*printed, *notes]
    return title, paragraphs, [], [*printed, *notes]


def _read_tex(path: Path, wants_list: bool, pdf_reader: PdfReader) -> Read:
    found = read_tex(path)
    references = [Reference.of_text(key, text) for key, text in found.printed]
    if not references and wants_list:
        references = [one for file in found.bibliographies for one in read_bibliography(file)]
    paragraphs = _read_blocks(found.blocks, found.title, is_titled=bool(found.title))[1]
    return found.title, paragraphs, [], references


def _read_pdf(path: Path, wants_list: bool, pdf_reader: PdfReader) -> Read:
    with path.open("rb") as source:
        article = read_pdf(path, source, pdf_reader)
    with path.open("rb") as source:
        lines = read_reference_lines(path, source, pdf_reader)
    paragraphs = []
    for section in article.sections:
        starts = [*section.starts, len(section.text)]
        page_of = dict(zip(section.starts, section.pages, strict=True))
        cuts = _end_sentences(section.text, starts[1:-1])
        for begin, end in zip([0, *cuts], [*cuts, len(section.text)], strict=True):
            page = max((start for start in page_of if start <= begin), default=0)
            text = section.text[begin:end].strip()
            paragraphs.append(ManuscriptParagraph(text, section.name, str(page_of.get(page, ""))))
    return article.title, paragraphs, [], read_printed(lines, wrapped=True)


def _end_sentences(text: str, starts: Iterable[int]) -> list[int]:
    """Return where the sentence ends in which each page begins, so that none is cut."""
    ends = (
        re.compile(rf"[.!?]\s+(?=[{UPPER}])").search(text, max(start - 2, 0)) for start in starts
    )
    return sorted({end.end() for end in ends if end})


_READERS: dict[str, Any] = {
    ".tex": _read_tex,
    ".md": _read_markdown,
    ".markdown": _read_markdown,
    ".pdf": _read_pdf,
}


def _write_raised(before: str, text: str) -> str:
    """Write a raised number as a citation where it follows a word or a stop, no digit or unit."""
    is_power = before[-1:].isdigit() or not before.strip() or _SQUARED.search(before)
    if is_power or not RAISED_NUMBERS.fullmatch(text):
        return write_raised(before, text)
    return f"[{text.strip()}]"


def _read_blocks(blocks: Sequence[Block], title: str, *, is_titled: bool = False) -> Read:
    """Tell the text from the list of references; where it *is_titled*, no heading is the title."""
    levels = [one.level or (1 if is_references(one.text) else 0) for one in blocks]
    blocks = [one._replace(level=level) for one, level in zip(blocks, levels, strict=True)]
    body, printed, inside = list[Block](), list[str](), 0
    for block in blocks:
        if inside and _CAPTION.match(block.text):
            body.append(Block("Figures and tables", inside))
            inside = 0
        body += [block] if LISTED not in block.text else []
        if block.level and (not inside or block.level <= inside):
            inside = block.level if is_references(block.text) else 0
        elif (inside or LISTED in block.text) and block.text.strip():
            printed += split_entries(block.text.replace(LISTED, ""), block.number)
    if not is_titled:
        body, title = take_title(body, title)
    article = build_article(body, title, {})
    sections = article.sections if article else ()
    paragraphs = [
        ManuscriptParagraph(" ".join(text.split()), section.name)
        for section in sections
        for text in section.text.split("\n\n")
    ]
    return "" if is_references(title) else title, paragraphs, [], read_printed(printed)


def _read_pairs(
    path: Path, given: Sequence[Reference] | None
) -> tuple[str, list[Claim], list[Reference], list[str]]:
    """Read a table of claims and references, and say what is no row of it; equal ones are one."""
    listed = _TableReferences(given)
    claims, faults = list[Claim](), list[str]()
    with open_records(path) as (source, _):
        for row in read_records(source, suffix_of(path), are_last=_are_references):
            fields = {field_key(name): value for name, value in row.fields.items()}
            claim = _first(fields, _CLAIM_FIELDS)
            cited = _first(fields, _REFERENCE_FIELDS)
            fault = row.error if not fields else ""
            if not fault and not claim:
                fault = (
                    f"needs a claim and a reference, has {', '.join(row.fields) or 'nothing':.200}"
                )
            elif len(claim) > MOST_QUESTION:
                most = f"at most {MOST_QUESTION} characters"
                fault = f"a claim must have {most}, got {len(claim)}"
            if fault:
                faults.append(f"line {row.number}: {fault}")
                continue
            keys = [listed.find(one) for one in _split_cell(cited)]
            claims.append(
                Claim(number=len(claims) + 1, sentence=claim, statement=claim, keys=tuple(keys))
            )
    if not claims:
        fault = f", {faults[0]}" if faults else ": has no row with a claim"
        raise InputError(f"{path}{fault}")
    if not listed.references:
        known = "column `reference`, `doi`, `key` or `title`"
        raise InputError(f"{path}: no references found: it has no {known}, or it is empty")
    return "", claims, list(listed.references.values()), faults


def _are_references(column: str, cells: Sequence[str]) -> bool:
    """Tell whether cells from the last column on are references."""
    return field_key(column) in _REFERENCE_FIELDS and all(map(_is_reference, filter(None, cells)))


def _is_reference(text: str) -> bool:
    """Tell whether a text is names and a year, or an id or a key, and nothing else."""
    return bool(_ID.fullmatch(text.strip()) or CitedName.read(text))


def _split_cell(cited: str) -> list[str]:
    """Return what a cell cites: ``(Lee, 2019; Roy et al., 2020)`` is two works."""
    bare = re.sub(r"\A\s*\(([^()]*)\)\s*\Z", r"\1", cited)
    for sign in (
        ";",
        r",(?<=\d\),)|,(?=\s*\S{5,}\s*(?:,|\Z))",
    ):  # "(2019), Roy (2020)", "lee2019, roy2020"
        parts = [*filter(None, map(str.strip, re.split(sign, bare)))]
        if len(parts) > 1 and all(map(_is_reference, parts)):
            return list(dict.fromkeys(parts))
    return [cited]


class _TableReferences:
    """The references of a table: those *given*, or else what its cells cite."""

    def __init__(self, given: Sequence[Reference] | None) -> None:
        self._given = list(given or ())
        self._is_open = given is None
        self.references = {one.key: one for one in self._given}
        sources = [(one.key, one.source) for one in self._given]
        self._by_title = {title_key(one.title): key for key, one in sources if one.title}
        self._by_id = {id: key for key, one in sources for id in list_ids(one)}

    def find(self, cited: str) -> str:
        """Return the key of what a cell cites; what it says if there is none."""
        ids = list_ids(Reference.of_text(cited, cited).source) if self._by_id else ()
        known = (self._by_id[id] for id in ids if id in self._by_id)
        key = next(known, self._by_title.get(title_key(cited), cited))
        if not key or key in self.references:
            return key
        if self._is_open:
            self.references[key] = _read_cell(key)
            return key
        named = CitedName.read(cited)
        places = named.choose([one.source for one in self._given]) if named else []
        if len(places) == 1:
            return self._given[places[0]].key
        if places:
            keys = " or ".join(self._given[place].key for place in places)
            text = f"{cited}, which may be {keys}"
            self.references[cited] = replace(_read_cell(cited), text=text)
        return cited


def _first(fields: dict[str, Any], names: Sequence[str]) -> str:
    forms = (form for name in names for form in (name, f"{name}s", f"{name}text", f"{name}id"))
    found = (str(fields[name]).strip() for name in forms if fields.get(name) is not None)
    return next(filter(None, found), "")


def _read_cell(text: str) -> Reference:
    """Read a reference of a cell: an entry, an id, or else a title."""
    found = Reference.of_text(text, text)
    if named := CitedName.read(text):
        source = replace(found.source, title="", year=named.year)
        return replace(found, source=source)
    if found.source.doi or found.source.pmid or (found.source.title and found.source.year):
        return found
    return Reference.of_fields(text, {"title": text})
