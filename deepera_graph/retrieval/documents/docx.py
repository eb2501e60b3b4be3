"""DOCX, the form of Word: paragraphs, headings and tables, as they stand after all changes.

Read from its XML: `python-docx` passes over words inserted in a tracked change and over content
controls, in which citation managers write.

Source:
    ECMA-376, Office Open XML, part 1, 17 (WordprocessingML)
"""

import io
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple
from xml.etree.ElementTree import Element
from zipfile import ZipFile

from deepera_graph.errors import InputError
from deepera_graph.packages import call_foreign
from deepera_graph.retrieval.documents import article
from deepera_graph.retrieval.documents.article import Article, Block
from deepera_graph.text.plain import write_raised

OLD_WORD = b"\xd0\xcf\x11\xe0"  # the beginning of .doc, and of a protected .docx
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_CONTENTS = re.compile(r"(?:toc|table of figures)\b.*", re.IGNORECASE)
_TITLE = "title"
_LEFT_OUT = ("del", "moveFrom", "Fallback", "pPr", "rPr", "instrText", "pict")
_SPACES = ("tab", "br", "cr", "noBreakHyphen")
_PLAIN_TEXT = 9  # of the levels of an outline, from 0
_NO_AUTHORS = ("python-docx", "microsoft office user")


class _Styles(NamedTuple):
    """What the styles of paragraphs mean."""

    levels: Mapping[str, int]  # of headings, from 1
    contents: frozenset[str]  # lines of a table of contents
    titles: frozenset[str]
    lists: Mapping[str, str]  # with numbers, by the styles of their items


def read_docx(name: object, source: BinaryIO) -> Article:
    """Read a file: its headings begin sections, and the cells of a row are separated by ``|``."""
    # Words that a tracked change deletes are left out, as are heads, feet, notes, comments, a table
    # of contents and the references. A file without headings is cut at the usual ones.
    blocks, title, about = read_docx_blocks(name, source)
    made = article.build_article(blocks, title, about)
    return article.check_article(made, f"{name}: has no text")


def read_docx_blocks(
    name: object,
    source: BinaryIO,
    raise_text: article.Raiser = write_raised,
    prepare: Callable[[Element], None] | None = None,
) -> tuple[list[Block], str, dict[str, Any]]:
    """Return all of a file in blocks, the references too, its title, and what it says of itself."""
    # *raise_text* writes a raised text, given what stands before it; *prepare* may change the body
    # before it is read.
    raw = article.read_whole(source, name)
    if raw.startswith(OLD_WORD):
        raise InputError(
            f"{name}: protected by a password, or in the old form of Word; save it again"
        )
    return call_foreign(
        f"{name}: broken, or not a DOCX file",
        lambda: _read(name, raw, raise_text, prepare),
        error=InputError,
    )


def _read(
    name: object, raw: bytes, raise_text: article.Raiser, prepare: Callable[[Element], None] | None
) -> tuple[list[Block], str, dict[str, Any]]:
    with ZipFile(io.BytesIO(raw)) as archive:
        if sum(one.file_size for one in archive.infolist()) > article.MOST_BYTES:
            raise InputError(f"{name}: unpacks to more than {article.MOST_BYTES >> 20} MB")
        main = _find_main(archive, name)
        beside = (
            posixpath.join(main.rpartition("/")[0], one) for one in ("styles.xml", "numbering.xml")
        )
        parts = [_load(archive, one, name) for one in beside]
        numbered, styles = _read_lists(parts[1]), _read_styles(parts[0])
        about = _read_about(_load(archive, "docProps/core.xml", name))
        document = _load(archive, main, name)
    body = None if document is None else document.find("body")
    if prepare is not None and body is not None:
        prepare(body)
    titles, blocks, counts = list[str](), list[Block](), Counter[str]()
    for style, found in () if body is None else _read_blocks(body, styles, raise_text):
        counts[found.number] += 1
        number = str(counts[found.number]) if found.number in numbered else ""
        block = found._replace(number=number)
        if style in styles.titles and block.text and not blocks:
            titles.append(block.text)
        else:
            blocks.append(block)
    if not any(block.level for block in blocks):
        blocks = [_guess_heading(block) for block in blocks]
    title = article.join_words(" ".join(titles)) or about.pop(_TITLE, "")
    about.pop(_TITLE, None)
    return blocks, title, about


def _find_main(archive: ZipFile, name: object) -> str:
    """Return where the text is: mostly ``word/document.xml``."""
    relations = _load(archive, "_rels/.rels", name)
    for one in () if relations is None else relations:
        if one.get("Type", "").endswith("/officeDocument"):
            main = one.get("Target", "").lstrip("/")
            if main in archive.namelist():
                return main
    if "word/document.xml" in archive.namelist():
        return "word/document.xml"
    raise InputError(f"{name}: a ZIP file without a document of Word in it")


def _load(archive: ZipFile, part: str, name: object) -> Element | None:
    if part not in archive.namelist():
        return None
    return article.parse_xml(archive.read(part), f"{name}: {part}")


