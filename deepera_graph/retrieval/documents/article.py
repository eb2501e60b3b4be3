"""What every document is read into: a text in sections; bytes and XML are decoded safely."""

import codecs
import io
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import unescape
from itertools import accumulate, pairwise
from typing import Any, BinaryIO, NamedTuple, cast
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from deepera_graph.errors import InputError

_MARKS = (  # longer ones first, as UTF-32 begins as UTF-16 does
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
# What browsers take these names for, see https://encoding.spec.whatwg.org/#names-and-labels
_MEANT = {"iso8859-1": "cp1252", "ascii": "cp1252"}
N_LOOKED_AT = 4096  # bytes of a file that say what it is


def peek(source: BinaryIO) -> bytes:
    """Return the beginning of a file, up to 4096 bytes, without reading on."""
    buffered = cast("io.BufferedReader", source)
    return buffered.peek(N_LOOKED_AT)[:N_LOOKED_AT]


def find_mark(raw: bytes) -> str:
    """Return the encoding that a byte order mark names; nothing if there is none."""
    return next((name for mark, name in _MARKS if raw.startswith(mark)), "")


def decode(raw: bytes, name: object, *, declared: str = "", otherwise: str = "") -> str:
    """Decode a text by its byte order mark, as UTF-8, or as it *declared* itself; in this order."""
    tried = find_mark(raw) or "utf-8"
    try:
        return raw.decode(tried)
    except UnicodeDecodeError as error:
        if tried == "utf-8" and (known := _look_up(declared) or otherwise):
            return raw.decode(known, "replace")
        number = raw.count(b"\n", 0, error.start) + 1
        kind = "UTF-8" if tried == "utf-8" else tried.upper().removesuffix("-SIG")
        hint = "; save it as UTF-8" if kind == "UTF-8" else ""
        message = f"{name}: not {kind}: {error.reason} in line {number}{hint}"
        raise InputError(message) from error


def _look_up(charset: str) -> str:
    try:
        info = codecs.lookup(charset.strip())
    except (LookupError, ValueError):
        return ""
    try:
        b"\xff".decode(info.name, "replace")
    except (LookupError, ValueError):  # "hex", "punycode" and the like are no charsets
        return ""
    # UTF-16 with a readable declaration is a contradiction
    return "" if info.name.startswith("utf") else _MEANT.get(info.name, info.name)


def to_utf8(source: BinaryIO, name: object) -> BinaryIO:
    """Return a text in UTF-16 or UTF-32 that says so as UTF-8, and any other file as it is."""
    if find_mark(peek(source)) in {"", "utf-8-sig"}:
        return source
    return io.BytesIO(decode(source.read(), name).encode("utf-8", "replace"))


MOST_NESTED = 200
_ENCODING = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)""", re.ASCII)


def parse_xml(raw: bytes, name: object) -> Element:
    """Return the root of a document; names of elements and attributes are without namespaces."""
    # An entity that only a DTD would define is read as HTML has it (``&alpha;``). A file that
    # defines entities is refused: some are made to fill the memory, or to read other files.
    # Source: https://docs.python.org/3/library/xml.html#xml-vulnerabilities
    try:
        return _read(_Reader(name), raw, name)
    except InputError:
        raise
    except (LookupError, ValueError):  # expat knows no encoding such as GB18030 or Shift_JIS
        found = _ENCODING.match(raw)
        text = decode(raw, name, declared=found[1].decode() if found else "")
        return _read(_Reader(name, "utf-8"), text.encode(), name)


def _read(reader: "_Reader", raw: bytes, name: object) -> Element:
    try:
        reader.parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise InputError(f"{name}: broken, or no XML: {error}") from error
    return reader.builder.close()


class _Reader:
    """Builds the tree of what the parser tells."""

    def __init__(self, name: object, encoding: str | None = None) -> None:
        self._name, self._depth = name, 0
        self.builder = TreeBuilder()
        self.parser: Any = expat.ParserCreate(encoding)
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self.builder.data
        self.parser.EntityDeclHandler = self._refuse_entity
        self.parser.SkippedEntityHandler = self._read_entity

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise InputError(f"{self._name}: elements are nested more than {MOST_NESTED} deep")
        local = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        self.builder.start(tag.rpartition(":")[2], local)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        self.builder.end(tag.rpartition(":")[2])

    def _refuse_entity(self, entity: str, *about: Any) -> None:
        notation = about[-1]
        if notation is None:  # one with a notation is a picture, which is never read
            raise InputError(f"{self._name}: defines the entity {entity!r:.40}, which is unsafe")

    def _read_entity(self, entity: str, is_parameter: bool) -> None:
        if not is_parameter:
            self.builder.data(unescape(f"&{entity};"))


MOST_BYTES = 512 << 20  # of a document, decompressed
CELLS = " | "  # between the cells of a row
BETWEEN_BLOCKS = "\n\n"  # an empty line ends a sentence, see `split_sentences`
_HEADINGS = """
    abstract|summary|introduction|background|methods?|methodology|(?:materials?|patients?|subjects?)
    and methods?|methods? and materials?|experimental|experimental section|results|findings
    |results and discussion|discussion|conclusions?|discussion and conclusions?|limitations
    |acknowledge?ments?|funding|(?:conflicts?|competing)(?: of)? interests?
    """
_NUMBER = r"(?:\d+(?:\.\d+)*\.?|[IVX]+\.)"
_USUAL = re.compile(
    rf"(?:{_NUMBER} )?({' '.join(_HEADINGS.split()).replace(' |', '|')})[ :.]*", re.IGNORECASE
)
_LISTS = (
    r"r ?eferences|bibliography|literature cited|works cited|r ?eferences and notes"
    r"|cited literature"
)
REFERENCES = rf"(?:{_NUMBER} +)?(?:{_LISTS})[ :.]*"
_REFERENCES = re.compile(REFERENCES, re.IGNORECASE)
_NUMBERED = re.compile(r"\A(?:\d+(?:\.\d+)*\.|\d+(?:\.\d+)+|\d+(?= [A-Z]))\s+")
# How small capitals come out of many a PDF: "R EFERENCES".
_SMALL_CAPITALS = re.compile(r"\b([A-Z]) ([A-Z]{2,})")


class Section(NamedTuple):
    """What stands under one heading, and where."""

    name: str  # the heading, such as ``Results``; empty if there is none
    text: str  # not blank; of a form with pages one after the other, separated by single spaces
    starts: tuple[int, ...] = ()  # where in it each page begins; empty for a form without pages
    pages: tuple[int, ...] = ()  # the numbers of these pages, counted from 1

    def find_place(self, start: int, end: int) -> dict[str, Any]:
        """Return where a part of the text stands, as far as the file says."""
        # That is `section` and `page`; if it ends on another page also `last_page` and
        # `page_starts`, shape (n_pages, 2): each page, and where in the part it begins.
        place: dict[str, Any] = {"section": self.name} if self.name else {}
        if not self.pages:
            return place
        first, last = (bisect_right(self.starts, offset) - 1 for offset in (start, end - 1))
        place["page"] = self.pages[first]
        if self.pages[first] != self.pages[last]:
            places = range(last, first - 1, -1)  # the first place of a page is the last that counts
            starts = {self.pages[at]: max(self.starts[at] - start, 0) for at in places}
            place["last_page"] = self.pages[last]
            place["page_starts"] = [[page, begin] for page, begin in sorted(starts.items())]
        return place


class Article(NamedTuple):
    """What was read of a document."""

    sections: tuple[Section, ...]  # not empty
    title: str  # as the file says it, or nothing
    metadata: dict[str, Any]  # `authors`, `year`, `journal`, `doi`, ..., as far as it tells them
    unread: str = ""  # what is wrong with parts that could not be read

    @property
    def whole(self) -> Section:
        """All of the text, without the headings that name sections."""
        if not any(section.pages for section in self.sections):
            return Section("", BETWEEN_BLOCKS.join(one.text for one in self.sections))
        parts = [
            (page, section.text[start:end].strip())
            for section in self.sections
            for page, (start, end) in zip(
                section.pages, pairwise((*section.starts, len(section.text))), strict=True
            )
        ]
        return join_pages("", parts)


class Block(NamedTuple):
    """A paragraph, a row of a table or a heading, in the order of reading."""

    text: str
    level: int = 0  # of a heading, >= 1, the highest first; 0 for what is none
    number: str = ""  # of an item of a list that its form counts, and does not write as text


def join_pages(name: str, parts: Sequence[tuple[int, str]]) -> Section:
    """Return a section of the texts of pages, shape (n_pages, 2); neither is empty."""
    lengths = [len(text) + 1 for _, text in parts]
    return Section(
        name=name,
        text=" ".join(text for _, text in parts),
        starts=tuple(accumulate(lengths[:-1], initial=0)),
        pages=tuple(number for number, _ in parts),
    )


def build_article(
    blocks: Iterable[Block], title: str, metadata: dict[str, Any], unread: str = ""
) -> Article | None:
    """Return the article that blocks make up; None if they have no text."""
    # The highest headings begin sections, and deeper ones are paragraphs. What stands under a
    # heading such as "References" is left out, up to the next heading that is no deeper.
    known = [Block(block.text.strip(), block.level) for block in blocks]
    kept = _drop_references(block for block in known if block.text)
    sections = tuple(_split_sections(kept))
    return Article(sections, title, metadata, unread) if sections else None


def check_article(made: Article | None, why: str) -> Article:
    """Return an article that has a text; raise an error that says why there is none."""
    if made is None:
        raise InputError(why)
    return made


def take_title(blocks: Sequence[Block], title: str = "") -> tuple[list[Block], str]:
    """Return the blocks without the heading that is the title of all, and the title."""
    # That is a heading that says the same as *title*, or the first one if it is above all others;
    # else the first heading is only told as the title, and begins a section, too.
    heads = [block for block in blocks if block.level]
    if not heads:
        return list(blocks), title
    named = [block for block in heads if title and join_words(block.text) == title]
    above = heads[:1] if _is_above(heads) else []
    for head in (named or above)[:1]:
        return [block for block in blocks if block is not head], title or join_words(head.text)
    first = "" if find_usual(heads[0].text) else join_words(heads[0].text)
    return list(blocks), title or first


def _is_above(heads: Sequence[Block]) -> bool:
    """Tell whether the first heading is higher than all others, and no usual one."""
    first = heads[0]
    return find_usual(first.text) == "" and all(one.level > first.level for one in heads[1:])


def _drop_references(blocks: Iterable[Block]) -> list[Block]:
    kept, left_out = list[Block](), 0
    for block in blocks:
        if block.level and (not left_out or block.level <= left_out):
            left_out = block.level if is_references(block.text) else 0
        if not left_out:
            kept.append(block)
    return kept


def _split_sections(blocks: Sequence[Block]) -> Iterator[Section]:
    level = min((block.level for block in blocks if block.level), default=0)
    name, texts = "", list[str]()
    for block in blocks:
        if level and block.level == level:
            yield from _to_section(name, texts)
            name, texts = _name_section(block.text), []
        else:
            texts.append(block.text)
    yield from _to_section(name, texts)


def _to_section(name: str, texts: Sequence[str]) -> Iterator[Section]:
    if texts:
        yield Section(name, BETWEEN_BLOCKS.join(texts))


def _name_section(heading: str) -> str:
    return find_usual(heading) or _NUMBERED.sub("", " ".join(heading.split()), count=1)


def find_usual(line: str) -> str:
    """Return the name of a usual heading, such as ``Results`` of "3. RESULTS:"; else nothing."""
    found = _USUAL.fullmatch(_SMALL_CAPITALS.sub(r"\1\2", line.strip()))
    return found[1].capitalize() if found else ""


def is_references(line: str) -> bool:
    """Tell whether a heading begins a list of references."""
    return _REFERENCES.fullmatch(line.strip()) is not None


def join_words(text: str) -> str:
    """Return a text in one line."""
    return " ".join(text.split())


Raiser = Callable[[str, str], str]  # what a raised text becomes behind what is before it


def read_whole(source: BinaryIO, name: object) -> bytes:
    """Read a file that is needed as a whole."""
    raw = source.read(MOST_BYTES + 1)
    if not raw.strip():
        raise InputError(f"{name}: the file is empty")
    if len(raw) > MOST_BYTES:
        raise InputError(f"{name}: larger than {MOST_BYTES >> 20} MB")
    return raw
