"""XML of strangers as a tree: no entity is defined, no DTD fetched, and nesting has a limit."""

import re
from html import unescape
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from deepera_graph.errors import InputError
from deepera_graph.retrieval.documents.decoding import decode

MOST_NESTED = 200
_ENCODING = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)""", re.ASCII)


def parse_xml(raw: bytes, name: object) -> Element:
    """Return the root of a document; names of elements and attributes are without namespaces.

    An entity that only a DTD would define is read as HTML has it (``&alpha;``). A file that defines
    entities is refused: some are made to fill the memory, or to read other files.

    Raises:
        InputError: It is no XML, defines entities, or nests elements more than 200 deep.

    Source:
        https://docs.python.org/3/library/xml.html#xml-vulnerabilities
    """
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
