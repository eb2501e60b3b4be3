"""Articles in JATS, the XML that PubMed Central and Europe PMC give.

Source:
    https://jats.nlm.nih.gov/archiving/tag-library/1.3/
"""

from collections.abc import Iterator
from typing import Any, BinaryIO
from xml.etree.ElementTree import Element

from deepera_graph.errors import InputError
from deepera_graph.retrieval.documents.article import (
    Article,
    Block,
    build_article,
    join_words,
    parse_xml,
    read_whole,
)
from deepera_graph.text.plain import read_lists, write_raised

_TAGS = read_lists(__file__)
_UNREAD = (*_TAGS["no_text"], *_TAGS["with_caption"])
_APART = ("break", *_TAGS["in_sections"], *_TAGS["paragraphs"])


def read_jats(name: object, source: BinaryIO) -> Iterator[Article]:
    """Yield the articles of a file; lists of references and reviews beside them are left out."""
    # Of a figure or a table its label and caption are read. Articles without any text are left out.
    root = parse_xml(read_whole(source, name), name)
    if root.tag not in _TAGS["roots"]:
        raise InputError(
            f"{name}: XML of another kind (<{root.tag[:40]}>); articles in JATS are read, as PubMed"
            " Central has them"
        )
    found = [root] if root.tag == "article" else list(root.iter("article"))
    articles = [article for one in found if (article := _read_article(one)) is not None]
    if not articles:
        raise InputError(f"{name}: no article with a text in it")
    yield from articles


def _read_article(article: Element) -> Article | None:
    meta = article.find("front/article-meta")
    title, about = _read_meta(article, meta) if meta is not None else ("", {})
    blocks = list(_read_abstracts(meta)) if meta is not None else []
    body = article.find("body")
    if body is not None:
        own = list(_read_blocks(body, 1))
        if blocks and own and not own[0].level:
            blocks.append(Block("Text", 1))
        blocks += own
    back = article.find("back")
    for one in back if back is not None else ():
        if one.tag in {"sec", "ack", "app", "app-group"}:
            blocks += _read_blocks_of(one, 1)
    floats = article.find("floats-group")
    if floats is not None:
        blocks += [Block("Figures and tables", 1), *_read_blocks(floats, 2)]
    return build_article(blocks, title, about)


def _read_abstracts(meta: Element) -> Iterator[Block]:
    for abstract in meta.findall("abstract"):
        if abstract.get("abstract-type") not in _TAGS["other_abstracts"]:
            yield Block("Abstract", 1)
            yield from _read_blocks(abstract, 2)


def _read_blocks(parent: Element, level: int) -> Iterator[Block]:
    for child in parent:
        yield from _read_blocks_of(child, level)


def _read_blocks_of(child: Element, level: int) -> Iterator[Block]:
    if child.tag in _TAGS["sections"]:
        title = _text_of(child.find("title")) or _TAGS["named"].get(child.tag, "")
        yield Block(title, level)
        yield from _read_blocks(child, level + 1 if title else level)
    elif child.tag in _TAGS["in_sections"]:
        yield from _read_blocks(child, level)
    elif child.tag in _TAGS["paragraphs"]:
        yield Block(_text_of(child))
        for inner in child.iter():
            if inner is not child and inner.tag in _TAGS["with_caption"]:
                yield from _read_caption(inner)
    elif child.tag in _TAGS["with_caption"]:
        yield from _read_caption(child)


def _read_caption(element: Element) -> Iterator[Block]:
    parts = [_text_of(element.find(path)) for path in ("label", "caption/title")]
    parts += [_text_of(one) for one in element.findall("caption/p")]
    if any(parts[1:]):
        label = f"{parts[0].rstrip('.')}." if parts[0] else ""
        yield Block(" ".join(filter(None, [label, *parts[1:]])))


def _text_of(element: Element | None) -> str:
    """Return the text in one line, without formulas in TeX, notes, figures and raised citations."""
    return "" if element is None else join_words("".join(_read_texts(element)))


def _read_texts(element: Element) -> Iterator[str]:
    before = element.text or ""
    yield before
    for child in element:
        if child.tag == "sup" and not _is_raised_citation(child):
            yield write_raised(before, "".join(_read_texts(child)))
        elif child.tag not in _UNREAD and not _is_raised_citation(child):
            yield from _read_texts(child)
        if child.tag in _APART:
            yield " "
        before = child.tail or ""
        yield before


def _is_raised_citation(element: Element) -> bool:
    """Tell whether it is a number such as the 12 of "grew by 40%12", which would change a value."""
    inner = list(element)
    are_references = [one.get("ref-type") in {"bibr", "fn"} for one in inner]
    if element.tag == "sup":
        return bool(inner) and all(are_references)
    return element.tag == "xref" and [one.tag for one in inner] == ["sup"]


def _read_meta(article: Element, meta: Element) -> tuple[str, dict[str, Any]]:
    ids = {
        _TAGS["ids"][kind]: join_words(one.text or "")
        for one in meta.findall("article-id")
        if (kind := one.get("pub-id-type", "")) in _TAGS["ids"]
    }
    journal = article.find("front/journal-meta//journal-title")
    about: dict[str, Any] = {
        "authors": "; ".join(filter(None, _read_authors(meta))),
        "year": _read_year(meta),
        "journal": _text_of(journal),
        **ids,
    }
    title = _text_of(meta.find("title-group/article-title"))
    return title, {name: value for name, value in about.items() if value}


def _read_authors(meta: Element) -> Iterator[str]:
    for one in meta.findall("contrib-group/contrib"):
        if one.get("contrib-type", "author") == "author":
            name = one.find("name")
            name = one.find("name-alternatives/name") if name is None else name
            parts = () if name is None else (name.find("surname"), name.find("given-names"))
            yield ", ".join(filter(None, map(_text_of, parts))) or _text_of(one.find("collab"))


def _read_year(meta: Element) -> int | None:
    """Return the year in which it came out first, in print or on the web."""
    years = [_text_of(one.find("year")) for one in meta.findall("pub-date")]
    return min((int(year) for year in years if year.isdecimal()), default=None)
