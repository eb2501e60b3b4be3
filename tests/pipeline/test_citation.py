"""The source of a passage, from the metadata that programs and databases write."""

from datetime import date

import pytest

from deepera_graph.literature.citation import Citation
from deepera_graph.literature.paper_keys import invert_name
from deepera_graph.literature.reference_files import write_bibtex

LINE = "Lee et al. Wax on apples. Fruit Science, 2019. doi:10.1000/wax.1"


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param(
            {
                "Key": "AB12", "Publication Year": 2019, "Author": "Lee, Ada; Roy, Bo; Orr, C.",
                "Title": "Wax on apples", "Publication Title": "Fruit Science",
                "DOI": "10.1000/wax.1", "Url": "https://example.org/1",
            },
            id="zotero",
        ),
        pytest.param(
            {
                "PMID": 123, "Title": "Wax on apples.", "Authors": "Lee A, Roy B, Orr C.",
                "Citation": "Fruit Science. 2019;1:2.", "First Author": "Lee A",
                "Journal/Book": "Fruit Science", "Publication Year": "2019",
                "DOI": "10.1000/wax.1",
            },
            id="pubmed",
        ),
        pytest.param(
            {
                "Authors": "Lee A.; Roy B.; Orr C.", "Author(s) ID": "1; 2; 3",
                "Title": "Wax on apples", "Year": 2019, "Source title": "Fruit Science",
                "DOI": "10.1000/wax.1", "Link": "https://example.org/1", "Source": "Scopus",
            },
            id="scopus",
        ),
        pytest.param(
            {
                "TI": "Wax on apples", "FAU": ["Lee, Ada", "Roy, Bo", "Orr, C"],
                "JT": "Fruit Science", "DP": "2019 May 3", "LID": "10.1000/wax.1 [doi]",
            },
            id="medline",
        ),
        pytest.param(
            {
                "title": ["Wax on apples"], "container-title": ["Fruit Science"],
                "author": [{"given": "Ada", "family": "Lee"}, {"family": "Roy"}, {"family": "Orr"}],
                "issued": {"date-parts": [[2019, 5]]}, "doi": "https://doi.org/10.1000/wax.1",
            },
            id="crossref",
        ),
        pytest.param(
            {
                "title": "Wax on\n apples", "author": "Lee, Ada and Roy, Bo and Orr, C",
                "journal": "Fruit Science", "date": date(2019, 5, 3), "doi": "doi:10.1000/wax.1.",
            },
            id="bibtex",
        ),
        pytest.param(
            {
                "display_name": "Wax on apples", "publication_year": 2019.0,
                "authorships": [{"author": {"display_name": f"X. {name}"}} for name in
                                ("Lee", "Roy", "Orr")],
                "venue": {"name": "Fruit Science"}, "doi": "https://doi.org/10.1000/wax.1",
            },
            id="openalex",
        ),
    ],
)  # fmt: skip
def test_one_line_is_made_of_any_programs_fields(metadata):
    assert str(Citation.of(metadata, "7")) == LINE


@pytest.mark.parametrize(
    ("metadata", "line"),
    [
        pytest.param({}, "c1#2", id="id-if-nothing-is-known"),
        pytest.param({"title": float("nan"), "doi": None, "url": " "}, "c1#2", id="empty-cells"),
        pytest.param({"title": "Does wax help?", "year": 2019}, "Does wax help? 2019", id="title"),
        pytest.param({"pmid": 123.0, "url": "https://a.org"}, "PMID 123", id="pmid-before-url"),
        pytest.param({"source": "https://a.org/x"}, "https://a.org/x", id="source-is-a-url"),
        pytest.param({"title": "Wax", "source": "wax.pdf"}, "Wax. wax.pdf", id="file"),
        pytest.param({"source": "c1"}, "c1#2", id="the-id-says-more-than-its-file"),
        pytest.param({"author": "Ada Lee", "title": "Wax"}, "Lee. Wax", id="one-author"),
        pytest.param({"author": "Lee A, Roy B", "title": "Wax"}, "Lee and Roy. Wax", id="two"),
        pytest.param(
            {"author": "World Health Organization; Roy, B.", "title": "Wax"},
            "World Health Organization and Roy. Wax",
            id="group",
        ),
        pytest.param({"author": "Müller É; Ødegård Ł"}, "Müller and Ødegård", id="letters"),
        pytest.param({"doi": "none", "title": "Wax"}, "Wax", id="no-doi"),
    ],
)
def test_what_is_known_is_told_and_the_id_only_if_nothing_is(metadata, line):
    assert str(Citation.of(metadata, "c1#2")) == line


