"""Passages read from files of Word."""

import io
from zipfile import ZIP_DEFLATED, ZipFile

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from deepera_graph.errors import InputError
from deepera_graph.retrieval.documents import article
from deepera_graph.retrieval.sources import read_passages


def save(document):
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def make(*paragraphs, **about):
    document = docx.Document()
    for name, value in {"author": "", **about}.items():
        setattr(document.core_properties, name, value)
    for text, style in paragraphs:
        document.add_paragraph(text, style)
    return document


def read(name, **options):
    return list(read_passages(name, **options))


@pytest.mark.full
def test_headings_begin_sections_and_tables_are_rows(write):
    document = make(("Kelp and otters", "Title"), ("It was a good year.", None), author="Kim Lee")
    document.add_heading("Results", 1)
    document.add_paragraph("Kelp grew by 40%.")
    document.add_heading("Urchins", 2)
    document.add_paragraph("They died.", "List Bullet")
    table = document.add_table(2, 2)
    for cell, text in zip(table._cells, ["Plot", "Cover", "A", "40"], strict=True):
        cell.text = text
    document.add_heading("References", 1)
    document.add_paragraph("Roy A. Urchins. 2001.")
    document.sections[0].header.paragraphs[0].text = "A running head"
    first, second = read(write("a.docx", save(document)))
    about = {"source": "a.docx", "title": "Kelp and otters", "authors": "Kim Lee"}
    assert (first.page_content, first.metadata) == ("It was a good year.", {**about, "part": 1})
    assert second.metadata == {**about, "part": 2, "section": "Results"}
    rows = ["Kelp grew by 40%.", "Urchins", "They died.", "Plot | Cover", "A | 40"]
    assert second.page_content.split("\n\n") == rows


@pytest.mark.full
def test_without_headings_the_usual_ones_are_found(write):
    lines = [
        "Kelp was seen.",
        "RESULTS",
        "It grew.",
        "References",
        "1. Roy A.",
        "Funding:",
        "None.",
    ]
    found = read(write("a.docx", save(make(*((line, None) for line in lines)))))
    shown = [(one.metadata.get("section"), one.page_content) for one in found]
    assert shown == [(None, "Kelp was seen."), ("Results", "It grew."), ("Funding", "None.")]


def test_tracked_changes_are_read_as_accepted_and_content_controls_are_read(write):
    document = make(("Kelp ", None))
    paragraph = document.paragraphs[0]._p
    space = nsdecls("w")
    for part in (
        f"<w:del {space}><w:r><w:delText>died</w:delText></w:r></w:del>",
        f"<w:ins {space}><w:r><w:t>grew</w:t></w:r></w:ins>",
        f"<w:sdt {space}><w:sdtContent><w:r><w:t xml:space='preserve'> (Lee)</w:t></w:r>"
        "</w:sdtContent></w:sdt>",
    ):
        paragraph.append(parse_xml(part))
    inner = "<w:p><w:r><w:t>It lasted.</w:t></w:r></w:p>"
    block = f"<w:sdt {space}><w:sdtContent>{inner}</w:sdtContent></w:sdt>"
    paragraph.addnext(parse_xml(block))
    [found] = read(write("a.docx", save(document)))
    assert found.page_content == "Kelp grew (Lee)\n\nIt lasted."


@pytest.mark.full
def test_without_a_title_of_its_own_a_file_is_titled_by_its_name(write):
    [found] = read(write("Lee - 2019 - Kelp and otters.docx", save(make(("Kelp grew.", None)))))
    assert (found.metadata["title"], found.metadata["year"]) == ("Kelp and otters", 2019)


def zipped(**parts):
    out = io.BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name.replace("__", "/") + ".xml", content)
    return out.getvalue()


GOOD = save(make(("Kelp grew.", None)))
DEEP = f"<w:document {nsdecls('w')}><w:body>" + "<w:sdt>" * 300


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"Kelp grew.", "broken, or not a DOCX file: BadZipFile"),
        (GOOD[: len(GOOD) // 2], "broken, or not a DOCX file: BadZipFile"),
        (GOOD.replace(b"document.xml", b"dockment.xml"), "a ZIP file without a document of Word"),
        (b"\xd0\xcf\x11\xe0 protected", "protected by a password, or in the old form of Word"),
        (zipped(word__document="<w:document"), "word/document.xml: broken, or no XML"),
        (zipped(word__document=DEEP), "word/document.xml: elements are nested more than 200"),
        (save(make()), "has no text"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(write, content, message):
    with pytest.raises(InputError) as error:
        read(write("a.docx", content))
    assert str(error.value).startswith(f"a.docx: {message}")


def test_a_file_that_unpacks_to_too_much_is_not_unpacked(write, monkeypatch):
    monkeypatch.setattr(article, "MOST_BYTES", 1 << 20)
    name = write("a.docx", zipped(word__document=" " * (2 << 20)))
    with pytest.raises(InputError, match=r"^a\.docx: unpacks to more than 1 MB"):
        read(name)


@pytest.mark.full
def test_an_exponent_stays_one(write):
    document = make(("", None))
    paragraph = document.paragraphs[0]
    for text, raised in (("10", False), ("6", True), (" cells, Ca", False), ("2+", True)):
        paragraph.add_run(text).font.superscript = raised or None
    [found] = read(write("a.docx", save(document)))
    assert found.page_content == "10⁶ cells, Ca2+"
