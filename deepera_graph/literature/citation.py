"""Where a passage is from, read from its metadata: the one place that knows the names of fields.

The evidence tool, kept documents, results and `deepera ask` all cite by `Citation`. Fields are
found whatever their case and punctuation, under the names of Zotero, PubMed, Scopus, Web of
Science, Crossref, OpenAlex, Semantic Scholar, RIS and BibTeX, and of LangChain's loaders.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from deepera_graph.literature.notices import read_title
from deepera_graph.literature.paper_keys import (
    FIELDS,
    NOTICE,
    PaperStatus,
    family_name,
    find_preprint,
    gravest,
    name_status,
    names_notice,
    names_preprint,
    normalize_id,
    read_fields,
)

_NAMES: Mapping[str, Sequence[str]] = FIELDS["names"]
# Those of a BibTeX file; the eight capitals and digits that Zotero numbers its items with are none.
_CITATION_KEY = re.compile(r"(?![A-Z0-9]{8}\Z)(?=.*[A-Za-z])[A-Za-z0-9][A-Za-z0-9_:.+/-]{0,99}")
_NAME_PARTS = ("name", "display_name", "title", "author", "family", "lastName")
_DOI = re.compile(r"10\.\d{4,9}/[^\s\"<>]+")
_URL = re.compile(r"https?://\S+")
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")
_ARXIV = re.compile(r"\d{4}\.\d{4,5}|[a-z-]+/\d{7}")
_OF_ARTICLE = ("title", "authors", "year", "venue", "doi", "pmid", "url", "arxiv")
_OF_RETRIEVAL = {"retrievalrank", "retrievalscore"}  # of the passage, not of its source
_LONGEST_PAGE = 6  # letters of a page number, "xxviii"
_BETWEEN_AUTHORS = re.compile(r"[;\n]|(?<=\s)and(?=\s)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """What is known of the source of a passage; a field that is not known is empty.

    ``str(citation)`` is one line: ``Lee et al. Wax on apples. Fruit Science, 2019. doi:10.1000/1``.

    Attributes:
        id: Of the passage; the line falls back on it.
        title: Of the article.
        authors: As they were given, in order.
        year: Four digits.
        venue: Journal, proceedings or book.
        doi: Without a resolver, ``10.…``.
        pmid: Digits.
        url: Where it can be read.
        source: A file, or whatever else the metadata calls its source.
        page: Of the file: ``3``, or ``3-4``.
        arxiv: The arXiv id, without version.
        status: ``retracted``, ``concern`` (an expression of it), ``corrected`` or ``preprint``, as
            title and metadata say; None where they say nothing.
        is_notice: Whether it is the notice of a retraction or correction, not the paper itself.
        is_preprint: Whether it is a preprint, whatever else became of it.
        version_of: Of a preprint or a notice the article that it belongs to, if that is known:
            ``Fruit Science, 2019, doi:10.1000/1``.
        key: By which the caller's own BibTeX file cites it.
    """

    id: str
    title: str = ""
    authors: tuple[str, ...] = ()
    year: str = ""
    venue: str = ""
    doi: str = ""
    pmid: str = ""
    url: str = ""
    source: str = ""
    page: str = ""
    arxiv: str = ""
    status: PaperStatus | None = None
    is_notice: bool = False
    is_preprint: bool = False
    version_of: str = ""
    key: str = ""

    @classmethod
    def of(
        cls, metadata: Mapping[str, Any], passage_id: str, quote: Sequence[int] | None = None
    ) -> Self:
        """Read what the metadata of a passage says; the first name that holds something counts.

        Args:
            metadata: Of the passage.
            passage_id: Its id.
            quote: Offsets of a quote in the passage, [start, end): `page` is that of the quote.
        """
        known: dict[str, Any] = {}
        for key, value in metadata.items():
            to_list = getattr(value, "tolist", None)  # NumPy's arrays, as of a column of lists
            plain = to_list() if callable(to_list) else value
            known.setdefault(re.sub(r"[\W_]", "", str(key)).lower(), plain)
        if known.keys() <= _OF_RETRIEVAL:
            return cls(id=passage_id)
        found: dict[str, Any] = {}
        for field, names in _NAMES.items():
            read = (_READERS[field](known[name]) for name in names if name in known)
            found[field] = next(filter(None, read), None)
        if pages := find_pages(metadata, quote):
            found["page"] = pages
        title = read_title(found["title"] or "")
        is_on_arxiv = bool(found["arxiv"] or find_arxiv(found["url"]))
        server = find_preprint(found["doi"] or "", found["venue"] or "", is_on_arxiv=is_on_arxiv)
        found["status"] = gravest((title.status, read_fields(known), server))
        found["is_notice"] = title.is_notice or names_notice(known)
        is_told = "preprint" in (title.status, server)
        found["is_preprint"] = is_told or names_preprint(known)
        return cls(id=passage_id, **{name: value for name, value in found.items() if value})

    def borrow(self, others: Iterable["Citation"]) -> Self:
        """Return what is known of one article by all: a PDF and a record of it differ in that.

        Title, authors, year and venue are those of the fullest record; id, file and page stay.
        """
        merged: dict[str, Any] = {}
        known: list[Citation] = [self, *others]
        known.sort(  # a PDF has a title alone, or the name of its file
            key=lambda one: (
                one.is_notice,
                -sum(map(bool, (one.authors, one.year, one.venue, one.doi, one.pmid))),
            )
        )
        for one in known:
            plain = asdict(one)
            merged |= {name: plain[name] for name in _OF_ARTICLE if not merged.get(name)}
        own = {name: value for name, value in asdict(self).items() if name not in _OF_ARTICLE}
        return type(self)(**own, **merged)

    @property
    def link(self) -> str:
        """Where to look it up: by DOI, else PubMed, else the URL; empty if none is known."""
        if self.doi:
            return f"https://doi.org/{self.doi}"
        if self.pmid:
            return f"https://pubmed.ncbi.nlm.nih.gov/{self.pmid}/"
        return self.url or (f"https://arxiv.org/abs/{self.arxiv}" if self.arxiv else "")

    @property
    def name(self) -> str:
        """Its authors in short, else its title, else the passage's id: ``Lee and Roy``."""
        return _short_authors(self.authors) or self.title or self.id

    @property
    def mark(self) -> str:
        """What became of the paper, and what it is if no article: ``CORRECTED, PREPRINT``."""
        also = name_status("preprint") if self.is_preprint else NOTICE if self.is_notice else ""
        return ", ".join(dict.fromkeys(filter(None, (name_status(self.status), also))))

    @property
    def version(self) -> str:
        """What it is if no article, and of which: ``preprint of Fruit Science, 2019, doi:...``."""
        what = "preprint" if self.is_preprint else "notice" if self.is_notice else ""
        between = "of" if self.is_preprint else "on"
        return f"{what} {between} {self.version_of}" if what and self.version_of else what

    @property
    def place(self) -> str:
        """Where the article stands, in short: ``Fruit Science, 2019, doi:10.1000/1``."""
        found = self._locator() if self.link else ""
        return ", ".join(filter(None, (self.venue, self.year, found))) or self.title

    @property
    def is_known(self) -> bool:
        """Whether anything but the passage's id is known."""
        return any((self.title, self.authors, self.venue, self.link, self.source))

    def __str__(self) -> str:
        """Return one line for a reader: authors, title, venue, year, and where to find it."""
        # What became of the paper comes first: ``RETRACTED: Lee et al. ...``.
        marked = read_title(self.title) if self.status == "retracted" else None
        parts = (
            _short_authors(self.authors),
            self.title if marked is None or marked.is_notice else marked.title,
            ", ".join(filter(None, (self.venue, self.year))),
            self._locator(),
        )
        place = f", {'pp.' if '-' in self.page else 'p.'} {self.page}" if self.page else ""
        is_marked = self.status or self.is_preprint or self.is_notice
        status = f"{self.mark}: " if is_marked else ""
        version = f", {self.version}" if self.version_of else ""
        told = re.sub(r"([.?!])\. ", r"\1 ", ". ".join(filter(None, parts)))
        return f"{status}{told}{place}{version}"

    def _locator(self) -> str:
        """Return DOI, PMID or URL; else the source, or the passage's id where that says more."""
        if self.doi:
            return f"doi:{self.doi}"
        if self.pmid:
            return f"PMID {self.pmid}"
        if self.url or self.arxiv:
            return self.url or f"arXiv:{self.arxiv}"
        if self.source and self.source not in self.id:
            return self.source
        is_told = not self.source and any((self.title, self.authors, self.venue))
        return "" if is_told else self.id


