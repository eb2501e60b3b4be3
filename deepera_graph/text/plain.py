"""Text without what a page, a terminal or a spreadsheet would obey: markup, escapes, formulas."""

import csv
import html
import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "***"  # in place of a secret
# That this package wrote a text, for its own commands: no reader is shown it.
MARK = "<!-- written by deepera -->"
MARK_OF_PAGES = '<meta name="generator" content="deepera">'
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
_SUP = re.compile(  # within it may stand other tags
    rf"<(?:jats:)?sup{_ATTRIBUTES}>((?:[^<>]++|<(?!/?(?:jats:)?sup\b)[^<>]*+>)*+)"
    r"</(?:jats:)?sup\s*>",
    re.IGNORECASE,
)
_LOOKED_BACK = 60  # characters before a raised text, tags among them
_EXPONENT = re.compile(r"[-−–+]?\d+")
_RAISED = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z]\w{1,30});")
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?")
_LETTERS = str.maketrans({"ß": "ss", "ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i"})
_EMPTY_HEADINGS = ("abstract", "summary", "")


def read_lists(module: str, name: str = "") -> dict[str, Any]:
    """Return lists of words: of the TOML file beside a module, of its `__file__`, or of a name."""
    file = Path(module).with_name(name) if name else Path(module).with_suffix(".toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def fold_accents(text: str) -> str:
    """Return a text in lower case without accents: ``muller`` of ``Müller``, ``o`` of ``Ø``."""
    if text.isascii():
        return text.casefold()
    plain = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def read_number(text: str) -> int | float | None:
    """Return the number that a text is; None of what is none, such as ``007`` and ``1e5``."""
    if not _PLAIN_NUMBER.fullmatch(text):
        return None
    return float(text) if "." in text else int(text)


def clean_markup(text: str) -> str:
    """Return a text in one line without tags and entities; "p < 0.05" stays."""
    # A heading of a part becomes its label, as in PubMed: ``Background: ...``.
    if "<" not in text and "&" not in text:
        return " ".join(text.split())
    if "<" not in text:
        text = html.unescape(text)
        if not _KNOWN.search(text):  # "p &lt; 0.05"; "&lt;p&gt;" is markup, escaped as a whole
            return " ".join(text.split())
    text = _HEADING.sub(lambda found: _to_label(found[2]), text)
    text = _SUP.sub(_raise, text)
    bare = _TAG.sub("", _BLOCK.sub(" ", text))
    return " ".join(html.unescape(bare).split())


def _raise(found: re.Match[str]) -> str:
    bare = _TAG.sub("", found[1])
    text = html.unescape(bare)
    before = _TAG.sub("", found.string[max(0, found.start() - _LOOKED_BACK) : found.start()])
    raised = write_raised(before, text)
    return bare if raised == text else raised  # entities of others are read with the rest


def write_raised(before: str, text: str) -> str:
    """Return a raised text; an exponent stays one, as 10 to the power of 6 is not 106."""
    is_exponent = before[-1:].isdigit() and _EXPONENT.fullmatch(text)
    return text.translate(_RAISED) if is_exponent else text


def mark_markdown(text: str) -> str:
    """Return Markdown with the mark that this package wrote it."""
    return f"{text.rstrip()}\n\n{MARK}\n"


def drop_mark(text: str) -> str:
    """Return Markdown without the mark."""
    return text.removesuffix(f"\n{MARK}\n")


def drop_markup(text: str) -> str:
    """Return a text with tags of HTML or JATS as `clean_markup` does, others without entities."""
    decoded = _ENTITY.sub(lambda found: html.unescape(found[0]).replace("\xa0", " "), text)
    is_escaped = "<" not in text and _KNOWN.search(decoded)
    return clean_markup(text) if is_escaped or _KNOWN.search(text) else decoded


def _to_label(heading: str) -> str:
    name = " ".join(_TAG.sub("", heading).split()).rstrip(".:")
    return " " if name.lower() in _EMPTY_HEADINGS else f" {name}: "


_INSTEAD = "\ufffd"
# C0 but for tabs and the ends of lines, DEL and C1; embeddings, overrides and isolates.
OBEYED = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")


def replace_controls(text: str) -> str:
    """Return a text that shows a mark in place of each of these characters."""
    return OBEYED.sub(_INSTEAD, text)


def count(n: int, what: str) -> str:
    """Return a number of things, e.g. ``1 line``, ``2 lines`` or ``3 studies``."""
    many = f"{what[:-1]}ies" if what.endswith("y") and what[-2:-1] not in "aeiou" else f"{what}s"
    return f"{n} {what if n == 1 else many}"


def describe_seconds(seconds: float) -> str:
    """Return a time as people say it: ``40 s``, ``12 min``, ``15 h``."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def name_some(names: Sequence[str], most: int = 5) -> str:
    """Return the first of some names, and how many more there are: ``a, b and 3 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def in_one_line(text: str) -> str:
    """Return a text as `replace_controls` does, in one line."""
    return replace_controls(" ".join(text.split()))


_AMOUNT = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:%|\s[%°µA-Za-z][\w°/]*)?"
_NUMBER = re.compile(rf"{_AMOUNT}(?:\sto\s{_AMOUNT})?")  # -0.1 mmol/l, -0.15 to -0.03
_FORMULAS = ("=", "+", "-", "@", "\t", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def write_sheet(rows: Iterable[Sequence[Any]], *, end: str = "\n") -> str:
    """Return rows as CSV in which no text is a formula: such a one has an apostrophe in front."""
    # Numbers are written as they are, also those that are text already, have a unit or are an
    # interval; None is an empty cell.
    # Source: https://owasp.org/www-community/attacks/CSV_Injection
    text = StringIO()
    csv.writer(text, lineterminator=end).writerows(map(defuse, row) for row in rows)
    return text.getvalue()


def defuse(cell: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula."""
    if not isinstance(cell, str):
        return cell
    text = replace_controls(
        cell.replace("\r\n", "\n").replace("\r", "\n")
    )  # which `csv` would leave unquoted
    return f"'{text}" if text.startswith(_FORMULAS) and not _NUMBER.fullmatch(text) else text


def hide_secrets(text: str, secrets: Collection[str], shortest: int = 1) -> str:
    """Return a text with stars in place of secrets, as they are or as in addresses.

    One with fewer letters than *shortest* is a placeholder, and would blank out words.
    """
    # That is done before any text is cut: a part of a key would be found no more.
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= shortest:
            for written in (secret, quote_plus(secret), quote(secret)):
                text = text.replace(written, HIDDEN)
    return text
