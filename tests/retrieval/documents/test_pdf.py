"""Passages read from PDF files."""

import gzip
import io
import logging
import sys

import pypdf
import pytest

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.literature.citation import Citation, find_pages
from deepera_graph.retrieval.sources import read_passages
from support.pdfs import write_pdf

SENTENCES = [f"In plot {number} the otters ate most of the urchins." for number in range(60)]
HEAD = "Lee and Roy: kelp and otters"


def read_one(name):
    [document] = read_passages(name)
    return document


def encrypt(content, password, algorithm):
    writer, out = pypdf.PdfWriter(clone_from=io.BytesIO(content)), io.BytesIO()
    writer.encrypt(password, owner_password="owner", algorithm=algorithm)
    writer.write(out)
    return out.getvalue()


def test_a_pdf_is_one_text_with_the_source_that_it_names(write):
    info = {"Title": "Kelp and otters", "Author": "Kim Lee; Ann Roy", "Subject": "doi:10.1000/Kelp"}
    name = write("f/a.pdf", write_pdf(["Kelp (40%) grew.", "Caf\xe9s closed."], info=info))
    document = read_one(name)
    assert (document.id, document.page_content) == ("f/a.pdf", "Kelp (40%) grew. Cafés closed.")
    assert document.metadata == {
        "source": "f/a.pdf",
        "title": "Kelp and otters",
        "authors": "Kim Lee; Ann Roy",
        "doi": "10.1000/Kelp",
        "page": 1,
    }
    cited = "Lee and Roy. Kelp and otters. doi:10.1000/Kelp, p. 1"
    assert str(Citation.of(document.metadata, document.id)) == cited


def test_a_compressed_pdf_is_read(write):
    name = write("a.pdf.gz", gzip.compress(write_pdf(["Kelp grew."])))
    assert read_one(name).page_content == "Kelp grew."


def test_a_passage_names_the_pages_it_stands_on(write):
    name = write("a.pdf", write_pdf(SENTENCES[:15], SENTENCES[15:30], [], SENTENCES[30:]))
    parts = list(read_passages(name, max_words=200))
    assert [one.id for one in parts] == ["a.pdf#1", "a.pdf#2", "a.pdf#3"]
    assert " ".join(one.page_content for one in parts) == " ".join(SENTENCES)
    places = [(one.metadata["page"], one.metadata.get("last_page")) for one in parts]
    assert places == [(1, 2), (2, 4), (4, None)]
    assert {one.metadata["part"] for one in parts} == {1, 2, 3}


def test_usual_headings_begin_a_section_unless_nothing_is_cut(write):
    pages = [["Kelp", "1. Introduction", "Is it", "eaten?"], ["It is.", "RESULTS", "Otters ate."]]
    name = write("a.pdf", write_pdf(*pages))
    found = [(one.page_content, one.metadata) for one in read_passages(name)]
    source = {"source": "a.pdf"}
    assert found == [
        ("Kelp", {**source, "part": 1, "page": 1}),
        (
            "Is it eaten? It is.",
            {
                **source, "part": 2, "section": "Introduction",
                "page": 1, "last_page": 2, "page_starts": [[1, 0], [2, 13]],
            },
        ),
        ("Otters ate.", {**source, "part": 3, "section": "Results", "page": 2}),
    ]  # fmt: skip
    [whole] = read_passages(name, max_words=None)
    assert whole.page_content == "Kelp Is it eaten? It is. Otters ate."
    starts = [[1, 0], [2, 18]]
    assert whole.metadata == {**source, "page": 1, "last_page": 2, "page_starts": starts}


def test_a_title_before_the_first_heading_is_no_passage_of_its_own(write):
    page = ["Kelp and the", "Otters", "Results", "Otters ate."]
    name = write("Lee - 2019 - Kelp and the otters.pdf", write_pdf(page))
    [only] = read_passages(name)
    assert (only.page_content, only.metadata["section"]) == ("Otters ate.", "Results")
    assert only.metadata["title"] == "Kelp and the otters"
    [alone] = read_passages(write("Lee - 2019 - Kelp.pdf", write_pdf(["Kelp"])))
    assert alone.page_content == "Kelp"


