"""Word documents with the fields of citation managers: Zotero's, and Mendeley's old and new."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.text.paragraph import Paragraph

Item = Mapping[str, Any]


def csl_item(key: str, title: str, family: str, year: int, **more: Any) -> dict[str, Any]:
    """Return a work as citation managers keep it in a document."""
    return {
        "id": key,
        "type": "article-journal",
        "title": title,
        "author": [{"family": family, "given": "A."}],
        "issued": {"date-parts": [[str(year)]]},
        **more,
    }


def add_zotero(paragraph: Paragraph, shown: str, *items: Item) -> None:
    """Add a citation of Zotero, with its code split over several runs; a bare number is raised."""
    cited = [
        {"id": 7, "uris": [f"http://zotero.org/{one['id']}"], "itemData": one} for one in items
    ]
    about = {"citationID": "x", "properties": {"plainCitation": shown}, "citationItems": cited}
    add_field(paragraph, f" ADDIN ZOTERO_ITEM CSL_CITATION {json.dumps(about)} ", shown)


def add_mendeley(paragraph: Paragraph, shown: str, *items: Item) -> None:
    """Add a citation of Mendeley Desktop: its ids are new in each citation."""
    cited = [
        {"id": f"ITEM-{n}", "itemData": {**one, "id": f"ITEM-{n}"}, "uris": [f"u/{one['id']}"]}
        for n, one in enumerate(items, start=1)
    ]
    about = {"citationItems": cited, "mendeley": {"formattedCitation": shown}}
    add_field(paragraph, f"ADDIN CSL_CITATION {json.dumps(about)}", shown)


def add_mendeley_cite(paragraph: Paragraph, shown: str, *items: Item) -> None:
    """Add a citation of Mendeley Cite: a content control, the data in its tag."""
    about = {"citationItems": [{"id": one["id"], "itemData": one} for one in items]}
    packed = base64.b64encode(json.dumps(about).encode()).decode()
    control, properties = OxmlElement("w:sdt"), OxmlElement("w:sdtPr")
    tag, content = OxmlElement("w:tag"), OxmlElement("w:sdtContent")
    tag.set(qn("w:val"), f"MENDELEY_CITATION_v3_{packed}")
    properties.append(tag)
    control.append(properties)
    content.append(paragraph.add_run(shown)._r)
    control.append(content)
    paragraph._p.append(control)


def add_field(paragraph: Paragraph, code: str, shown: str) -> None:
    """Add a field, its code in runs of 100 characters."""
    _add_mark(paragraph, "begin")
    for start in range(0, len(code), 100):
        text = OxmlElement("w:instrText")
        text.text = code[start : start + 100]
        text.set(qn("xml:space"), "preserve")
        paragraph.add_run()._r.append(text)
    _add_mark(paragraph, "separate")
    paragraph.add_run(shown).font.superscript = shown.isdecimal() or None
    _add_mark(paragraph, "end")


def add_list(paragraphs: Sequence[Paragraph], entries: Sequence[str]) -> None:
    """Write the entries of Zotero's list of references, one field over all paragraphs."""
    _add_mark(paragraphs[0], "begin")
    text = OxmlElement("w:instrText")
    text.text = ' ADDIN ZOTERO_BIBL {"uncited":[],"omitted":[],"custom":[]} CSL_BIBLIOGRAPHY '
    paragraphs[0].add_run()._r.append(text)
    _add_mark(paragraphs[0], "separate")
    for paragraph, entry in zip(paragraphs, entries, strict=True):
        paragraph.add_run(entry)
    _add_mark(paragraphs[-1], "end")


def _add_mark(paragraph: Paragraph, kind: str) -> None:
    mark = OxmlElement("w:fldChar")
    mark.set(qn("w:fldCharType"), kind)
    paragraph.add_run()._r.append(mark)
