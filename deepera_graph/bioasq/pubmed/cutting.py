"""A file of PubMed cut into its elements at their end tags, unread; memory holds one of them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

SHOWN = 4096  # bytes of what stands between records
_LONGEST = 1 << 25  # bytes of one record; the longest of PubMed has about 2 MB
_TAIL = 32  # bytes that may be the beginning of a tag
_CUT_TAG = re.compile(rb"<[^<>]*\Z")  # at the end of a file that is cut off
_TOP = re.compile(
    rb"<(PubmedArticle|PubmedBookArticle|DeleteCitation)(?=[\s/>])|(<!--)|(<!DOCTYPE)"
)
_STARTS = (b"<PubmedArticle", b"<PubmedBookArticle", b"<DeleteCitation")
_DOCTYPE = re.compile(rb"<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL)
_SET = re.compile(rb"<PubmedArticleSet\b[^>]*>")
_FRAME = re.compile(rb"<\?.*?\?>|</?PubmedArticleSet\b[^>]*>|\xef\xbb\xbf", re.DOTALL)
_END_OF_SET = b"</PubmedArticleSet"


class PubmedElement(NamedTuple):
    """An element of the file, or, without a name, what stands between them and is none."""

    name: bytes
    xml: bytes


class Cutter:
    """Cuts a file into its elements.

    Attributes:
        set_tag: Start tag of the set if it has attributes (namespaces, say); else empty.
        is_pubmed: Whether there was the beginning of a set, or of an element of one.
        is_closed: Whether the end of the set was seen.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._held, self._at = b"", 0  # what is in memory, and how far it is used
        self._gap = b""
        self.set_tag = b""
        self.is_pubmed = self.is_closed = False

    def pieces(self) -> Iterator[PubmedElement]:
        """Yield the elements in order."""
        while True:
            found = self._find_top()
            if rest := self._read_gap():
                yield PubmedElement(b"", rest)
            if found is None:
                return
            if found[1]:
                self.is_pubmed = True
                yield from self._cut_element(found[1])
            else:
                self._skip(found)

    def _fill(self) -> bool:
        """Get a further block; drop what was used."""
        block = next(self._blocks, b"")
        self._held, self._at = self._held[self._at :] + block, 0
        return bool(block)

    def _find_top(self) -> re.Match[bytes] | None:
        """Find the next element; what stands before it goes into the gap."""
        while True:
            found = _TOP.search(self._held, self._at)
            end = found.start() if found else max(self._at, len(self._held) - _TAIL)
            self._see(self._held[self._at : end])
            self._at = end
            if found:
                return found
            if not self._fill():
                self._see(_CUT_TAG.sub(b"", self._held))
                self._held = b""
                return None

    def _see(self, between: bytes) -> None:
        if between and not between.isspace():
            self.is_closed |= _END_OF_SET in self._gap[-_TAIL:] + between
            self._gap = (self._gap + between)[:SHOWN]

    def _read_gap(self) -> bytes:
        """Return what does not belong between two records."""
        gap, self._gap = self._gap, b""
        if not gap:
            return b""
        if found := _SET.search(gap):
            self.is_pubmed = True
            self.set_tag = found[0] if b"=" in found[0] else b""
        return _FRAME.sub(b"", gap).strip()

    def _skip(self, found: re.Match[bytes]) -> None:
        """Pass over a comment or a document type; a tag in it is none."""
        pattern = re.compile(rb"<!--.*?-->", re.DOTALL) if found[2] else _DOCTYPE
        while (whole := pattern.match(self._held, self._at)) is None:
            if len(self._held) - self._at > _LONGEST or not self._fill():
                self._at += len(found[0])
                return
        self._at = whole.end()

    def _cut_element(self, name: bytes) -> Iterator[PubmedElement]:
        """Yield the element that begins here, and those that began before it ended."""
        end_tag, seen = b"</" + name + b">", 0
        while (end := self._held.find(end_tag, self._at + seen)) < 0:
            seen = max(0, len(self._held) - self._at - len(end_tag))
            if seen > _LONGEST or not self._fill():
                yield from self._cut_open(name)
                return
        end += len(end_tag)
        xml = self._held[self._at : end]
        self._at = end
        if all(xml.find(one, 1) < 0 for one in _STARTS):  # faster than a pattern
            yield PubmedElement(name, xml)
            return
        starts = [one for one in _TOP.finditer(xml) if one[1]]
        ends = [one.start() for one in starts[1:]] + [len(xml)]
        for one, stop in zip(starts, ends, strict=True):
            yield PubmedElement(one[1], xml[one.start() : stop])

    def _cut_open(self, name: bytes) -> Iterator[PubmedElement]:
        """Cut an element without an end at the next one, or where memory or the set ends.

        One that ends where the file is cut off is part of that.
        """
        found = next((one for one in _TOP.finditer(self._held, self._at + 1) if one[1]), None)
        end = found.start() if found else len(self._held)
        xml = self._held[self._at : end]
        self._at = end
        if found is None:
            self.is_closed |= _END_OF_SET in xml
        if found or self.is_closed or len(xml) > _LONGEST:
            yield PubmedElement(name, xml)
