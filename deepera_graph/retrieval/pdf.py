"""The text of PDF files: pages as they are read aloud, without page headers and reference lists."""

import io
import logging
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from deepera_graph.errors import InputError
from deepera_graph.packages import call_foreign, check_extra, describe_error, import_extra

PDF = ".pdf"
_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "\0": ""}
)
_BROKEN_WORD = re.compile(r"([^\W\d_]+)(?:-|\u00ad|‐)\n([a-zà-ÿ]+)")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_DOI = re.compile(r"10\.\d{4,9}/[^\s\"<>,;]+")
_REFERENCES = re.compile(
    r"^(?:\d+\.? +)?(?:references|bibliography|literature cited|works cited|references and notes)"
    r"[ :.]*$",
    re.IGNORECASE | re.MULTILINE,
)
_HEADINGS = """
    abstract|summary|introduction|background|methods?|methodology|(?:materials?|patients?|subjects?)
    and methods?|methods? and materials?|experimental|experimental section|results|findings
    |results and discussion|discussion|conclusions?|discussion and conclusions?|limitations
    |acknowledge?ments?|funding|(?:conflicts?|competing)(?: of)? interests?
    """
_HEADING = re.compile(
    rf"(?:\d+(?:\.\d+)*\.? )?({' '.join(_HEADINGS.split()).replace(' |', '|')})[ :.]*",
    re.IGNORECASE,
)
_AFTER_REFERENCES = re.compile(
    r"^(?:appendix|appendices|supplementary|supporting information|figure legends)\b.{0,60}$",
    re.IGNORECASE | re.MULTILINE,
)
_NO_TITLE = re.compile(
    r"untitled.*|microsoft word.*|pii\b.*|.*\.(?:docx?|tex|dvi|indd|pdf|rtf|odt|qxd|fm)|\S*",
    re.IGNORECASE,
)
_PAGE = re.compile(r"^\d+\s+|\s+\d+$|(?<=\bpage )\d+", re.IGNORECASE)
_N_EDGE_LINES = 2  # at the top and the bottom of a page, where a running head may stand
_LEAST_REPEATED = 3  # pages that bear the same line
_MOST_NAMED = 8
_IMAGE = "an image without text"


class PdfSection(NamedTuple):
    """What stands under one heading, and where.

    Attributes:
        name: The heading, such as ``Results``; empty if there is none that is known.
        text: Of one page after the other, separated by single spaces; not blank.
        starts: Where in it each page begins.
        pages: The numbers of these pages, counted from 1.
    """

    name: str
    text: str
    starts: tuple[int, ...]
    pages: tuple[int, ...]

    def find_place(self, start: int, end: int) -> dict[str, Any]:
        """Return `section`, `page` and `last_page` of a part of the text, as far as they say."""
        first, last = (
            self.pages[bisect_right(self.starts, offset) - 1] for offset in (start, end - 1)
        )
        return {
            **({"section": self.name} if self.name else {}),
            "page": first,
            **({} if first == last else {"last_page": last}),
        }


class PdfText(NamedTuple):
    """What was read of a PDF file.

    Attributes:
        sections: Not empty.
        title: What the file says of itself, or nothing.
        metadata: `authors` and `doi`, if the file tells them.
        unread: What is wrong with pages that could not be read, or nothing.
    """

    sections: tuple[PdfSection, ...]
    title: str
    metadata: dict[str, Any]
    unread: str

    @property
    def whole(self) -> PdfSection:
        """All of the text, without headings."""
        parts = [
            (page, section.text[start:end].strip())
            for section in self.sections
            for page, (start, end) in zip(
                section.pages, pairwise((*section.starts, len(section.text))), strict=True
            )
        ]
        return _to_section("", parts)


def check_pdf_reader(file: Path | None = None) -> None:
    """Raise `SettingsError` unless the package that reads PDF files, or this one, is installed."""
    what = "reading PDF files" if file is None else f"reading {file}"
    check_extra("pypdf", extra="documents", what=what)