def test_the_link_is_by_doi_else_pubmed_else_the_url():
    fields = {"doi": "10.1000/x", "pmid": "12", "url": "https://a.org"}
    assert Citation.of(fields, "1").link == "https://doi.org/10.1000/x"
    del fields["doi"]
    assert Citation.of(fields, "1").link == "https://pubmed.ncbi.nlm.nih.gov/12/"
    del fields["pmid"]
    assert Citation.of(fields, "1").link == "https://a.org"
    assert Citation.of({}, "1").link == ""


@pytest.mark.parametrize(
    ("metadata", "page"),
    [
        ({"page": 3}, "3"),
        ({"page": 3, "last_page": 4}, "3-4"),
        ({"page": 1, "page_label": "2", "total_pages": 9}, "2"),  # of PyPDFLoader
        ({"page": 0, "total_pages": 9}, "1"),  # of other loaders of LangChain
        ({"page_number": 7}, "7"),  # of Unstructured
        ({"page": 0}, ""),
        ({"page": "101-110"}, ""),  # in a journal, and of the whole article
        ({"page": True}, ""),
        ({}, ""),
    ],
)
def test_the_page_of_a_passage_is_cited_as_each_loader_counts(metadata, page):
    assert Citation.of(metadata, "1").page == page


@pytest.mark.parametrize(
    ("name", "inverted"),
    [
        ("Ada Lee", "Lee, Ada"),
        ("Ada B. Lee", "Lee, Ada B."),
        ("Lee AB", "Lee, AB"),
        ("Müller É", "Müller, É"),
        ("Ødegård Ł.-Ø.", "Ødegård, Ł.-Ø."),
        ("Lee, Ada", "Lee, Ada"),
        ("Ludwig van der Aa", "van der Aa, Ludwig"),
        ("Ada Lee Jr.", "Lee, Ada, Jr."),
        ("Plato", "Plato"),
        ("The Kelp Group", "The Kelp Group"),
        ("World Wax Organization", "World Wax Organization"),
    ],
)
def test_a_name_is_inverted_for_reference_managers_unless_it_is_that_of_a_group(name, inverted):
    assert invert_name(name) == inverted


@pytest.mark.parametrize("starts", [["a"], ["ab"], [[1]], "xy", 5, [[1, None]]])
def test_places_of_pages_that_are_none_cost_no_more_than_the_page_of_the_quote(starts):
    metadata = {"page": 1, "last_page": 2, "page_starts": starts}
    assert Citation.of(metadata, "p1", (0, 4)).page == "1-2"


@pytest.mark.parametrize(
    ("authors", "found", "line"),
    [
        (", and Lee", ("Lee",), "Lee. Wax"),
        (", ;", (), "Wax"),
        ([",", "Roy ,"], ("Roy",), "Roy. Wax"),
    ],
)
def test_a_comma_alone_is_no_author(authors, found, line):
    citation = Citation.of({"authors": authors, "title": "Wax"}, "1")
    assert citation.authors == found
    assert str(citation).startswith(line)


@pytest.mark.parametrize(
    ("source", "title", "is_told"),
    [
        ("papers.jsonl", "Wax", False),
        ("data/corpus.jsonl.gz", "Wax", False),
        ("Lee 2019.PDF", "Wax", False),
        ("wax.pdf", "", True),
        ("FAO Report No. 12", "Wax", True),
        ("Handbook of Fruit, 2nd ed.", "Wax", True),
        ("fao.org", "Wax", True),
    ],
)
def test_the_file_of_a_work_with_a_title_is_not_in_its_bibtex(source, title, is_told):
    text = write_bibtex([(Citation(id="1", title=title, source=source), "")])
    assert (f"howpublished = {{{source}}}" in text) is is_told


def test_arrays_are_read_as_lists():
    numpy = pytest.importorskip("numpy")
    lists = {"authors": ["Lee, A.", "Roy, B."], "journal": ["Fruit Science"], "year": [2019, 2020]}
    arrays = {name: numpy.array(value) for name, value in lists.items()}
    citation = Citation.of({"title": "Wax on apples", **arrays}, "1")
    assert citation == Citation.of({"title": "Wax on apples", **lists}, "1")
    assert citation.authors == ("Lee, A.", "Roy, B.")