def test_headings_of_engineers_are_known(write):
    pages = [
        ["I. I NTRODUCTION", *SENTENCES[:9]],
        ["IV. RESULTS", "Kelp grew.", "R EFERENCES", "[1]"],
    ]
    found = list(read_passages(write("a.pdf", write_pdf(*pages))))
    assert [one.metadata["section"] for one in found] == ["Introduction", "Results"]
    assert found[1].page_content == "Kelp grew."


def test_columns_are_read_one_after_the_other(write):
    columns = [["Kelp grew where", "otters lived."], ["Urchins died", "there."]]
    name = write("a.pdf", write_pdf([], columns={0: columns}))
    assert read_one(name).page_content == "Kelp grew where otters lived. Urchins died there."


def test_broken_words_are_joined_and_hyphens_that_stand_elsewhere_stay(write):
    lines = ["The recov-", "ery of kelp in a double-", "blind study. Double-blind it was."]
    text = "The recovery of kelp in a double-blind study. Double-blind it was."
    assert read_one(write("a.pdf", write_pdf(lines))).page_content == text


def test_running_heads_and_page_numbers_are_left_out(write):
    bodies = [[f"Kelp grew by {n}% here.", "It was", "a good", f"year {n}."] for n in "4567"]
    pages = [[f"{HEAD} {n}", *body, str(n)] for n, body in enumerate(bodies, start=11)]
    text = " ".join(" ".join(body) for body in bodies)
    assert read_one(write("a.pdf", write_pdf(*pages))).page_content == text


@pytest.mark.parametrize(
    "foot", ["{}", "- {} -", "– {} –", "[{}]", "{}/3", "{} of 3", "Page {} of 3"]
)
def test_page_numbers_are_left_out_in_the_usual_forms(write, foot):
    bodies = ["Kelp grew.", "Urchins died.", "Otters slept."]
    pages = [[text, foot.format(number)] for number, text in enumerate(bodies, start=1)]
    assert read_one(write("a.pdf", write_pdf(*pages))).page_content == " ".join(bodies)


def test_a_list_of_references_is_left_out_and_an_appendix_is_not(write):
    cited = ["References", "1. Roy A. Urchins. Sea 2001.", "2. Lee K. Kelp. Sea 2002."]
    pages = [SENTENCES[:9], [*SENTENCES[9:12], *cited], ["3. Lee K.", "Appendix A", "Kelp died."]]
    text = " ".join([*SENTENCES[:12], "Appendix A Kelp died."])
    assert read_one(write("a.pdf", write_pdf(*pages))).page_content == text


@pytest.mark.parametrize("title", ["", "untitled", "Microsoft Word - kelp final.doc", "kelp_v2"])
@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Lee - 2019 - Kelp and otters.pdf", {"title": "Kelp and otters", "year": 2019}),
        ("kelp_eaten_by_urchins.pdf", {"title": "kelp eaten by urchins"}),
        ("1-s2.0-S0003-main.pdf", {}),
    ],
)
def test_without_a_title_of_its_own_a_pdf_is_titled_by_its_name(write, name, known, title):
    write(name, write_pdf(["Kelp grew."], info={"Title": title}))
    assert read_one(name).metadata == {"source": name, "page": 1, **known}


def test_the_doi_is_that_of_the_first_page_if_there_is_but_one(write):
    one = write("a.pdf", write_pdf(["doi:10.1000/a1.", "Kelp grew."], ["See 10.1000/b2"]))
    assert read_one(one).metadata["doi"] == "10.1000/a1"
    two = write("b.pdf", write_pdf(["doi:10.1000/a1. See doi:10.1000/b2."]))
    assert "doi" not in read_one(two).metadata


@pytest.mark.parametrize("algorithm", ["RC4-40", "AES-256"])
def test_a_pdf_that_only_forbids_printing_is_read(write, algorithm):
    name = write("a.pdf", encrypt(write_pdf(["Kelp grew."]), "", algorithm))
    assert read_one(name).page_content == "Kelp grew."


