"""What records say of a paper, whoever wrote them, in one form.

Ids, titles and authors, in the form that they are compared in; and what became of the paper:
retracted, corrected, under concern, or a preprint.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal, get_args

from deepera_graph.text.plain import fold_accents, read_lists

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
_TEX_COMMAND = re.compile(r"\\(?:[a-zA-Z]+\*?|[`'^\"~=.](?=\w|\{))")
_MARKUP = re.compile(r"</?[a-zA-Z]{1,6}>")
_NO_LETTER = re.compile(r"[\W_]+")
_SUBTITLE = re.compile(r"\s*(?::\s|\s[-–—]\s|\?\s)")


def normalize_id(text: str) -> str:
    """Return an id in the one form it is kept and asked for in."""
    # An arXiv id loses its prefix and its version, a DOI its prefix, and is in lower case (but for
    # one of arXiv's own, which is the arXiv id); the address of a paper at OpenAlex, the ACL
    # Anthology or Semantic Scholar becomes the id in it. Other ids only lose the space around them.
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


LEAST_NAMING, LEAST_PRINTED = 3, 4  # words of a title, and of one within a printed entry


def title_key(title: str) -> str:
    """Return what a title is matched by: its letters and digits in words, in lower case."""
    # Case, punctuation, accents, TeX (``\emph{BERT}``, ``{BERT}``, ``$k$``) and markup of journals
    # do not count.
    bare = _TEX_COMMAND.sub(" ", _MARKUP.sub(" ", title.replace("\\&", "&")))
    bare = bare.translate(str.maketrans("", "", "{}$'’‘`\"“”"))
    return " ".join(_NO_LETTER.sub(" ", fold_accents(bare.replace("&", " and "))).split())


def may_name_paper(key: str, least: int = LEAST_NAMING) -> bool:
    """Tell whether a title, by `title_key`, has words enough to tell which paper it is of."""
    return len(key.split()) >= least


def main_title(title: str) -> str:
    """Return a title up to its subtitle, which a colon, a dash or a question mark begins."""
    return _SUBTITLE.split(title, maxsplit=1)[0]


def hash_title(title: str) -> int:
    """Return the number that a title is found by: 63 bits of its key."""
    digest = blake2b(title_key(title).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


_MOST_INITIALS = 3
_SUFFIX = re.compile(r"Jr\.?|Sr\.?|I{2,3}|IV")
FIELDS: Mapping[str, Any] = read_lists(__file__, "fields.toml")
_FORMS: Mapping[str, Sequence[str]] = FIELDS["patterns"]
_GROUP = re.compile(rf"(?i)\b(?:{'|'.join(_FORMS['groups'])})\b")


def invert_name(name: str) -> str:
    """Return ``Lee, Ada`` for ``Ada Lee``; a name with a comma, or of a group, as it stands."""
    words = name.split()
    suffix = f", {words.pop()}" if len(words) > 2 and _SUFFIX.fullmatch(words[-1]) else ""
    if "," in name or len(words) < 2 or _GROUP.search(name):
        return name
    if _is_initials(words[-1]):
        return f"{' '.join(words[:-1])}, {words[-1]}{suffix}"
    at = next((n for n, word in enumerate(words) if n and word.islower()), len(words) - 1)
    return f"{' '.join(words[at:])}, {' '.join(words[:at])}{suffix}"


def _is_initials(word: str) -> bool:
    """Tell whether a word is initials, in any script with capitals: ``AB``, ``J.-P.``, ``É``."""
    letters = unicodedata.normalize("NFC", word).replace(".", "").replace("-", "")
    return len(letters) <= _MOST_INITIALS and letters.isalpha() and letters.isupper()


def family_name(name: str) -> str:
    """Return the family name of an author, in whatever order the names are; a group's is whole."""
    if "," in name:
        return name.split(",", maxsplit=1)[0].strip()
    words = name.split()
    if len(words) > 1 and _is_initials(words[-1]):
        return " ".join(words[:-1])
    return name if _GROUP.search(name) else words[-1]


def family_key(authors: Sequence[str]) -> str:
    """Return what the first author is compared by: the last word of the family name."""
    words = title_key(family_name(authors[0])).split() if authors and authors[0] else []
    return words[-1] if words else ""


PaperStatus = Literal["retracted", "concern", "corrected", "preprint"]  # the gravest first
RETRACTED: PaperStatus = "retracted"
NOTICE = "NOTICE"  # on a paper, beside what it says of that, for readers
_IN_WORDS: Mapping[PaperStatus, str] = FIELDS["in_words"]
_TYPES: Mapping[PaperStatus, Sequence[str]] = FIELDS["status"]
_NOTICE_WORDS: Mapping[str, Sequence[str]] = FIELDS["notices"]
_PREPRINT_DOI = re.compile(rf"(?i)10\.(?:{'|'.join(_FORMS['preprint_dois'])})")
_PREPRINT_VENUE = re.compile(rf"(?i)(?:{'|'.join(_FORMS['preprint_venues'])})\b")
_BETWEEN = re.compile(r"[;|,\n]")


def read_fields(known: Mapping[str, Any]) -> PaperStatus | None:
    """Return the gravest of what metadata say, by names in lower case without punctuation."""
    # PubMed has types of publication, OpenAlex `is_retracted`, Zotero and Crossref a kind of item.
    if any(
        _key(known.get(name)) in (*_NOTICE_WORDS["yes"], *_TYPES["retracted"])
        for name in _NOTICE_WORDS["flags"]
    ):
        return "retracted"
    return gravest(map(read_word, _list_words(known)))


def names_notice(known: Mapping[str, Any]) -> bool:
    """Tell whether metadata say that a record is the notice itself, not the paper."""
    return any(_key(word) in _NOTICE_WORDS["itself"] for word in _list_words(known))


def names_preprint(known: Mapping[str, Any]) -> bool:
    """Tell whether metadata say that a record is a preprint."""
    return any(read_word(word) == "preprint" for word in _list_words(known))


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
