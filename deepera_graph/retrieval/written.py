"""Files that are no papers: what this package wrote (reports, tables, journals), and manuscripts.

Of the former, pages and Markdown carry a mark; tables, JSON and plain text are told by how they
begin or end. A manuscript in Markdown names its bibliography ahead, and cites from it.
"""

import re
from typing import BinaryIO

from deepera_graph.text.plain import MARK, MARK_OF_PAGES
from deepera_graph.text.records import LINES, TABLES

_MOST_READ, _OF_RECORDS = 1_000_000, 100_000  # bytes; of what is longer the end is not looked at
_MARKDOWN = (".md", ".markdown")
_PAGES, _TEXTS = (".html", ".htm", ".xhtml"), (*_MARKDOWN, ".txt")
MAY_BE_WRITTEN = frozenset((*_PAGES, *_TEXTS, *TABLES, *LINES, ".json"))
_HEADERS = (  # of CSV, by `ask`, `check`, `table`, `papers search` and `papers ask`
    "decision,rank,score,direction,title,authors,",
    "claim,section,manuscript_page,sentence,statement,",
    "study,year,status,band,says,link,score,",
    "rank,id,title,authors,year,venue,doi,url,score,",
)
_TEXT = r'"(?:[^"\\]|\\.)*"'
_JSON = [
    re.compile(rf"\s*\{{\s*{begin}", re.DOTALL)
    for begin in (
        r'"format":\s*\d+,\s*"(?:question|manuscript|ran)":',  # results, tables, journals
        rf'"question":\s*{_TEXT},\s*"limits":\s*\{{\s*"question":',  # `papers ask`
        rf'"question":\s*{_TEXT},\s*"answer":.*"stopped":',  # `ask --multihop`
        rf'"question":\s*{_TEXT},\s*"passages":\s*\[.*"n_read":\s*\d+,\s*"n_searches":\s*\d+\s*\}}\s*\Z',
        r'"paper":\s*\{\s*"id":.*"references":.*"citations":',  # `papers cite`
        rf'"status":\s*{_TEXT},\s*"mode":\s*{_TEXT},\s*"offset":',  # `papers search`
        rf'"end":\s*{_TEXT},\s*"lines":\s*\{{\s*"read":',  # the report of `rerank`
        rf'"id":\s*{_TEXT},\s*"question":\s*{_TEXT},\s*"intent":\s*\{{\s*"topic":',  # its lines
    )
]
_HEADS = [  # of plain text
    re.compile(said)
    for said in (
        r"[^\n]*\n\n\d+ claims?, \d+ pairs? of claim and reference: ",
        r" {3}1  \S+  [^\n]+(?:\n {2,3}\d+  \S+  [^\n]+|\n {8,}[^\n]+)*\s*\Z",
    )
]
_ENDS = [  # of plain text, in one line
    re.compile(said)
    for said in (
        r" \w+: \d+ kept\b.*, \d+ dropped\b.*, \d+ failed\b.*; judged in [\d.]+ s(?:; .*)?\Z",
        r" judged by \S+; (?:[^;]*; )?\d+ calls?(?:, \d+ more failed)?\Z",
        r" in path order, after \d+ search(?:es)?; no judge has read them",
        r" \d+ papers?, \d+ left out; \d+ lookups? in \d+ rounds? \(",
        r" \w+: \d+ steps? \([^)]*\), \d+ calls?\b.*, \d+ tokens, [\d.]+ s\Z",
    )
]
_LAST = 1500  # characters, in which the closing lines stand
WRITTEN = "deepera wrote"
MANUSCRIPT = "a bibliography and [@key] show to be of a manuscript"
_METADATA = re.compile(
    r"---[^\S\n]*\n(?P<lines>(?:(?!---|\.\.\.).*\n)*)(?:---|\.\.\.)"
)  # of Pandoc
_BIBLIOGRAPHY = re.compile(r"^(?:bibliography|references)\s*:", re.MULTILINE)
_KEY = re.compile(r"(?<![\w@])@\{?[A-Za-z_]")


def why_no_paper(source: BinaryIO, suffix: str) -> str:
    """Return what tells that a file, open and decompressed, is no paper; empty if nothing does."""
    text = source.read(_OF_RECORDS if suffix in (*TABLES, *LINES) else _MOST_READ)
    said = text.decode("utf-8", "replace").removeprefix("\ufeff")
    if _is_written(said, suffix):
        return WRITTEN
    head = _METADATA.match(said) if suffix in _MARKDOWN else None
    is_draft = head and _BIBLIOGRAPHY.search(head["lines"]) and _KEY.search(said, head.end())
    return MANUSCRIPT if is_draft else ""


def _is_written(text: str, suffix: str) -> bool:
    """Tell whether a file begins or ends as what a command of this package writes."""
    if suffix in TABLES:
        return text.startswith(_HEADERS)
    if suffix in (*LINES, ".json"):
        return any(one.match(text) for one in _JSON)
    if suffix in _PAGES:
        return MARK_OF_PAGES in text
    end = " ".join(text[-_LAST:].split())
    return (
        end.endswith(MARK)
        or any(one.match(text) for one in _HEADS)
        or any(one.search(end) for one in _ENDS)
    )