READERS = ["pypdf", "pdfium"]
LEFT = [
    "Kelp forests recovered where the sea", "otters had returned to the coast in",
    "numbers, and urchins were eaten by", "them in all of the plots that we",
    "saw, as told in 2001.",
]  # fmt: skip
RIGHT = [
    "In the other plots there was no such", "change, and the cover of kelp fell by",
    "40 percent over two years, which was", "more than had been expected by the",
    "authors of both.",
]  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("lower", [0, 5])
@pytest.mark.parametrize("across", [False, True], ids=["columns", "across"])
def test_two_columns_are_read_in_order_however_the_file_writes_them(write, reader, across, lower):
    title = ["A title that goes over the full width of the page, as it does in all of them."]
    pdf = write_pdf(title, columns={0: [LEFT * 3, RIGHT * 3]}, across=across, lower=lower)
    [document] = read_passages(write("a.pdf", pdf), pdf_reader=reader)
    assert document.page_content == " ".join([*title, *LEFT * 3, *RIGHT * 3])


@pytest.mark.parametrize("reader", READERS)
def test_a_table_of_figures_is_read_row_by_row(write, reader):
    rows = [[f"Plot {at}" for at in range(9)], [f"{at}.5" for at in range(9)]]
    pdf = write_pdf(["Cover of kelp in percent."], columns={0: rows}, across=True)
    [document] = read_passages(write("a.pdf", pdf), pdf_reader=reader)
    assert "Plot 3 3.5 Plot 4 4.5" in document.page_content


def test_a_word_broken_at_the_end_of_a_page_stands_on_it_whole(write):
    document = read_one(write("a.pdf", write_pdf(["Kelp re-"], ["covered. Otters", "ate."])))
    assert document.page_content == "Kelp recovered. Otters ate."
    assert document.metadata["page_starts"] == [[1, 0], [2, 16]]


PAGES = [SENTENCES[:15], SENTENCES[15:30], [], SENTENCES[30:45]]
GOOD = [
    write_pdf(*PAGES),
    write_pdf([], columns={0: [LEFT * 3, RIGHT * 3]}, across=True),
    write_pdf(["The recov-", "ery of kelp."], ["References", "1. Roy A. Urchins. 2001."]),
    write_pdf(*([HEAD, *lines, str(at)] for at, lines in enumerate(PAGES))),
    write_pdf(["Caf\xe9s.", "Results", "Kelp grew."], None),
    encrypt(write_pdf(["Kelp grew."]), "", "AES-256"),
]


@pytest.mark.parametrize("content", GOOD)
def test_both_readers_give_the_same_passages(write, content):
    name = write("a.pdf", content)
    one, other = (list(read_passages(name, pdf_reader=reader)) for reader in READERS)
    assert one == other
    assert len(one) > 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"Kelp grew.", "broken, or not a PDF file: PdfiumError: "),
        (encrypt(write_pdf(["Kelp."]), "secret", "AES-256"), "protected by a password"),
        (write_pdf(None, None), r"has no text on any of its 2 pages; if it was scanned, .*\(OCR\)"),
    ],
)
def test_pdfium_names_what_it_cannot_read(write, content, message):
    with pytest.raises(InputError, match=rf"^a\.pdf: {message}"):
        list(read_passages(write("a.pdf", content), pdf_reader="pdfium"))


def test_pdfium_reads_a_file_without_its_table_of_objects(write):
    pdf = write_pdf(SENTENCES[:5], SENTENCES[5:9])
    name = write("a.pdf", pdf.replace(b"xref\n0", b"xrof\n0"))
    [document] = read_passages(name, pdf_reader="pdfium")
    assert document.page_content == " ".join(SENTENCES[:9])


def test_a_reader_that_is_not_known_or_not_installed_is_named(write, monkeypatch):
    name = write("a.pdf", write_pdf(["Kelp grew."]))
    with pytest.raises(
        SettingsError, match="pdf_reader must be one of 'pypdf', 'pdfium', got 'pdfum'"
    ):
        read_passages(name, pdf_reader="pdfum")
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(SettingsError, match=r"needs pypdfium2: pip install '.*\[pdfium\]'"):
        read_passages(name, pdf_reader="pdfium")