def read_pdf(file: Path, source: BinaryIO) -> PdfText:
    """Read the text of a PDF file.

    Words broken at the end of a line are joined, unless the file has them with a hyphen elsewhere.
    Lines that stand at the top or bottom of many pages, page numbers, and a list of references at
    the end are left out; usual headings on lines of their own begin a section. A page that cannot
    be read, or that is an image alone, costs itself alone.

    Raises:
        InputError: The file is broken, protected by a password, or has no text.
        SettingsError: pypdf is not installed.
    """
    check_pdf_reader(file)
    pypdf = import_extra("pypdf")
    with _quiet():
        reader = call_foreign(
            f"{file}: broken, or not a PDF file",
            lambda: _open(file, pypdf, source.read()),
            error=InputError,
        )
        pages, bad = _read_pages(reader)
        info = _read_info(reader)
    n_pages = len(pages) + len(bad)
    clean = _join_broken_words(_drop_references(_drop_running_lines(list(pages.values()))))
    sections = tuple(_split_sections(dict(zip(pages, clean, strict=True))))
    if not sections:
        raise InputError(f"{file}: {_describe_no_text(n_pages, bad)}")
    first_page = " ".join(next(iter(filter(str.strip, pages.values()))).split())
    return PdfText(
        sections=sections,
        title=_find_title(info),
        metadata=_find_metadata(info, first_page),
        unread=_describe_unread(bad, n_pages),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep pypdf from telling what it mends in a file; what it cannot mend it raises."""
    logger = logging.getLogger("pypdf")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _open(file: Path, pypdf: Any, content: bytes) -> Any:
    if not content.strip():
        raise InputError(f"{file}: the file is empty")
    reader = pypdf.PdfReader(io.BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        raise InputError(f"{file}: protected by a password; save a copy without one")
    if not len(reader.pages):
        raise InputError(f"{file}: has no pages")
    return reader


def _read_pages(reader: Any) -> tuple[dict[int, str], dict[int, str]]:
    """Return the texts of the pages, and what is wrong with those that cannot be read."""
    texts, bad = dict[int, str](), dict[int, str]()
    for number in range(1, len(reader.pages) + 1):
        try:
            page = reader.pages[number - 1]
            text = page.extract_text().translate(_LIGATURES).encode("utf-8", "ignore").decode()
            if text.strip() or not _shows_something(page):
                texts[number] = text
            else:
                bad[number] = _IMAGE
        except Exception as error:  # noqa: BLE001  # the boundary to foreign code
            bad[number] = describe_error(error)
    return texts, bad


def _shows_something(page: Any) -> bool:
    return "/Resources" in page and len(page["/Resources"].get("/XObject", ())) > 0


def _read_info(reader: Any) -> dict[str, str]:
    """Return what the file says of itself; nothing if that is broken."""
    try:
        return {str(name): str(value).strip() for name, value in (reader.metadata or {}).items()}
    except Exception:  # noqa: BLE001  # the boundary to foreign code
        return {}


def _describe_no_text(n_pages: int, bad: dict[int, str]) -> str:
    if bad and set(bad.values()) != {_IMAGE}:
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
    """Drop from the last heading "References" on, if it stands in the second half of the file."""
    whole = "\n\f\n".join(page.replace("\f", " ") for page in pages)
    headings = [one for one in _REFERENCES.finditer(whole) if one.start() > len(whole) / 2]
    if not headings:
        return list(pages)
    begin = headings[-1].start()
    after = _AFTER_REFERENCES.search(whole, begin)
    end = after.start() if after else len(whole)
    return (whole[:begin] + "\f" * whole.count("\f", begin, end) + whole[end:]).split("\f")


def _join_broken_words(pages: Sequence[str]) -> list[str]:
    """Join words broken at the end of a line; a hyphen that the file has elsewhere stays."""
    known = {word.lower() for page in pages for word in _WORD.findall(page)}

    def join(broken: re.Match[str]) -> str:
        whole, parted = broken[1] + broken[2], f"{broken[1]}-{broken[2]}"
        return parted if parted.lower() in known and whole.lower() not in known else whole

    return [_BROKEN_WORD.sub(join, page).replace("\u00ad", "") for page in pages]


def _split_sections(pages: dict[int, str]) -> Iterator[PdfSection]:
    """Yield what stands under each heading; the headings are no part of the text."""
    name, parts = "", list[tuple[int, list[str]]]()
    for number, text in pages.items():
        parts.append((number, []))
        for line in text.splitlines():
            if heading := _HEADING.fullmatch(line.strip()):
                yield from _join_lines(name, parts)
                name, parts = heading[1].capitalize(), [(number, [])]
            else:
                parts[-1][1].append(line)
    yield from _join_lines(name, parts)


def _join_lines(name: str, parts: Sequence[tuple[int, list[str]]]) -> Iterator[PdfSection]:
    texts = [(number, " ".join(" ".join(lines).split())) for number, lines in parts]
    if texts := [(number, text) for number, text in texts if text]:
        yield _to_section(name, texts)


def _to_section(name: str, parts: Sequence[tuple[int, str]]) -> PdfSection:
    lengths = [len(text) + 1 for _, text in parts]
    return PdfSection(
        name=name,
        text=" ".join(text for _, text in parts),
        starts=tuple(accumulate(lengths[:-1], initial=0)),
        pages=tuple(number for number, _ in parts),
    )


def _find_title(info: dict[str, str]) -> str:
    """Return the title; many programs write the name of a file in its place, which is none."""
    title = " ".join(info.get("/Title", "").split())
    return "" if _NO_TITLE.fullmatch(title) else title


def _find_metadata(info: dict[str, str], first_page: str) -> dict[str, Any]:
    """Return `authors`, if they have full names, and the DOI if the file names but one."""
    dois = _find_dois(" ".join(info.values())) or _find_dois(first_page)
    author = " ".join(info.get("/Author", "").split())
    found = {"authors": author if " " in author else "", "doi": dois[0] if len(dois) == 1 else ""}
    return {name: value for name, value in found.items() if value}


def _find_dois(text: str) -> list[str]:
    dois = (one.rstrip(".)]}'") for one in _DOI.findall(text))
    return list({doi.lower(): doi for doi in dois}.values())