def _read_styles(root: Element | None) -> _Styles:
    styles = [] if root is None else list(root.iter("style"))
    names = {one.get("styleId", ""): _value(one.find("name")) for one in styles}
    contents = frozenset(id for id, name in names.items() if _CONTENTS.fullmatch(name))
    levels = {id: level for one in styles if (id := one.get("styleId", "")) not in contents
              and (level := _read_level(one, names[id]))}  # fmt: skip
    for one in styles:  # a style of one's own that is based on a heading
        parent = _value(one.find("basedOn"))
        if parent in levels and one.get("styleId", "") not in contents:
            levels.setdefault(one.get("styleId", ""), levels[parent])
    titles = frozenset(id for id, name in names.items() if name.lower() == _TITLE)
    lists = {id: number for one in styles if (id := one.get("styleId", ""))
             and (number := _find_list(one))}  # fmt: skip
    return _Styles(levels, contents, titles, lists)


def _find_list(element: Element) -> str:
    """Return the list whose item, of the first level, a paragraph or a style is; else nothing."""
    is_first = _value(element.find("pPr/numPr/ilvl")) in ("", "0")
    return _value(element.find("pPr/numPr/numId")) if is_first else ""


def _read_lists(root: Element | None) -> frozenset[str]:
    """Return the lists whose items have numbers, no bullets."""
    if root is None:
        return frozenset()
    decimal = {
        one.get("abstractNumId")
        for one in root.iter("abstractNum")
        for level in one.iter("lvl")
        if level.get("ilvl") == "0" and _value(level.find("numFmt")) == "decimal"
    }
    return frozenset(
        one.get("numId", "")
        for one in root.iter("num")
        if _value(one.find("abstractNumId")) in decimal
    )


def _read_level(style: Element, name: str) -> int:
    """Return the level of a style of headings; 0 of another."""
    if heading := _HEADING.fullmatch(name):
        return int(heading[1])
    return _read_outline(style)


def _read_outline(element: Element) -> int:
    """Return the level that a style or a paragraph has in the outline; 0 for plain text."""
    outline = _value(element.find("pPr/outlineLvl"))
    return int(outline) + 1 if outline.isdecimal() and int(outline) < _PLAIN_TEXT else 0


def _value(element: Element | None) -> str:
    return "" if element is None else element.get("val", "")


def _read_blocks(
    parent: Element, styles: _Styles, raise_text: article.Raiser
) -> Iterator[tuple[str, Block]]:
    """Yield paragraphs and rows of tables with their styles, those in content controls, too."""
    for child in parent:
        if child.tag == "p":
            style = _value(child.find("pPr/pStyle"))
            if style not in styles.contents:
                level = _read_outline(child) or styles.levels.get(style, 0)
                number = _find_list(child) or styles.lists.get(style, "")
                yield style, Block(_text_of(child, raise_text), level, number)
        elif child.tag == "tbl":
            for row in child.iter("tr"):
                cells = (_text_of(cell, raise_text) for cell in _cells_of(row))
                yield "", Block(article.CELLS.join(filter(None, cells)))
        elif child.tag not in _LEFT_OUT and child.tag != "sectPr":
            yield from _read_blocks(child, styles, raise_text)


def _cells_of(row: Element) -> Iterator[Element]:
    for child in row:
        if child.tag == "tc":
            yield child
        elif child.tag in {"sdt", "sdtContent"}:
            yield from _cells_of(child)


def _text_of(element: Element, raise_text: article.Raiser) -> str:
    return article.join_words("".join(_read_texts(element, raise_text)))


def _read_texts(element: Element, raise_text: article.Raiser) -> Iterator[str]:
    before = ""
    for child in element:
        if child.tag == "r":
            text = "".join(_read_texts(child, raise_text))
            is_raised = _value(child.find("rPr/vertAlign")) == "superscript"
            yield raise_text(before, text) if is_raised else text
            before = text or before
            continue
        if child.tag == "t":
            yield child.text or ""
        elif child.tag in _SPACES:
            yield "-" if child.tag == "noBreakHyphen" else " "
        elif child.tag not in _LEFT_OUT and child.tag != "tbl":
            yield from _read_texts(child, raise_text)
            if child.tag == "p":
                yield " "


def _guess_heading(block: Block) -> Block:
    is_heading = article.find_usual(block.text) or article.is_references(block.text)
    return Block(block.text, 1) if is_heading else block


def _read_about(root: Element | None) -> dict[str, Any]:
    """Return title and authors, if these are full names; a name alone is that of an account."""
    if root is None:
        return {}
    found = {field: article.join_words(root.findtext(tag) or "") for field, tag in
             ((_TITLE, "title"), ("authors", "creator"))}  # fmt: skip
    if " " not in found["authors"] or found["authors"].lower() in _NO_AUTHORS:
        found["authors"] = ""
    return {name: value for name, value in found.items() if value}
