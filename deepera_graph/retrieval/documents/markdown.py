"""Markdown: its front matter, its headings, and its text without marks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import pairwise
from typing import Any, BinaryIO

from deepera_graph.errors import InputError
from deepera_graph.packages import call_foreign, import_extra
from deepera_graph.retrieval.documents import article
from deepera_graph.retrieval.documents.article import Article, Block
from deepera_graph.text.references import find_year

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_LONGEST_FRONT_MATTER = 1 << 16
_RAISED = re.compile(r"<sup>([^<>\n]{1,30})</sup>|\^([^^\s]{1,30})\^|([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)")
_LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_TAG = re.compile(r"<!--.*?(?:-->|\Z)|</?[a-zA-Z][^>]*>", re.DOTALL)


def read_markdown(name: object, source: BinaryIO) -> Article:
    """Read a file: its front matter is metadata, and its headings begin sections."""
    # Links, emphasis and the like are read as their text. Code keeps its lines, and a ``#`` in it
    # is no heading.
    blocks, about, unread = read_markdown_blocks(name, source)
    title = about.pop("title", "")
    blocks, title = article.take_title(blocks, title if isinstance(title, str) else str(title))
    made = article.build_article(blocks, title, about, unread)
    why = f"{name}: has no text but {'a heading' if title else 'marks'}"
    return article.check_article(made, why)


def read_markdown_blocks(
    name: object,
    source: BinaryIO,
    *,
    keep_lines: bool = False,
    raise_text: article.Raiser | None = None,
) -> tuple[list[Block], dict[str, Any], str]:
    """Return all of a file in blocks, its metadata, and what is wrong with these."""
    # A block is one line, or the lines of its paragraph if they are to be kept. What is raised
    # stands as it is written, unless *raise_text* says otherwise.
    text = article.decode(article.read_whole(source, name), name).replace("\r\n", "\n")
    front = _FRONT_MATTER.match(text)
    if front is not None and len(front[1]) > _LONGEST_FRONT_MATTER:
        front = None
    about, unread = _read_front_matter(front[1]) if front is not None else ({}, "")
    body = text[front.end() :] if front is not None else text
    if raise_text is not None:
        body = _RAISED.sub(partial(_write_raised, raise_text), body)
    blocks = call_foreign(
        f"{name}: Markdown that cannot be read",
        lambda: list(_read_blocks(body, keep_lines=keep_lines)),
        error=InputError,
    )
    return blocks, about, unread


def _write_raised(raise_text: article.Raiser, found: re.Match[str]) -> str:
    raised = next(filter(None, found.groups())).translate(_LOWERED)
    before = found.string[found.string.rfind("\n", 0, found.start()) + 1 : found.start()]
    written = raise_text(before, raised)
    return found[0] if written == raised else written


def _read_blocks(text: str, *, keep_lines: bool) -> Iterator[Block]:
    markdown: Any = import_extra("markdown_it")
    tokens = markdown.MarkdownIt("commonmark").enable("table").parse(text)
    nothing = import_extra("markdown_it.token").Token("", "", 0)
    cells, number = list[str](), ""
    for before, token in pairwise([nothing, *tokens]):
        number = token.info if token.type == "list_item_open" else number  # or empty: a bullet
        if token.type == "tr_close":
            yield Block(article.CELLS.join(cells))
            cells = []
        elif token.type == "inline":
            lines = _read_inline(token.children).splitlines()
            words = ("\n" if keep_lines else " ").join(filter(None, map(article.join_words, lines)))
            if before.type in {"th_open", "td_open"}:
                cells.append(words)
            else:
                yield Block(words, _level_of(before), number)
                number = ""
        elif token.type in {"fence", "code_block"}:
            yield Block(token.content)
        elif token.type == "html_block":
            yield Block(article.join_words(_remove_tags(token.content)))


def _level_of(token: Any) -> int:
    """Return the level of the heading that a token opens; 0 of any other."""
    return int(token.tag[1:]) if token.type == "heading_open" else 0


def _remove_tags(html: str) -> str:
    end = html.rfind(">") + 1  # so that every tag is closed somewhere
    return _TAG.sub(" ", html[:end]) + html[end:]


def _read_inline(tokens: Sequence[Any]) -> str:
    parts = []
    for token in tokens:
        if token.type in {"softbreak", "hardbreak"}:
            parts.append("\n")
        elif token.type == "html_inline":
            parts.append(_TAG.sub("", token.content))
        else:  # of an image the text that stands for it
            parts.append(token.content)
    return "".join(parts)


def _read_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return metadata, and what is wrong if it cannot be read."""
    yaml: Any = import_extra("yaml")
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return {}, f"the front matter is no YAML: {article.join_words(str(error)):.160}"
    if not isinstance(found, Mapping):
        return {}, ""
    plain = {str(key): _to_plain(value) for key, value in found.items()}
    about = {key: value for key, value in plain.items() if value not in (None, "", [])}
    if "year" not in about and (year := find_year([str(about.get("date", ""))])):
        about["year"] = year
    authors = about.pop("author", about.pop("authors", None))
    if authors is not None:
        about["authors"] = "; ".join(authors) if isinstance(authors, list) else str(authors)
    return about, ""


def _to_plain(value: Any) -> Any:
    """Return a value as JSON has it; of a nested one only names, as aliases may make it endless."""
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list):
        items = (one.get("name") if isinstance(one, Mapping) else one for one in value)
        return [str(one) for one in items if isinstance(one, str | int | float | date)]
    return None
