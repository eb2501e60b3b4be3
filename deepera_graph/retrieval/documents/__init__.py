"""Documents, each one text or a few: a file here a form, and the one table of suffixes."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from deepera_graph.errors import InputError
from deepera_graph.retrieval.documents.article import (
    N_LOOKED_AT,
    Article,
    Block,
    build_article,
    check_article,
    decode,
    find_mark,
    peek,
    read_whole,
)
from deepera_graph.text.jsonl import suffix_of
from deepera_graph.text.records import CSV, NBIB, RIS, begins_table

PDF, DOCX, HTML, MARKDOWN, JATS, TEXT = ".pdf", ".docx", ".html", ".md", ".xml", ".txt"
FORMS = {  # the suffixes of documents, and the form that each stands for
    PDF: PDF,
    DOCX: DOCX,
    HTML: HTML, ".htm": HTML, ".xhtml": HTML,
    MARKDOWN: MARKDOWN, ".markdown": MARKDOWN,
    JATS: JATS, ".nxml": JATS,
    TEXT: TEXT,
}  # fmt: skip
LOOKED_INTO = ("", ".doc", ".dat")  # suffixes that say little: the content decides
_READERS = {DOCX: "docx", HTML: "html", MARKDOWN: "markdown"}
_TAGGED = (*FORMS, *LOOKED_INTO)
_PDF_MARK = b"%PDF-"
_START = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*", re.DOTALL)
_IS_HTML = re.compile(rb"<(?:!doctype\s+)?html\b", re.IGNORECASE)
_IS_JATS = re.compile(rb"<(?:!DOCTYPE\s+)?(?:article|pmc-articleset)\b")


def find_form(file: Path, source: BinaryIO) -> str:
    """Return the suffix of what a file is: what its content says if that is sure, else its own."""
    # Many a `.pdf` is a page of HTML that a publisher sent instead; that is an error, as it is not
    # what was meant.
    suffix, head = suffix_of(file), peek(source)
    if head.lstrip().startswith(_PDF_MARK) or (suffix == PDF and _PDF_MARK in head):
        return PDF
    if suffix not in _TAGGED:
        return suffix
    if head.startswith(b"PK\x03\x04"):
        return DOCX
    found = _find_tagged(head)
    if found == HTML and suffix in {PDF, DOCX, ".doc"}:
        kind = suffix[1:].upper()
        hint = "if it is what you want, name it .html"
        raise InputError(
            f"{file}: a page of HTML and no {kind}, maybe one that leads to it; {hint}"
        )
    if not found and suffix in {TEXT, *LOOKED_INTO} and _is_table(head):
        return CSV
    own = FORMS.get(suffix, suffix)
    return own if own == HTML else found or own  # an `article` of HTML begins as one of JATS does


def _find_tagged(head: bytes) -> str:
    """Return the form of a text that says what it is; else nothing."""
    begin = head[_START.match(head).end() :] if _START.match(head) else head  # type: ignore[union-attr]
    if _IS_HTML.match(begin):
        return HTML
    if _IS_JATS.match(begin):
        return JATS
    tags = {b"PMID- ": NBIB, b"TY  - ": RIS}
    return next((form for tag, form in tags.items() if begin.startswith(tag)), "")


def _is_table(head: bytes) -> bool:
    text = head.decode(find_mark(head) or "utf-8", "replace")
    return begins_table(text, whole=len(head) < N_LOOKED_AT)


def read_document(
    file: Path, source: BinaryIO, form: str, *, pdf_reader: Any = "pypdf"
) -> Iterator[Article]:
    """Read the articles of a document; only XML may hold several."""
    module = f"{__name__}.{_READERS.get(form, '')}"
    if form == PDF:
        yield import_module(f"{__name__}.pdf").read_pdf(file, source, pdf_reader)
    elif form == JATS:
        yield from import_module(f"{__name__}.jats").read_jats(file, source)
    elif form == TEXT:
        yield _read_text(file, source)
    else:
        read = getattr(import_module(module), f"read_{_READERS[form]}")
        yield read(file, source)


def _read_text(file: Path, source: BinaryIO) -> Article:
    text = decode(read_whole(source, file), file)
    return check_article(build_article([Block(text)], "", {}), f"{file}: the file is empty")
