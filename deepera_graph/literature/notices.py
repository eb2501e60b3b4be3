"""What became of a paper: retracted, corrected, under concern, or a preprint, as records say it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from deepera_graph.text.plain import read_lists

PaperStatus = Literal["retracted", "concern", "corrected", "preprint"]  # the gravest first
RETRACTED: PaperStatus = "retracted"
_IN_WORDS: Mapping[PaperStatus, str] = {
    "retracted": "RETRACTED",
    "concern": "EXPRESSION OF CONCERN",
    "corrected": "CORRECTED",
    "preprint": "PREPRINT",
}
_ENDS = r"\s*(?::|\s[-–—]\s)"
_MARK = r"(?:retracted|withdrawn)(?:\s+(?:article|paper|chapter|manuscript))?"
_MARKED = re.compile(rf"(?i)\s*(?:[\[(]\s*{_MARK}\s*[\])]\s*[:.–—-]?|{_MARK}{_ENDS})\s*(?=\S)")
_MARKED_AT_END = re.compile(rf"(?i)(?<=\S)\s*[\[(]\s*{_MARK}(?:\W[^\[\]()]{{0,60}})?[\])]\W*$")
# Titles of notices, which name the paper that they are about.
_OF_PAPER = r"(?:\s+(?:to|of|for|on))?"
_QUOTED = r"(?=[\"“‘'«])"
_NOTICES: Mapping[PaperStatus, re.Pattern[str]] = {
    "retracted": re.compile(
        rf"(?i)\s*(?:(?:retraction|withdrawal)\s+(?:note|notice|statement){_OF_PAPER}\s*:?"
        rf"|notice\s+of\s+(?:retraction|withdrawal){_OF_PAPER}\s*:?"
        rf"|retraction{_OF_PAPER}\s*:|retraction\s+of\s*{_QUOTED})\s*(?=\S)"
    ),
    "concern": re.compile(
        r"(?i)\s*(?:editorial\s+)?(?:expression|note)\s+of\s+concern"
        r"(?:\s+(?:about|for|on|regarding|to))?\s*:?\s*(?=\S)"
    ),
    "corrected": re.compile(
        rf"(?i)\s*(?:(?:author|publisher)(?:['’]s)?\s+)?(?:correction|corrigendum|erratum)"
        rf"{_OF_PAPER}\s*(?::|{_QUOTED})\s*(?=\S)"
    ),
}
_MAYBE_OF = re.compile(r"(?i)\s*(?:retraction|withdrawal)\s+of\s+(?=\S)")
FIELDS: Mapping[str, Any] = read_lists(__file__, "fields.toml")
_TYPES: Mapping[PaperStatus, Sequence[str]] = FIELDS["status"]
_NOTICE_WORDS: Mapping[str, Sequence[str]] = FIELDS["notices"]
# Of bioRxiv and medRxiv (others that begin so are journals), and of servers of preprints alone.
_PREPRINT_DOI = re.compile(
    r"(?i)10\.(?:1101/(?:19|20)?\d|48550/arxiv|64898/|21203/rs|26434/chemrxiv|20944/preprints"
    r"|2139/ssrn|312(?:19|34)/osf|36227/techrxiv|22541/au)"
)
_PREPRINT_VENUE = re.compile(
    r"(?i)(?:(?:ar|bior|medr|chemr|psyar|techr|socar)xiv|research square|ssrn|authorea"
    r"|preprints?(?:\.org)?)\b"
)
_BETWEEN = re.compile(r"[;|,\n]")
_NO_LETTER = re.compile(r"[\W_]+")


class TitleStatus(NamedTuple):
    """What a title says of its paper, and the title without it."""

    status: PaperStatus | None
    title: str
    is_notice: bool  # of a paper, by its own title, and not the paper itself


def read_title(title: str) -> TitleStatus:
    """Read ``RETRACTED: Wax on apples`` and ``Retraction notice to: "Wax on apples"``."""
    for pattern in (_MARKED, _MARKED_AT_END):
        if found := pattern.search(title) if pattern is _MARKED_AT_END else pattern.match(title):
            rest = title[: found.start()] if found.start() else title[found.end() :]
            return TitleStatus("retracted", rest, is_notice=False)
    for status, pattern in _NOTICES.items():
        if found := pattern.match(title):
            return TitleStatus(status, title[found.end() :], is_notice=True)
    return TitleStatus(None, title, is_notice=False)


def find_named(title: str) -> str:
    """Return what ``Retraction of wax on apples`` may be a notice of; a paper may begin so, too."""
    found = _MAYBE_OF.match(title)
    return title[found.end() :] if found else ""


def read_fields(known: Mapping[str, Any]) -> PaperStatus | None:
    """Return the gravest of what metadata say, by names in lower case without punctuation.

    PubMed has types of publication, OpenAlex `is_retracted`, Zotero and Crossref a kind of item.
    """
    if any(
        _key(known.get(name)) in (*_NOTICE_WORDS["yes"], *_TYPES["retracted"])
        for name in _NOTICE_WORDS["flags"]
    ):
        return "retracted"
    return gravest(map(read_word, _list_words(known)))


def names_notice(known: Mapping[str, Any]) -> bool:
    """Tell whether metadata say that a record is the notice itself, not the paper."""
    return any(_key(word) in _NOTICE_WORDS["itself"] for word in _list_words(known))


def _list_words(known: Mapping[str, Any]) -> list[str]:
    return [word for name in _NOTICE_WORDS["fields"] for word in _split(known.get(name))]


def read_word(word: object) -> PaperStatus | None:
    """Read one word for what became of a paper, as files write it: ``Retracted Publication``."""
    key = _key(word)
    return next((status for status, words in _TYPES.items() if key in words), None)


def find_preprint(doi: str, venue: str, *, is_on_arxiv: bool) -> PaperStatus | None:
    """Tell a preprint by its server: its DOI, its venue, or arXiv where nothing else is known."""
    is_alone = is_on_arxiv and not (doi or venue)
    is_one = _PREPRINT_DOI.match(doi) or _PREPRINT_VENUE.match(venue) or is_alone
    return "preprint" if is_one else None


def gravest(found: Iterable[PaperStatus | None]) -> PaperStatus | None:
    """Return the gravest of several, if there is any."""
    given = {*found}
    return next((one for one in get_args(PaperStatus) if one in given), None)


def name_status(status: PaperStatus | None) -> str:
    """Return a word for readers that cannot be overlooked; empty for None."""
    return _IN_WORDS[status] if status else ""


def _split(value: object) -> list[str]:
    if isinstance(value, str):
        return _BETWEEN.split(value)
    if isinstance(value, Sequence):
        return [word for one in value for word in _split(one)]
    return []


def _key(value: object) -> str:
    """Return letters and digits alone; nothing of what is no single value."""
    plain = value if isinstance(value, str | bool | int | float) else ""
    return _NO_LETTER.sub("", str(plain)).lower()
