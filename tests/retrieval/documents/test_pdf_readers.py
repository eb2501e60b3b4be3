"""What each reader of PDF files makes of lines that are set in strange ways, and of damaged files.

`docs/documents.md` has the figures.
"""

import pytest

from deepera_graph.errors import InputError
from deepera_graph.retrieval.sources import read_passages
from support.pdfs import write_pdf

LETTERS = b" ".join(b"(%c) Tj %d 0 Td" % pair for pair in zip(b"Kelp", (7, 6, 2, 9), strict=True))
SETTINGS = {
    "kerned": (
        b"BT /F 10 Tf 60 700 Td [(K) 40 (elp) -280 (g) 15 (rew) -300 (by) -290 (40%.)] TJ ET",
        "Kelp grew by 40%.",
    ),
    "words that are moved and no spaces": (
        b"BT /F 10 Tf 60 700 Td (Kelp) Tj 24 0 Td (grew) Tj 26 0 Td (by) Tj 14 0 Td (40%.) Tj ET",
        "Kelp grew by 40%.",
    ),
    "letters one by one": (b"BT /F 10 Tf 60 700 Td " + LETTERS + b" (grew.) Tj ET", "Kelp grew."),
    "letters wide apart": (
        b"BT /F 10 Tf 2.5 Tc 60 700 Td (Kelp) Tj ET BT 0 Tc /F 10 Tf 60 680 Td (grew.) Tj ET",
        "Kelp grew.",
    ),
    "raised": (
        b"BT /F 10 Tf 60 700 Td (Grew by 10) Tj /F 6 Tf 4 Ts (5) Tj 0 Ts /F 10 Tf ( %.) Tj ET",
        "Grew by 105 %.",
    ),
    "raised and moved": (
        b"BT /F 10 Tf 60 700 Td (Kelp grew by 10) Tj ET BT /F 6 Tf 132 704 Td (5) Tj ET "
        b"BT /F 10 Tf 137 700 Td (plants.) Tj ET",
        "Kelp grew by 105 plants.",
    ),
    "lines out of order": (
        b"BT /F 10 Tf 60 680 Td (grew.) Tj ET BT /F 10 Tf 60 700 Td (Kelp) Tj ET",
        "Kelp grew.",
    ),
    "a line along the margin": (
        b"BT /F 10 Tf 60 700 Td (Kelp) Tj ET BT 0 1 -1 0 30 300 Tm /F 8 Tf (Downloaded) Tj ET "
        b"BT /F 10 Tf 60 686 Td (grew.) Tj ET",
        "Kelp grew.",
    ),
    "broken": (b"BT /F 10 Tf 14 TL 60 700 Td (The recov-) Tj T* (ery.) Tj ET", "The recovery."),
    "printed twice to be bold": (
        b"BT /F 10 Tf 60 700 Td (Kelp grew.) Tj ET BT /F 10 Tf 60.3 700 Td (Kelp grew.) Tj ET",
        "Kelp grew.",
    ),
}
GOOD = write_pdf(["Kelp grew."])
DAMAGES = [
    GOOD.replace(b"xref\n0", b"xrof\n0"),
    GOOD.replace(b"startxref\n", b"startxref\n9"),
    GOOD.replace(b"/Length ", b"/Length 9"),
    GOOD.replace(b"endobj", b""),
    b"junk\n" * 300 + GOOD,
    GOOD[:-30],
]


def read(write, content, reader):
    try:
        found = read_passages(write("a.pdf", content), pdf_reader=reader)
        return " ".join(one.page_content for one in found)
    except InputError:
        return ""


@pytest.mark.parametrize(("reader", "least"), [("pypdf", 7), ("pdfium", 8)])
def test_most_lines_in_strange_settings_are_read_well(write, reader, least):
    found = {
        name: read(write, write_pdf([], drawn_as=drawn), reader)
        for name, (drawn, _) in SETTINGS.items()
    }
    well = [name for name, (_, text) in SETTINGS.items() if found[name] == text]
    assert len(well) >= least, found


@pytest.mark.parametrize(("reader", "least"), [("pypdf", 4), ("pdfium", 3)])
def test_some_damages_are_mended_and_no_other_error_is_raised(write, reader, least):
    texts = [read(write, content, reader) for content in DAMAGES]
    assert texts.count("Kelp grew.") >= least
