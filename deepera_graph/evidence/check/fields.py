"""Citations that citation managers keep in a document of Word, with the data of what they cite.

Source:
    https://www.zotero.org/support/kb/word_field_codes; ECMA-376, part 1, 17.16 (fields) and 17.5
    (content controls); https://citeproc-js.readthedocs.io/en/latest/csl-json/markup.html
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from deepera_graph.evidence.check.references import FieldCitation, Reference
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.paper_keys import (
    LEAST_PRINTED,
    family_name,
    gravest,
    may_name_paper,
    title_key,
)
from deepera_graph.literature.same_study import list_ids
from deepera_graph.text.references import name_csl_fields

LISTED = "\ue002"  # begins a paragraph of the list of references
RAISED_NUMBERS = re.compile(r"\s*\d{1,3}(?:\s*[-–,]\s*\d{1,3})*\s*")
_LEFT_OUT = ("del", "moveFrom", "Fallback", "pPr", "rPr", "pict")
_CONTROL = "MENDELEY_CITATION_v"
_LISTS = ("CSL_BIBLIOGRAPHY", "MENDELEY_BIBLIOGRAPHY")
_LONE_NUMBER = re.compile(r"[\[(]?\s*(\d{1,4})\s*[\])]?")


class CitedItems(NamedTuple):
    """A citation of a field: as the text shows it, and what is known of each work."""

    shown: str
    items: tuple[dict[str, Any], ...]


@dataclass(slots=True)
class _Field:
    code: str = ""
    is_result: bool = False
    texts: list[tuple[Element | None, Element]] = field(default_factory=list)  # with paragraphs


class FieldReader:
    """Takes the citations out of the body of a document, and puts marks in their places."""

    def __init__(self) -> None:
        self.citations: list[CitedItems] = []  # what the marks stand for, in order
        self._open: list[_Field] = []

    def take(self, body: Element) -> None:
        """Put a mark in place of each citation, and before each paragraph of a list of works."""
        self._walk(body, None)

    def _walk(self, element: Element, paragraph: Element | None) -> None:
        for child in element:
            if child.tag in ("fldChar", "instrText"):
                self._turn(child)
            elif child.tag == "t":
                for one in filter(lambda one: one.is_result, self._open):
                    one.texts.append((paragraph, child))
            elif child.tag in ("sdt", "fldSimple"):
                self._walk_within(child, paragraph)
            elif child.tag not in _LEFT_OUT:
                self._walk(child, child if child.tag == "p" else paragraph)

    def _turn(self, element: Element) -> None:
        match element.tag, element.get("fldCharType"), self._open:
            case "fldChar", "begin", _:
                self._open.append(_Field())
            case "fldChar", "separate", [*_, last]:
                last.is_result = True
            case "fldChar", "end", [*_, _]:
                self._settle(self._open.pop())
            case "instrText", _, [*_, last]:
                last.code += element.text or ""

    def _walk_within(self, element: Element, paragraph: Element | None) -> None:
        """Read a field that is an element of its own."""
        tag = element.find("sdtPr/tag")
        code = element.get("instr", "") if tag is None else tag.get("val", "")
        n_open, held = len(self._open), _Field(code, is_result=True)
        self._open.append(held)
        self._walk(element, paragraph)
        del self._open[n_open:]
        self._settle(held)

    def _settle(self, one: _Field) -> None:
        if any(name in one.code for name in _LISTS):
            begun = set[int]()
            for paragraph, text in one.texts:
                if id(paragraph) not in begun:
                    text.text = f"{LISTED}{text.text or ''}"
                begun.add(id(paragraph))
            return
        items = _read_items(one.code)
        shown = "".join(text.text or "" for _, text in one.texts)
        if not items or not shown.strip() or "\ue000" in shown:
            return
        for _, text in one.texts:
            text.text = ""
        one.texts[0][1].text = f"\ue000{len(self.citations)}\ue001"
        is_bare = RAISED_NUMBERS.fullmatch(shown)
        self.citations.append(CitedItems(f"[{shown.strip()}]" if is_bare else shown, items))


def _read_items(code: str) -> tuple[dict[str, Any], ...]:
    """Return what the code of a citation knows of all its works; nothing if it lacks one."""
    try:
        if code.startswith(_CONTROL):
            code = f"CSL_CITATION {base64.b64decode(code.rpartition('_')[2] + '==').decode()}"
        if "CSL_CITATION" not in code:
            return ()
        found = json.JSONDecoder().raw_decode(code[code.index("{") :])[0]
    except (ValueError, RecursionError):
        return ()
    items = found.get("citationItems")
    named = [_name_fields(one) for one in items] if isinstance(items, list) else []
    return tuple(filter(None, named)) if all(named) else ()


def _name_fields(item: Any) -> dict[str, Any]:
    data = item.get("itemData") if isinstance(item, Mapping) else None
    named = name_csl_fields({"container-title": "", **data}) if isinstance(data, Mapping) else None
    known = {name: value for name, value in (named or {}).items() if value and name != "key"}
    return known if "title" in known or "doi" in known else {}


def join_fields(
    citations: Sequence[CitedItems], references: Sequence[Reference]
) -> tuple[list[Reference], list[FieldCitation]]:
    """Return the list of references with what fields know of it, and the keys of each citation."""
    # A work that the list does not have joins it, with first author and year as its key.
    known = _KnownWorks(references)
    cited = []
    for one in citations:
        lone = _LONE_NUMBER.fullmatch(one.shown.strip()) if len(one.items) == 1 else None
        keys = [known.join(fields, lone[1] if lone else "") for fields in one.items]
        cited.append(FieldCitation(one.shown, tuple(dict.fromkeys(keys))))
    return known.references, cited


class _KnownWorks:
    def __init__(self, references: Sequence[Reference]) -> None:
        self.references = list(references)
        self._by_name: dict[object, int] = {}
        self._printed = [f" {title_key(one.text)} " for one in references]
        self._keys = {one.key: place for place, one in enumerate(references)}
        for place, one in enumerate(references):
            self._name(place, one.source)

    def _name(self, place: int, source: Citation) -> None:
        for name in (*list_ids(source), title_key(source.title)):
            if name:
                self._by_name.setdefault(name, place)

    def join(self, fields: Mapping[str, Any], number: str) -> str:
        """Add what is known of a work; return its key. *number* is what the text shows, if any."""
        source = Citation.of(fields, "")
        place = self._find(source)
        if place is None:
            place = self._keys.get(number)
        if place is None:
            return self._add(fields, source)
        before = self.references[place]
        status = gravest((before.source.status, source.status))
        self.references[place] = replace(
            before,
            source=replace(before.source.borrow([source]), status=status),
            abstract=before.abstract or fields.get("abstract", ""),
        )
        self._name(place, source)
        return before.key

    def _find(self, source: Citation) -> int | None:
        title = title_key(source.title)
        for name in (*list_ids(source), title):
            if name and name in self._by_name:
                return self._by_name[name]
        if not may_name_paper(title, LEAST_PRINTED):
            return None
        inside = (place for place, text in enumerate(self._printed) if f" {title} " in text)
        return next(inside, None)

    def _add(self, fields: Mapping[str, Any], source: Citation) -> str:
        name = family_name(source.authors[0]) if source.authors else source.title[:40]
        first = f"{name} {source.year}".strip() or source.doi
        letters = ("", *"bcdefghijklmnopqrstuvwxyz", *map(str, range(27, 999)))
        key = next(key for one in letters if (key := f"{first}{one}") not in self._keys)
        self._keys[key] = len(self.references)
        self.references.append(Reference.of_fields(key, fields))
        self._name(self._keys[key], source)
        return key
