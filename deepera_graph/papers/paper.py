"""A paper as a base holds it; its ids, dates and title in one form, whoever wrote them."""

import calendar
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

_ARXIV_NEW = re.compile(r"(\d{4}\.\d{4,5})(?:v\d+)?", re.IGNORECASE)
_ARXIV_OLD = re.compile(r"([a-z-]+)(?:\.[a-z]{2})?/(\d{7})(?:v\d+)?", re.IGNORECASE)
_ARXIV_MARK = re.compile(
    r"(?:https?://(?:www\.|export\.)?arxiv\.org/(?:abs|pdf|html)/|arxiv\s*:\s*"
    r"|(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?10\.48550/arxiv\.)",
    re.IGNORECASE,
)
_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(10\.\d{1,9}/\S+)", re.IGNORECASE)
_URL_OF_ID = re.compile(
    r"https?://(?:(?:www\.)?openalex\.org/|(?:www\.)?aclanthology\.org/"
    r"|(?:www\.)?semanticscholar\.org/paper/)([^?#\s]+?)(?:\.pdf)?/?",
    re.IGNORECASE,
)
_DATE = re.compile(r"(\d{4})(?:[-/]?(\d{2}))?(?:[-/]?(\d{2}))?(?:[T ].*)?")
_FIRST_YEAR, _LAST_YEAR = 1000, 2999
_TEX_COMMAND = re.compile(r"\\(?:[a-zA-Z]+\*?|[`'^\"~=.](?=\w|\{))")
_MARKUP = re.compile(r"</?[a-zA-Z]{1,6}>")
_NO_LETTER = re.compile(r"[\W_]+")
_LETTERS = str.maketrans(
    {"ß": "ss", "ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i", "&": " and "}
)
_SUBTITLE = re.compile(r"\s*(?::\s|\s[-–—]\s|\?\s)")
_ARXIV_MONTH = re.compile(
    r"(?:[a-z-]+(?:\.[a-z]{2})?/)?(\d{2})(0[1-9]|1[0-2])(?:\.\d{4,5}|\d{3})", re.I
)
_FIRST_OF_ARXIV = 91


def normalize_id(text: str) -> str:
    """Return an id in the one form it is kept and asked for in.

    An arXiv id loses its prefix and its version, a DOI its prefix, and is in lower case (but for
    one of arXiv's own, which is the arXiv id); the address of a paper at OpenAlex, the ACL
    Anthology or Semantic Scholar becomes the id in it. Other ids only lose the space around them.
    """
    text = " ".join(clean_text(text).split())
    mark = _ARXIV_MARK.match(text)
    bare = text[mark.end() :].removesuffix(".pdf") if mark else text
    if new := _ARXIV_NEW.fullmatch(bare):
        return new[1]
    if old := _ARXIV_OLD.fullmatch(bare):
        return f"{old[1].lower()}/{old[2]}"
    if doi := _DOI.fullmatch(text):
        return doi[1].lower()
    if url := _URL_OF_ID.fullmatch(text):
        return url[1].rpartition("/")[2]
    return text


def clean_text(text: str) -> str:
    """Return a text as it can be stored: what is no character becomes U+FFFD, NUL a space."""
    kept = text.replace("\0", " ")
    return (
        kept if kept.isascii() else kept.encode("utf-8", "surrogatepass").decode(errors="replace")
    )


def title_key(title: str) -> str:
    """Return what a title is matched by: its letters and digits in words, in lower case.

    Case, punctuation, accents, TeX (``\\emph{BERT}``, ``{BERT}``, ``$k$``) and markup of journals
    do not count.
    """
    bare = _TEX_COMMAND.sub(" ", _MARKUP.sub(" ", title.replace("\\&", "&")))
    bare = bare.translate(str.maketrans("", "", "{}$'’‘`\"“”"))
    plain = unicodedata.normalize("NFKD", bare.casefold().translate(_LETTERS))
    kept = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return " ".join(_NO_LETTER.sub(" ", kept).split())


def main_title(title: str) -> str:
    """Return a title up to its subtitle, which a colon, a dash or a question mark begins."""
    return _SUBTITLE.split(title, maxsplit=1)[0]


def venue_key(venue: str) -> str:
    """Return what a venue is matched by."""
    return " ".join(venue.casefold().split())


