"""The text of PDF files: pages as they are read aloud, without page headers and reference lists."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from deepera_graph.errors import InputError
from deepera_graph.retrieval.documents import article
from deepera_graph.retrieval.documents.article import Article, Section
from deepera_graph.retrieval.documents.pdf_pages import (
    IMAGE,
    PdfReader,
    check_pdf_reader,
    read_pages,
)
from deepera_graph.text.references import LOWER, SURNAME, UPPER

_BROKEN_WORD = re.compile(rf"([^\W\d_]+)(?:-|\u00ad|‐)\n([{LOWER}]+)")
_BROKEN_AT_END = re.compile(r"[^\W\d_](?:-|\u00ad|‐)\s*\Z")
_REST_OF_WORD = re.compile(rf"\s*([{LOWER}]+[.,;:)]*)(?!\S)")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_DOI = re.compile(r"10\.\d{4,9}/[^\s\"<>,;]+")
_REFERENCES = re.compile(rf"^{article.REFERENCES}$", re.IGNORECASE | re.MULTILINE)
_FIRST_ENTRY = re.compile(  # with a number, or an author's initials and a year
    r"\s*(?:(?:\[1\]|1[.)])\s"
    rf"|{SURNAME}(?:,\s*[{UPPER}]\.|\s[{UPPER}]{{1,3}}[,\s(])"
    r"[^\f]{0,300}?\b(?:19|20)\d\d)"
)
_AFTER_REFERENCES = re.compile(
    r"^(?:appendix|appendices|supplementary|supporting information|figure legends)\b.{0,60}$",
    re.IGNORECASE | re.MULTILINE,
)
_NO_TITLE = re.compile(
    r"untitled.*|microsoft word.*|pii\b.*|.*\.(?:docx?|tex|dvi|indd|pdf|rtf|odt|qxd|fm)|\S*",
    re.IGNORECASE,
)
_PAGE = re.compile(
    r"^[-–—\[( ]*\d+(?: ?(?:/|of) ?\d+)?[-–—\]) ]*$|^\d+\s+|\s+\d+$|(?<=\bpage )\d+", re.IGNORECASE
)
_N_EDGE_LINES = 2  # at the top and the bottom of a page, where a running head may stand
_LEAST_REPEATED = 3  # pages that bear the same line
_MOST_NAMED = 8


def read_pdf(file: Path, source: BinaryIO, reader: PdfReader = "pypdf") -> Article:
    """Read the text of a PDF file."""
    # Words broken at the end of a line are joined, unless the file has them with a hyphen
    # elsewhere. Lines that stand at the top or bottom of many pages, page numbers, and a list of
    # references at the end are left out; usual headings on lines of their own begin a section. A
    # page that cannot be read, or that is an image alone, costs itself alone.
    check_pdf_reader(reader, file)
    pages, bad, info = read_pages(file, article.read_whole(source, file), reader)
    n_pages = len(pages) + len(bad)
    clean = _join_broken_words(_drop_references(_drop_running_lines(list(pages.values()))))
    sections = tuple(_split_sections(dict(zip(pages, clean, strict=True))))
    if not sections:
        raise InputError(f"{file}: {_describe_no_text(n_pages, bad)}")
    first_page = article.join_words(next(iter(filter(str.strip, pages.values()))))
    return Article(
        sections=sections,
        title=_find_title(info),
        metadata=_find_metadata(info, first_page),
        unread=_describe_unread(bad, n_pages),
    )


def _describe_no_text(n_pages: int, bad: dict[int, str]) -> str:
    if bad and set(bad.values()) != {IMAGE}:
        return f"no page can be read: {next(iter(bad.values()))}"
    where = "its only page" if n_pages == 1 else f"any of its {n_pages} pages"
    return f"has no text on {where}; if it was scanned, have its text recognized (OCR) first"


def _describe_unread(bad: dict[int, str], n_pages: int) -> str:
    if not bad:
        return ""
    some = ", ".join(map(str, list(bad)[:_MOST_NAMED])) + ", …" * (len(bad) > _MOST_NAMED)
    causes = "; ".join(dict.fromkeys(bad.values()))
    pages = f"page {some}" if len(bad) == 1 else f"pages {some}"
    return f"{pages} of {n_pages} left out: {causes}"


def _drop_running_lines(pages: list[str]) -> list[str]:
    """Drop what stands at the top or bottom of at least three pages and a third of all."""
    counts = Counter(line for page in pages for line in {_mask(one) for one in _edges(page)})
    least = max(_LEAST_REPEATED, len(pages) / 3)
    return [
        "\n".join(
            line
            for place, line in enumerate(lines)
            if _N_EDGE_LINES <= place < len(lines) - _N_EDGE_LINES
            or (counts[_mask(line)] < least and not line.isdecimal())
        )
        for lines in map(_split_lines, pages)
    ]


def _split_lines(page: str) -> list[str]:
    return [line.strip() for line in page.splitlines() if line.strip()]


def _edges(page: str) -> list[str]:
    lines = _split_lines(page)
    return lines[:_N_EDGE_LINES] + lines[-_N_EDGE_LINES:]


def _mask(line: str) -> str:
    """Return what the running heads of several pages have in common: all but the page."""
    return _PAGE.sub("", line)


def _drop_references(pages: Sequence[str]) -> list[str]:
    """Drop the list of references at the end, with its heading."""
    whole = _join_whole(pages)
    found = _find_references(whole)
    if found is None:
        return list(pages)
    begin, _, end = found
    return (whole[:begin] + "\f" * whole.count("\f", begin, end) + whole[end:]).split("\f")


def _join_whole(pages: Sequence[str]) -> str:
    return "\n\f\n".join(page.replace("\f", " ") for page in pages)


def _find_references(whole: str) -> tuple[int, int, int] | None:
    """Return where the last heading "References" stands, and its list ends."""
    # It is one if it stands in the second half of the file, or an entry of a list begins below it.
    headings = [
        one
        for one in _REFERENCES.finditer(whole)
        if one.start() > len(whole) / 2 or _FIRST_ENTRY.match(whole, one.end())
    ]
    if not headings:
        return None
    after = _AFTER_REFERENCES.search(whole, headings[-1].start())
    return (*headings[-1].span(), after.start() if after else len(whole))


def read_reference_lines(file: Path, source: BinaryIO, reader: PdfReader = "pypdf") -> list[str]:
    """Return the lines of the list of references, which `read_pdf` leaves out; none without one."""
    check_pdf_reader(reader, file)
    pages, _, _ = read_pages(file, article.read_whole(source, file), reader)
    whole = _join_whole(_join_broken_words(_drop_running_lines(list(pages.values()))))
    found = _find_references(whole)
    return [] if found is None else _split_lines(whole[found[1] : found[2]].replace("\f", "\n"))


def _join_broken_words(pages: Sequence[str]) -> list[str]:
    """Join words broken at the end of a line; a hyphen that the file has elsewhere stays."""
    known = {word.lower() for page in pages for word in _WORD.findall(page)}

    def join(broken: re.Match[str]) -> str:
        whole, parted = broken[1] + broken[2], f"{broken[1]}-{broken[2]}"
        return parted if parted.lower() in known and whole.lower() not in known else whole

    whole = _join_pages(pages)
    return [_BROKEN_WORD.sub(join, page).replace("\u00ad", "") for page in whole]


def _join_pages(pages: Sequence[str]) -> list[str]:
    """Put the rest of a word that is broken at the end of a page on that page."""
    whole = list(pages)
    for at, (page, following) in enumerate(pairwise(pages)):
        rest = _REST_OF_WORD.match(following)
        if rest and _BROKEN_AT_END.search(page):
            whole[at] = f"{whole[at].rstrip()}\n{rest[1]}"
            whole[at + 1] = following[rest.end() :]
    return whole


def _split_sections(pages: dict[int, str]) -> Iterator[Section]:
    """Yield what stands under each heading; the headings are no part of the text."""
    name, parts = "", list[tuple[int, list[str]]]()
    for number, text in pages.items():
        parts.append((number, []))
        for line in text.splitlines():
            if heading := article.find_usual(line):
                yield from _join_lines(name, parts)
                name, parts = heading, [(number, [])]
            else:
                parts[-1][1].append(line)
    yield from _join_lines(name, parts)


def _join_lines(name: str, parts: Sequence[tuple[int, list[str]]]) -> Iterator[Section]:
    texts = [(number, article.join_words(" ".join(lines))) for number, lines in parts]
    if texts := [(number, text) for number, text in texts if text]:
        yield article.join_pages(name, texts)


def _find_title(info: dict[str, str]) -> str:
    """Return the title; many programs write the name of a file in its place, which is none."""
    title = article.join_words(info.get("Title", ""))
    return "" if _NO_TITLE.fullmatch(title) else title


def _find_metadata(info: dict[str, str], first_page: str) -> dict[str, Any]:
    """Return `authors`, if they have full names, and the DOI if the file names but one."""
    dois = _find_dois(" ".join(info.values())) or _find_dois(first_page)
    author = article.join_words(info.get("Author", ""))
    found = {"authors": author if " " in author else "", "doi": dois[0] if len(dois) == 1 else ""}
    return {name: value for name, value in found.items() if value}


def _find_dois(text: str) -> list[str]:
    dois = (one.rstrip(".)]}'") for one in _DOI.findall(text))
    return list({doi.lower(): doi for doi in dois}.values())