def test_a_quote_names_the_page_it_stands_on_in_a_passage_of_two(write):
    document = read_one(write("a.pdf", write_pdf(SENTENCES[:5], SENTENCES[5:9])))
    for sentence, page in [(SENTENCES[4], "1"), (SENTENCES[5], "2"), (SENTENCES[8], "2")]:
        start = document.page_content.index(sentence)
        assert find_pages(document.metadata, (start, start + len(sentence))) == page
    whole = (0, len(document.page_content))
    assert find_pages(document.metadata, whole) == find_pages(document.metadata) == "1-2"
    cited = Citation.of(document.metadata, document.id, (0, 9))
    assert str(cited).endswith(", p. 1")
    assert str(Citation.of(document.metadata, document.id)).endswith(", pp. 1-2")


KELP = write_pdf(["Kelp grew."])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"Kelp grew.", "broken, or not a PDF file: PdfStreamError: "),
        (KELP[: len(KELP) // 2], "broken, or not a PDF file: PdfStreamError: "),
        (KELP.replace(b"xref\n0", b"xrof\n0"), "broken, or not a PDF file: PdfReadError: "),
        (write_pdf(), "has no pages"),
        (encrypt(KELP, "secret", "RC4-128"), "protected by a password; save a copy without one"),
        (encrypt(KELP, "secret", "AES-256"), "protected by a password; save a copy without one"),
        (write_pdf(None, None), r"has no text on any of its 2 pages; if it was scanned, .*\(OCR\)"),
        (write_pdf([]), "has no text on its only page; if it was scanned"),
        (write_pdf(["1"], ["2"]), "has no text on any of its 2 pages"),
    ],
)
def test_a_pdf_that_cannot_be_read_costs_itself_alone_and_is_named(write, content, message, caplog):
    write("f/a.pdf", content)
    write("f/b.pdf", KELP)
    skipped = []
    with caplog.at_level(logging.WARNING):
        assert [one.id for one in read_passages("f", on_skip=skipped.append)] == ["f/b.pdf"]
    assert caplog.messages == []
    assert [(one.place, one.other_kind) for one in skipped] == [("f/a.pdf", "")]
    with pytest.raises(InputError, match=rf"^f/a\.pdf: {message}"):
        list(read_passages("f/a.pdf"))


def test_pages_that_cannot_be_read_are_named_and_the_others_are_read(write, caplog):
    name = write("a.pdf", write_pdf(["Kelp grew."], None, ["Otters ate."], None))
    told = "a.pdf: pages 2, 4 of 4 left out: an image without text"
    skipped = []
    [document] = read_passages(name, on_skip=skipped.append)
    assert (document.page_content, document.metadata["last_page"]) == ("Kelp grew. Otters ate.", 3)
    assert [str(one) for one in skipped] == [told]
    with caplog.at_level(logging.WARNING):
        assert read_one(name) == document
    assert caplog.messages == [told]


def test_a_damaged_page_costs_itself_alone(write):
    content = write_pdf(["Kelp grew."], ["Otters ate."])
    name = write("a.pdf", content.replace(b"(Kelp grew.) Tj", b"(Kelp grew.  Tj"))
    skipped = []
    [document] = read_passages(name, on_skip=skipped.append)
    assert document.page_content == "Otters ate."
    assert [str(one)[:25] for one in skipped] == ["a.pdf: page 1 of 2 left o"]


def test_without_pypdf_a_pdf_is_refused_before_reading_and_those_of_a_folder_are_named(
    write, monkeypatch
):
    monkeypatch.setitem(sys.modules, "pypdf", None)
    for name in ("f/a.pdf", "f/b.pdf", "f/c.png"):
        write(name, KELP)
    hint = r"reading PDF files needs pypdf: pip install '.*\[documents\]'"
    with pytest.raises(SettingsError, match=hint.replace("PDF files", "f/a.pdf")):
        read_passages("f/a.pdf")
    with pytest.raises(InputError, match=rf"skipped 3 files \(2 \.pdf, 1 \.png\): .*; {hint}"):
        read_passages("f")
    write("f/d.txt", b"Kelp grew.")
    skipped = []
    assert [one.id for one in read_passages("f", on_skip=skipped.append)] == ["f/d.txt"]
    assert [one.other_kind for one in skipped] == ["", "", ".png"]