def read_year(value: Any) -> int | None:
    """Return the year of a number or a date as sources write it: 2021, ``"2021-03"``, 20250204."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, float) and not isfinite(value):
        return None
    found = _DATE.fullmatch(str(int(value) if isinstance(value, float) else value).strip())
    year = int(found[1]) if found else 0
    return year if _FIRST_YEAR <= year <= _LAST_YEAR else None


def read_date(value: Any) -> str:
    """Return a date as ``2021``, ``2021-03`` or ``2021-03-15``; nothing if it is none."""
    found = _DATE.fullmatch(str(value if value is not None else "").strip())
    if not found or read_year(found[1]) is None:
        return ""
    year, month, day = found[1], found[2], found[3]
    if not month or not 1 <= int(month) <= 12:
        return year
    last = calendar.monthrange(int(year), int(month))[1]
    return f"{year}-{month}-{day}" if day and 1 <= int(day) <= last else f"{year}-{month}"


def century_of(year: int) -> int:
    """Return the century of a year of an arXiv id, which has two digits: arXiv began in 1991."""
    return 1900 if year >= _FIRST_OF_ARXIV else 2000


def month_of(arxiv: str) -> str:
    """Return the month that an arXiv id names, ``2024-04`` of ``2404.00001``; empty for others."""
    found = _ARXIV_MONTH.fullmatch(arxiv)
    return f"{century_of(int(found[1])) + int(found[1])}-{found[2]}" if found else ""


def days_of(date: str) -> tuple[int, int]:
    """Return the first and the last day a date may mean, as numbers: ``2021-02`` from 20210201."""
    year, month, day = (*(int(part) for part in date.split("-")), 0, 0)[:3]
    first = 10_000 * year + 100 * (month or 1) + (day or 1)
    last_month = month or 12
    last_day = day or calendar.monthrange(year, last_month)[1]
    return first, 10_000 * year + 100 * last_month + last_day


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper, without its citations: these are asked of the base, within a scope.

    Attributes:
        id: In the form of `normalize_id`; not empty.
        title: Not empty.
        abstract: Empty where there is none.
        authors: Names, in order.
        year: Of publication, or None if it is not known.
        date: ``2021``, ``2021-03``, ``2021-03-15``, or empty.
        venue: Journal or conference, or empty.
        categories: Subjects, as the source has them.
        doi: In lower case, or empty.
        arxiv: The arXiv id without version, or empty.
        url: Where it can be read, or empty.
        source: Where the record is from, or empty.
    """

    id: str
    title: str
    abstract: str = ""
    authors: tuple[str, ...] = ()
    year: int | None = None
    date: str = ""
    venue: str = ""
    categories: tuple[str, ...] = ()
    doi: str = ""
    arxiv: str = ""
    url: str = ""
    source: str = ""

    @property
    def text(self) -> str:
        """Title and abstract as one text, as they are embedded."""
        return f"{self.title}. {self.abstract}" if self.abstract else self.title

    @property
    def days(self) -> tuple[int, int] | None:
        """The first and the last day it may be from, the later of year and date; None if unknown.

        A year that is later than the date, or the other way round, moves both to the later one, so
        that no date of asking lets through what may be newer. An arXiv id tells a month, too.
        """
        known = (self.date, str(self.year or ""), month_of(self.arxiv) or month_of(self.id))
        spans = [days_of(one) for one in known if one]
        if not spans:
            return None
        first, last = max(one[0] for one in spans), min(one[1] for one in spans)
        return first, last if first <= last else max(one[1] for one in spans)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it, all fields in this order."""
        return {
            "id": self.id,
            "title": self.title,
            "abstract": self.abstract,
            "authors": list(self.authors),
            "year": self.year,
            "date": self.date,
            "venue": self.venue,
            "categories": list(self.categories),
            "doi": self.doi,
            "arxiv": self.arxiv,
            "url": self.url,
            "source": self.source,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Paper":
        """Return the paper of `to_dict`."""
        lists = {name: tuple(plain.get(name) or ()) for name in ("authors", "categories")}
        return cls(**{**plain, **lists})


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRecord:
    """A paper as a file brings it: with what it cites, and its other ids.

    Attributes:
        paper: The paper.
        references: Ids of what it cites, in order, each once; they need not be in the base.
        aliases: Other ids it is known by, e.g. of a preprint.
    """

    paper: Paper
    references: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """All its ids, the main one first, each once."""
        own = (self.paper.id, self.paper.doi, self.paper.arxiv, *self.aliases)
        return tuple(dict.fromkeys(one for one in own if one))