def find_pages(metadata: Mapping[str, Any], quote: Sequence[int] | None = None) -> str:
    """Return the page that a quote stands on, ``3``, or its first and last, ``3-4``."""
    # Without a *quote*, offsets [start, end), these are the pages of the whole passage. LangChain's
    # loaders of PDF files count from 0, and say how many pages there are.
    if "page_label" in metadata:
        return _to_page(metadata["page_label"])
    if "total_pages" in metadata:
        return f"{metadata['page'] + 1}" if isinstance(metadata.get("page"), int) else ""
    return _find_own_pages(metadata, quote)


def _find_own_pages(metadata: Mapping[str, Any], quote: Sequence[int] | None) -> str:
    """Return what metadata say as `read_passages` writes them."""
    first, last = metadata.get("page"), metadata.get("last_page")
    if not _is_page(first) or not (last is None or _is_page(last)):
        return ""
    starts = _read_starts(metadata.get("page_starts"))
    if quote is not None:
        begin, end = quote[0], max(quote[1] - 1, quote[0])
        first = max((page for page, start in starts if start <= begin), default=first)
        last = max((page for page, start in starts if start <= end), default=last)
    return f"{first}" if last is None or first == last else f"{first}-{last}"


def _read_starts(given: Any) -> list[tuple[int, int]]:
    """Return pages and where each begins; nothing of what is no list of these."""
    try:
        return [(int(page), int(start)) for page, start in given or ()]
    except (TypeError, ValueError):
        return []


