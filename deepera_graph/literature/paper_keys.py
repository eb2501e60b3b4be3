"""Ids, titles and authors of papers in the form that they are compared in, whoever wrote them."""

import re
import unicodedata
from collections.abc import Sequence
from hashlib import blake2b

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
_LETTERS = str.maketrans(
    {"ß": "ss", "ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i", "&": " and "}
)
_SUBTITLE = re.compile(r"\s*(?::\s|\s[-–—]\s|\?\s)")


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


def hash_title(title: str) -> int:
    """Return the number that a title is found by: 63 bits of its key."""
    digest = blake2b(title_key(title).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


_MOST_INITIALS = 3
_SUFFIX = re.compile(r"Jr\.?|Sr\.?|I{2,3}|IV")
# Words that no person's name has.
_GROUP = re.compile(
    r"(?i)\b(?:the|of|for|and|agency|associat\w+|board|cent(?:er|re)|collaborat\w+|commi\w+"
    r"|consort\w+|council|departments?|federation|foundation|groups?|initiative|institut\w+"
    r"|investigators|ministry|network|offices?|organi[sz]ation|programme?|projects?|societ\w+"
    r"|stud(?:y|ies)|team|trialists|union|universit\w+|workshop)\b"
)


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
    """Return the family name of an author, in whatever order the names are."""
    if "," in name:
        return name.split(",", maxsplit=1)[0].strip()
    words = name.split()
    if len(words) > 1 and _is_initials(words[-1]):
        return " ".join(words[:-1])
    return words[-1]


def family_key(authors: Sequence[str]) -> str:
    """Return what the first author is compared by: the last word of the family name."""
    words = title_key(family_name(authors[0])).split() if authors and authors[0] else []
    return words[-1] if words else ""
