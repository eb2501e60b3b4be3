"""HTML pages: what there is to read, without menus, scripts and what else stands around it."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any, BinaryIO, NamedTuple

from deepera_graph.errors import InputError
from deepera_graph.literature.citation import find_doi
from deepera_graph.packages import call_foreign
from deepera_graph.retrieval.documents import article
from deepera_graph.retrieval.documents.article import Article, Block
from deepera_graph.text.plain import read_lists, write_raised
from deepera_graph.text.references import find_year

_WORDS = read_lists(__file__)
_LEFT_OUT, _ROLES, _BLOCKS, _VOID = (
    frozenset(_WORDS[name]) for name in ("left_out", "roles", "blocks", "void")
)
_AROUND = frozenset(_WORDS["around"])  # ids and classes of what stands around a text
# What is no text, up to its end or that of the file: the parser of the standard library takes time
# quadratic in the number of those that are never closed, see CVE-2025-6069.
_NO_TEXT = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)|<[!?][^>]*(?:>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_CLOSED_BY: Mapping[str, Collection[str]] = {"p": _BLOCKS, **_WORDS["closed_by"]}
_HEADING = re.compile("h([1-6])")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_XML_CHARSET = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)""")
_ENOUGH = 20  # words of the main part; with fewer the whole page is taken
_META: Mapping[str, Sequence[str]] = _WORDS["meta"]


def read_html(name: object, source: BinaryIO) -> Article:
    """Read a page: its main part, if it marks one."""
    # Left out are scripts, menus, page heads and feet, forms' buttons, what is hidden, and lists of
    # references. Headings of the highest level below the title begin sections; the cells of a row
    # are separated by ``|``.
    raw = article.read_whole(source, name)
    page = _Page()
    call_foreign(f"{name}: broken HTML", lambda: page.read(_decode(raw, name)), error=InputError)
    title, about = _read_meta(page.meta)
    blocks = page.main if sum(len(one.text.split()) for one in page.main) >= _ENOUGH else page.whole
    blocks, title = article.take_title(blocks, title)
    made = article.build_article(blocks, title or article.join_words(page.title), about)
    why = f"{name}: has no text; a page that a script fills cannot be read"
    return article.check_article(made, why)


def _decode(raw: bytes, name: object) -> str:
    """Decode a page as browsers do: what it does not declare is taken for Windows-1252."""
    head = raw[:4096]
    found = _CHARSET.search(head) or _XML_CHARSET.search(head)
    declared = found[1].decode("ascii", "replace") if found else ""
    return article.decode(raw, name, declared=declared, otherwise="cp1252")


class _Open(NamedTuple):
    tag: str
    hides: bool
    is_main: bool


class _Page(HTMLParser):
    """Collects the blocks of a page, in time linear in its length, however deep it nests."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.whole, self.main = list[Block](), list[Block]()  # what stands in `main` or `article`
        self.meta: dict[str, list[str]] = {}  # the values of each `meta` element, in order
        self.title = ""  # of the window
        self._open, self._n_open = list[_Open](), Counter[str]()
        self._n_hidden = self._n_main = 0
        self._text, self._level, self._has_text = list[str](), 0, False
        self._raised, self._is_cited = 0, False  # where a raised text begins, and what it is

    def read(self, text: str) -> None:
        whole, mark, rest = _NO_TEXT.sub(" ", text).rpartition(">")
        self.feed(whole + mark + rest.replace("<", " "))  # no element begins behind the last ">"
        self.close()
        self._end_block()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = {key: value or "" for key, value in attrs}
        if tag == "meta":
            key = (about.get("name") or about.get("property") or "").lower()
            self.meta.setdefault(key, []).append(about.get("content", ""))
        self._close_implied(tag)
        self._mark(tag)
        if tag in _VOID:
            return
        hides, is_main = self._is_around(tag, about), tag in {"main", "article"}
        self._open.append(_Open(tag, hides, is_main))
        self._n_open[tag] += 1
        self._n_hidden += hides
        self._n_main += is_main

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take ``<p/>`` as browsers do: as an element that begins."""
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        """Close an element, and those in it that were not closed."""
        if not self._n_open[tag]:
            return
        if tag in _BLOCKS:
            self._end_block()
        elif tag == "sup":
            self._end_raised()
        while self._close_last() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not self._n_hidden:
            self._text.append(data)
            self._has_text = self._has_text or not data.isspace()
        elif self._open[-1].tag == "title" and not self.title:
            self.title = data

    def _close_last(self) -> str:
        last = self._open.pop()
        self._n_open[last.tag] -= 1
        self._n_hidden -= last.hides
        self._n_main -= last.is_main
        return last.tag

    def _close_implied(self, tag: str) -> None:
        while self._open and tag in _CLOSED_BY.get(self._open[-1].tag, ()):
            if self._close_last() in _BLOCKS:
                self._end_block()

    def _mark(self, tag: str) -> None:
        """End a block, a cell or a line where an element begins."""
        if tag in _BLOCKS:
            self._end_block()
            heading = _HEADING.fullmatch(tag)
            self._level = int(heading[1]) if heading and not self._n_hidden else 0
        elif tag in {"td", "th"} and self._has_text:
            self._text.append(article.CELLS)
        elif tag == "sup":
            self._raised, self._is_cited = len(self._text), False
        elif tag == "a":
            self._is_cited = True
        elif tag == "br":
            self._text.append("\n")

    def _end_raised(self) -> None:
        """Keep a raised text, but not one with a link in it: that is a citation or a note."""
        text = "".join(self._text[self._raised :])
        before = self._text[max(self._raised - 1, 0) : self._raised]
        del self._text[self._raised :]
        if not self._is_cited:
            self._text.append(write_raised("".join(before), text))

    def _end_block(self) -> None:
        text = article.join_words("".join(self._text)).strip("| ")
        if text:
            block = Block(text, self._level)
            self.whole.append(block)
            if self._n_main:
                self.main.append(block)
        self._text, self._level, self._has_text, self._raised = [], 0, False, 0

    def _is_around(self, tag: str, about: dict[str, str]) -> bool:
        if tag in _LEFT_OUT or "hidden" in about or about.get("aria-hidden") == "true":
            return True
        if about.get("role", "").lower() in _ROLES:
            return True
        if tag == "header":  # of a page, and not of an article
            return not self._n_main
        if tag in _WORDS["never_around"]:
            return False
        names = f"{about.get('id', '')} {about.get('class', '')}".lower().split()
        return not _AROUND.isdisjoint(names)


def _read_meta(meta: dict[str, list[str]]) -> tuple[str, dict[str, Any]]:
    found = {
        field: [
            article.join_words(one) for name in names for one in meta.get(name, ()) if one.strip()
        ]
        for field, names in _META.items()
    }
    title = next(iter(found["title"]), "")
    named = next((meta[name] for name in _META["authors"] if any(meta.get(name, ()))), [])
    about: dict[str, Any] = {
        "authors": "; ".join(article.join_words(one) for one in named if one.strip()),
        "year": find_year(found["year"]),
        "journal": next(iter(found["journal"]), ""),
        "doi": next(filter(None, map(find_doi, found["doi"])), ""),
        "pmid": next(iter(found["pmid"]), ""),
    }
    return title, {name: value for name, value in about.items() if value}
