"""Citations that Zotero and Mendeley write into a document of Word are read from their data."""

import pytest
from docx import Document
from langchain_core.documents import Document as Passage

from deepera_graph import ManuscriptCheck, WorkLibrary
from deepera_graph.errors import InputError
from deepera_graph.evidence.check.manuscript import read_manuscript
from support.fields import (
    add_field,
    add_list,
    add_mendeley,
    add_mendeley_cite,
    add_zotero,
    csl_item,
)

pytestmark = pytest.mark.full

WAX = csl_item(
    "wax", "Wax on stored apples", "Lund", 2018, DOI="10.5555/wax",
    abstract="<p>Wax coating kept stored apples firm. Colour did not differ.</p>",
)  # fmt: skip
PEARS = csl_item("pears", "Cool nights and the sugar of pears", "Mori", 2019, DOI="10.5555/pear")
ENTRIES = (
    "1.\tMori A. Cool nights and the sugar of pears. Orchard Letters. 2019.",
    "2.\tLund A. Wax on stored apples. Fruit Science. 2018.",
)
FIRM = "Wax coating kept stored apples firm"


@pytest.fixture
def write(tmp_path):
    """Write a document of a paragraph by what is done to it, and a list."""

    def written(*steps, entries=(), heading="References"):
        document = Document()
        paragraph = document.add_paragraph()
        for step in steps:
            if isinstance(step, str):
                paragraph.add_run(step)
            else:
                add, *rest = step
                add(paragraph, *rest)
        if heading:
            document.add_heading(heading, 1)
        if entries:
            add_list([document.add_paragraph() for _ in entries], entries)
        path = tmp_path / "a.docx"
        document.save(str(path))
        return path

    return written


@pytest.mark.parametrize("add", [add_zotero, add_mendeley, add_mendeley_cite])
def test_a_citation_has_the_doi_and_the_abstract_of_its_data(add, write):
    path = write(f"{FIRM} ", (add, "(Lund, 2018)", WAX), ".")
    read = read_manuscript(path)
    [claim], [reference] = read.claims, read.references
    assert (claim.sentence, claim.statement) == (f"{FIRM} (Lund, 2018).", f"{FIRM}.")
    assert claim.keys == (reference.key,) == ("Lund 2018",)
    assert (reference.source.doi, reference.source.year) == ("10.5555/wax", "2018")
    assert reference.abstract.startswith("Wax coating kept")
    [pair] = ManuscriptCheck().check(path).pairs
    assert (pair.verdict, pair.read) == ("supported", "abstract")


def test_a_text_of_the_library_is_better_than_the_abstract_of_a_field(write):
    path = write(f"{FIRM} ", (add_zotero, "[1]", WAX), ".")
    text = "Waxing was without effect on the price of plums."
    works = WorkLibrary([Passage(id="w", page_content=text, metadata={"doi": "10.5555/wax"})])
    [pair] = ManuscriptCheck(library=works).check(path).pairs
    assert pair.verdict == "not_found"


@pytest.mark.parametrize("heading", ["References", ""])
def test_works_bear_the_numbers_of_the_printed_list(heading, write):
    steps = (f"{FIRM} ", (add_zotero, "[2]", WAX), ". Cool nights lower the sugar of pears ")
    read = read_manuscript(
        write(*steps, (add_zotero, "[1,2]", WAX, PEARS), ".", entries=ENTRIES, heading=heading)
    )
    assert [one.keys for one in read.claims] == [("2",), ("2", "1")]
    assert [one.source.doi for one in read.references] == ["10.5555/pear", "10.5555/wax"]
    assert not read.uncited


def test_raised_citations_behind_a_stop_are_of_the_sentence_before(write):
    read = read_manuscript(
        write(f"{FIRM}.", (add_zotero, "2", WAX), " Figs are sweet.", entries=ENTRIES)
    )
    [claim] = read.claims
    assert (claim.statement, claim.keys) == (f"{FIRM}.", ("2",))
    assert claim.sentence == f"{FIRM} [2]."


def test_a_citation_that_was_typed_stands_beside_fields(write):
    read = read_manuscript(
        write(f"{FIRM} ", (add_zotero, "[2]", WAX), ". Pears are not sweet at night [1, 9].",
              entries=ENTRIES)
    )  # fmt: skip
    assert [one.keys for one in read.claims] == [("2",), ("1", "9")]


def test_two_records_of_one_work_are_one_and_two_works_of_a_year_are_two(write):
    again = {**WAX, "id": "again"}
    other = csl_item("other", "Bees on farms", "Lund", 2018)
    read = read_manuscript(
        write(f"{FIRM} ", (add_zotero, "(Lund, 2018)", WAX, again), ". Bees like clover strips ",
              (add_zotero, "(Lund, 2018b)", other), ".")
    )  # fmt: skip
    assert [one.keys for one in read.claims] == [("Lund 2018",), ("Lund 2018b",)]


@pytest.mark.parametrize(
    "code",
    [
        "ADDIN ZOTERO_ITEM CSL_CITATION {broken",
        "ADDIN CSL_CITATION []",
        'ADDIN ZOTERO_ITEM CSL_CITATION {"citationItems": [{"id": 1}, 3]}',
        "PAGEREF _x \\h",
    ],
)
def test_a_field_without_data_is_text_as_it_is_shown(code, write):
    read = read_manuscript(write(f"{FIRM} ", (add_field, code, "[2]"), ".", entries=ENTRIES))
    [claim] = read.claims
    assert (claim.keys, claim.sentence) == (("2",), f"{FIRM} [2].")


def test_a_file_of_references_gives_the_keys(write, tmp_path):
    bib = tmp_path / "a.bib"
    bib.write_text("@article{lund, title={Wax on stored apples}, doi={10.5555/wax}, year={2018}}")
    read = read_manuscript(write(f"{FIRM} ", (add_zotero, "[1]", WAX), "."), bibliography=bib)
    assert read.claims[0].keys == ("lund",)
    assert read.references[0].abstract


def test_fields_alone_without_a_citation_are_no_list(write):
    with pytest.raises(InputError, match="no references found"):
        read_manuscript(write(f"{FIRM} ", (add_field, "ADDIN CSL_CITATION {}", "(x)"), "."))
