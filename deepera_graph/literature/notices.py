"""What a title says of its paper, in the forms of publishers: retracted, corrected, or a notice.

The words are in ``notices.toml``.
"""

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

from deepera_graph.literature.paper_keys import PaperStatus
from deepera_graph.text.plain import read_lists
from deepera_graph.text.references import UPPER

_OPEN = "\"“”„«‘'`"
_CLOSE = "\"”“»’'"
_STOP = r"(?:\s*(?::|\.(?=\s)|—)|\s[-–]\s)"  # between the words of a notice and a title
_TO = (
    r"(?:\s+(?:to|of|for|on|in|about|regarding|concerning)\b(?:\s+the\s+(?:\w+\s+){0,2}?"
    r"(?:article|paper|report|chapter|manuscript|publication)\b(?:,?\s+(?:entitled|titled))?)?)"
)
_AUTHORS = rf"(?=[{UPPER}][^.,:;()]{{1,60}}?\set\sal\b)"
# What stands behind a title: "[Journal 3 (2014) 11-19]", "(2012 J. Phys. 3 44)".
_PLACE = r"\s*(?:\[[^\[\]]*\b(?:19|20)\d\d\b[^\[\]]*\]|\((?:19|20)\d\d\s[^()]*\d[^()]*\))\W*$"
_IN_PLACE = re.compile(_PLACE)
_QUOTES = (
    re.compile(r"\s*[\"“”„«]+(.+)[\"”“»]"),
    re.compile(r"\s*[‘'`]+(.+)[’'](?=\W*(?:$|[\[(]|by\b))"),
)
_BY_AUTHORS = re.compile(rf"\s*[{UPPER}][^.:;()\"“]{{1,80}}?\set\sal\b[.,]*\s*")
_ENDS = re.compile(r"[.?!]\s+")
_LEAST_WORDS = 4  # of a title among authors and journal
_SUBTITLE = re.compile(r"(?:an?|the)\b")
_TAG = re.compile(r"</?[a-zA-Z]{1,6}>")
# Web of Science: ``Title (vol 12, pg 34, 2010)`` is of a correction.
_OF_VOLUME = re.compile(r"\s*\(vol\.?\s*\d[^()]*\b(?:19|20)\d\d\)\W*$", re.IGNORECASE)
_WHERE = r"(?:\W*(?:of|to|in|for|on|see)?\s*(?:vol|v\.|\d|see\b)[^\[\]()]*)?"


class TitleStatus(NamedTuple):
    """What a title says of its paper, and the title without it."""

    status: PaperStatus | None
    title: str
    is_notice: bool  # of a paper, by its own title, and not the paper itself


class NamedPaper(NamedTuple):
    """The title of a paper that a notice may be of, and what then became of it."""

    status: PaperStatus
    title: str


class _Form(NamedTuple):
    status: PaperStatus
    is_notice: bool
    begins: re.Pattern[str]
    ends: re.Pattern[str]
    maybe: re.Pattern[str] | None


_LISTS = read_lists(__file__)


def _read_forms() -> Iterator[_Form]:
    for one in _LISTS["form"]:
        sure, marked, quoted, maybe = (
            re.sub(r"\s", "", one.get(name, "")) for name in ("sure", "marked", "quoted", "maybe")
        )
        words = f"(?:{sure}|{marked})" if marked else f"(?:{sure})"
        quote = rf"(?=[{_OPEN}])"
        begins = [rf"[\[(]\s*{words}\s*[\])]\s*[:.–—-]?", rf"{words}{_STOP}"]
        capital = "(?-i:(?=[A-Z]))"
        ends = [
            rf"\s*[\[(]\s*{words}(?:\W[^\[\]()]{{0,60}})?[\])]",
            rf"\.\s+{capital}{words}",
            rf"\s[-–—:]\s*(?-i:(?=[A-Z]{{4}})){words}",
        ]
        if one["is_notice"]:
            begins = [
                begins[0],
                rf"(?:{words}|{quoted or words}){_TO}?{_STOP}?\s*{quote}",
                rf"{words}{_TO}?{_STOP}",
                rf"(?:{sure}){_TO}\s",
                rf"{words}{_TO}\s+(?:{_AUTHORS}|(?=.*{_PLACE}))",
            ]
            ends[0] = rf"\s*[\[(]\s*{capital}{words}{_WHERE}[\])]"
        yield _Form(
            status=one["status"],
            is_notice=one["is_notice"],
            begins=re.compile(rf"(?i)\s*(?:{'|'.join(begins)})\s*(?=\S)"),
            ends=re.compile(rf"(?i)(?<=\S)(?:{'|'.join(ends)})\W*$"),
            maybe=re.compile(rf"(?i)\s*(?:{maybe})(?:{_TO}\s|{_STOP})\s*(?=\S)") if maybe else None,
        )


_FORMS = tuple(_read_forms())


def read_title(title: str) -> TitleStatus:
    """Read ``RETRACTED: Wax on apples`` and ``Retraction notice to "Wax on apples" [...]``."""
    text = _TAG.sub("", unescape(title)) if "&" in title or "<" in title else title
    if not _may_tell(text):
        return TitleStatus(None, text, is_notice=False)
    for form in _FORMS:
        if found := form.begins.match(text):
            rest = text[found.end() :]
            is_word = form.is_notice or form.status == "preprint"
            is_own = is_word and found[0].strip()[0].isupper() and _SUBTITLE.match(rest)
            if not is_own:  # "Retraction: a study of the lung"
                return TitleStatus(form.status, _clean(rest, form), form.is_notice)
    return _read_end(text)


def _read_end(text: str) -> TitleStatus:
    """Read ``Wax on apples [Retracted]``."""
    for form in _FORMS:
        if found := form.ends.search(text):
            return TitleStatus(form.status, text[: found.start()], form.is_notice)
    if found := _OF_VOLUME.search(text):
        return TitleStatus("corrected", text[: found.start()], is_notice=True)
    return TitleStatus(None, text, is_notice=False)


def _clean(rest: str, form: _Form) -> str:
    """Return the title of the paper that a notice names, without its place and its authors."""
    if not form.is_notice:
        return rest
    rest = _FORMS[0].ends.sub("", rest)
    rest = _BY_AUTHORS.sub("", rest, count=1) if _BY_AUTHORS.match(rest) else rest
    quoted = next(filter(None, (one.match(rest) for one in _QUOTES)), None)
    return _IN_PLACE.sub("", quoted[1] if quoted else rest).strip(" .,;")


def _may_tell(title: str) -> bool:
    """Tell whether a title has any word of a form; most have none."""
    lowered = title.lower()
    return any(one in lowered for one in _LISTS["hints"])


def list_named(title: str) -> list[NamedPaper]:
    """List the papers that a title may be a notice of, as ``Retraction of wax on apples``."""
    # A paper may begin so, too: it is one if there is a paper of such a title. "Retraction: Lee et
    # al. Wax on apples. Fruit 3" is taken apart at its stops.
    told = read_title(title)
    if told.is_notice and told.status:
        parts = [one for one in _ENDS.split(told.title) if len(one.split()) >= _LEAST_WORDS]
        return [NamedPaper(told.status, one) for one in dict.fromkeys((told.title, *parts))]
    if not _may_tell(title):
        return []
    maybe = ((form, form.maybe.match(title)) for form in _FORMS if form.maybe)
    return [
        NamedPaper(form.status, _clean(title[found.end() :], form))
        for form, found in maybe
        if found
    ]