def _is_page(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _to_page(value: object) -> str:
    text = _to_text(value).removesuffix(".0")
    return text if text.isalnum() and text != "0" and len(text) <= _LONGEST_PAGE else ""


def find_arxiv(value: object) -> str:
    """Return the arXiv id, without version, that a text is, or an address of it; else nothing."""
    id = normalize_id(_to_text(value))
    return id if _ARXIV.fullmatch(id) else ""


def _to_text(value: object) -> str:
    """Return one line of text; of a list the first, of an object its name; nothing of NaN."""
    if isinstance(value, Mapping):
        return next(filter(None, (_to_text(value.get(name)) for name in _NAME_PARTS)), "")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return next(filter(None, map(_to_text, value)), "")
    if value is None or value != value:  # noqa: PLR0124  # NaN, as pandas writes an empty cell
        return ""
    return " ".join(str(value).split())


def _to_authors(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        names = _split_authors(value)
    elif isinstance(value, Sequence):
        names = [_to_text(one) for one in value]
    else:
        names = [_to_text(value)]
    return tuple(bare for name in names if (bare := name.strip(" ,")))


def _split_authors(text: str) -> list[str]:
    """Split at semicolons, line breaks or "and"; at commas only where no given name follows one."""
    names = [name.strip() for name in _BETWEEN_AUTHORS.split(text.strip())]
    if len(names) > 1:
        return names
    parts = [part.strip() for part in text.rstrip(" .").split(",")]
    return parts if all(" " in part for part in parts) else names


def _first_match(pattern: re.Pattern[str], value: object) -> str:
    found = pattern.search("" if value is None else str(value))
    return found.group() if found else ""


def find_doi(value: object) -> str:
    """Return the DOI that a text names, without a resolver; nothing if there is none."""
    return _first_match(_DOI, value).rstrip(".,;])}'")


def _to_pmid(value: object) -> str:
    text = _to_text(value).removesuffix(".0")  # a column with gaps is read as decimal numbers
    return text if text.isdecimal() else ""


def _short_authors(authors: Sequence[str]) -> str:
    """Return ``Lee``, ``Lee and Roy``, or ``Lee et al.``."""
    names = [family_name(name) for name in authors]
    return f"{names[0]} et al." if len(names) > 2 else " and ".join(names)


def _to_key(value: Any) -> str:
    return value if isinstance(value, str) and _CITATION_KEY.fullmatch(value) else ""


_READERS: Mapping[str, Any] = {
    "title": _to_text,
    "authors": _to_authors,
    "year": lambda value: _first_match(_YEAR, value),
    "venue": _to_text,
    "doi": find_doi,
    "pmid": _to_pmid,
    "arxiv": find_arxiv,
    "url": lambda value: _first_match(_URL, value),
    "source": _to_text,
    "page": _to_page,
    "key": _to_key,
}
