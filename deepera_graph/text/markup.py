"""Titles and abstracts as text: without HTML and JATS, and with headings kept as words."""

import html
import re

_ATTRIBUTES = r"(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*"
_HEADING = re.compile(
    rf"<((?:jats:)?(?:h[1-6]|title)){_ATTRIBUTES}>(.*?)</\1\s*>", re.IGNORECASE | re.DOTALL
)
_BLOCK = re.compile(
    rf"</?(?:jats:)?(?:p|br|div|sec|list|list-item|ul|ol|li|abstract){_ATTRIBUTES}/?>",
    re.IGNORECASE,
)
_TAG = re.compile(rf"</?[a-zA-Z][\w:.-]*{_ATTRIBUTES}/?>")
# What databases and publishers leave in titles and abstracts; "vector<int>" is none of it.
_KNOWN = re.compile(
    r"</(?:jats:)?(?:abstract|b|bold|br|div|em|h[1-6]|i|italic|li|list|list-item|ol|p|sc|sec|span|"
    r"strong|sub|sup|title|u|ul)>|<br ?/?>",
    re.IGNORECASE,
)
_EMPTY_HEADINGS = ("abstract", "summary", "")


def clean_markup(text: str) -> str:
    """Return a text in one line without tags and entities; "p < 0.05" stays.

    A heading of a part becomes its label, as in PubMed: ``Background: ...``.
    """
    if "<" not in text and "&" not in text:
        return " ".join(text.split())
    if "<" not in text:
        text = html.unescape(text)
    text = _HEADING.sub(lambda found: _to_label(found[2]), text)
    bare = _TAG.sub("", _BLOCK.sub(" ", text))
    return " ".join(html.unescape(bare).split())


def drop_markup(text: str) -> str:
    """Return a text that has tags of HTML or JATS as `clean_markup` does, any other as it is."""
    return clean_markup(text) if _KNOWN.search(text) else text


def _to_label(heading: str) -> str:
    name = " ".join(_TAG.sub("", heading).split()).rstrip(".:")
    return " " if name.lower() in _EMPTY_HEADINGS else f" {name}: "
