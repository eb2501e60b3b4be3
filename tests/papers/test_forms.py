"""Files of papers in the forms that papers are given away in."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.errors import InputError
from deepera_graph.papers import Paper, PaperBase
from deepera_graph.papers.importing import ImportProblem, read_papers
from deepera_graph.papers.paper import PaperRecord

pytestmark = pytest.mark.full

S2 = {
    "paperId": "ab12", "corpusId": 77, "title": "Tide tables", "abstract": "On tides.",
    "externalIds": {"ArXiv": "2101.00001", "DOI": "10.1/X", "CorpusId": 77},
    "year": 2021, "publicationDate": "2021-01-05", "venue": "ICRS",
    "authors": [{"authorId": "1", "name": "Hana Ames"}],
    "s2FieldsOfStudy": [], "fieldsOfStudy": ["Oceanography"],
    "references": [
        {"paperId": "cd34", "externalIds": {"ArXiv": "2002.00002"}}, {"paperId": "ef56"},
    ],
}  # fmt: skip
S2ORC = {
    "paper_id": "91", "title": "Tide tables", "abstract": [{"text": "On tides."}],
    "authors": [{"first": "Hana", "middle": ["B."], "last": "Ames"}], "year": "2021",
    "arxiv_id": "2101.00001", "outbound_citations": ["5", "6"],
}  # fmt: skip
OPENALEX = {
    "id": "https://openalex.org/W11", "doi": "https://doi.org/10.1/X", "title": "Tide tables",
    "publication_year": 2021, "publication_date": "2021-01-05",
    "abstract_inverted_index": {"On": [0], "tides": [1], "and": [2], "more": [3]},
    "authorships": [{"author": {"display_name": "Hana Ames"}}],
    "primary_location": {"source": {"display_name": "ICRS"}, "landing_page_url": "https://x.org"},
    "locations": [{"landing_page_url": "http://arxiv.org/abs/2101.00001"}],
    "topics": [{"display_name": "Tides"}], "referenced_works": ["https://openalex.org/W12"],
}  # fmt: skip
ARXIV = {
    "id": "2101.00001", "title": "Tide\n  tables", "abstract": " On tides.\n",
    "authors_parsed": [["Ames", "Hana", ""]], "categories": "cs.IR cs.CL", "doi": None,
    "journal-ref": None, "update_date": "2023-04-01",
    "versions": [{"version": "v1", "created": "Tue, 5 Jan 2021 10:00:00 GMT"}],
}  # fmt: skip
ACL = """<?xml version='1.0' encoding='UTF-8'?>
<collection id="2021.icrs"><volume id="1"><meta><booktitle>Proceedings of ICRS</booktitle>
<month>January</month><year>2021</year><venue>icrs</venue></meta>
<frontmatter><url>2021.icrs-1.0</url></frontmatter>
<paper id="3"><title><fixed-case>T</fixed-case>ide tables</title>
<author><first>Hana</first><last>Ames</last></author><abstract>On <i>tides</i>.</abstract>
<doi>10.1/X</doi></paper><paper id="4"><author><last>Gray</last></author></paper>
</volume></collection>
"""
BIBTEX = r"""
@comment{nothing} @string{x = "y"}
@inproceedings{ames21,
  title = {{T}ide tables of {\'E}tretat \& co.},
  author = "Ames, Hana and Fay {Gr{\"a}y}",
  year = 2021, month = jan, booktitle = {ICRS},
  abstract = {On "tides", in {braces}},
  eprint = {2101.00001v2}, archivePrefix = {arXiv}
}
@article{broken, title = {Never closed
@misc{untitled, year = {2020}}
"""


def write(tmp_path, name, content):
    path = tmp_path / name
    lines = [content] if isinstance(content, dict) else None
    path.write_text("".join(json.dumps(one) + "\n" for one in lines) if lines else content)
    return path


@pytest.mark.parametrize(
    ("content", "id", "aliases", "references", "authors"),
    [
        (S2, "2101.00001", ("ab12", "CorpusId:77", "10.1/x"), ("2002.00002", "ef56"), "Hana Ames"),
        (S2ORC, "2101.00001", ("91",), ("5", "6"), "Hana B. Ames"),
        (OPENALEX, "W11", ("10.1/x", "2101.00001"), ("W12",), "Hana Ames"),
        (ARXIV, "2101.00001", (), (), "Hana Ames"),
    ],
    ids=["s2", "s2orc", "openalex", "arxiv"],
)
def test_a_json_form_is_known_and_read(tmp_path, content, id, aliases, references, authors):
    (record,) = read_papers(write(tmp_path, "p.jsonl", content))
    paper = record.paper
    assert (paper.id, paper.title, paper.year) == (id, "Tide tables", 2021)
    assert paper.abstract.startswith("On tides")
    assert paper.authors == (authors,)
    assert paper.arxiv == "2101.00001"
    assert record.aliases == aliases
    assert record.references == references
    assert content is S2ORC or paper.date == "2021-01-05"


def test_the_anthology_is_read(tmp_path):
    first, second = read_papers(write(tmp_path, "p.xml", ACL))
    assert first.paper == Paper(
        id="2021.icrs-1.3",
        title="Tide tables",
        abstract="On tides.",
        authors=("Hana Ames",),
        year=2021,
        date="2021-01",
        venue="icrs",
        doi="10.1/x",
        url="https://aclanthology.org/2021.icrs-1.3",
        source="acl",
    )
    assert (second.kind, second.place) == ("no_title", 2)


@pytest.mark.parametrize(
    ("collection", "volume", "number", "id"),
    [("P19", "1", "1", "P19-1001"), ("W18", "64", "81", "W18-6481"), ("J93", "2", "4", "J93-2004")],
)
def test_old_ids_of_the_anthology_are_built(tmp_path, collection, volume, number, id):
    text = (
        f'<collection id="{collection}"><volume id="{volume}"><paper id="{number}">'
        "<title>Tide</title></paper></volume></collection>"
    )
    (record,) = read_papers(write(tmp_path, "p.xml", text))
    assert record.paper.id == id


def test_bibtex_is_read(tmp_path):
    found = list(read_papers(write(tmp_path, "p.bib", BIBTEX)))
    paper = found[0].paper
    assert (paper.id, found[0].aliases) == ("2101.00001", ("ames21",))
    assert paper.title == "Tide tables of Étretat & co."
    assert paper.authors == ("Hana Ames", "Fay Gräy")
    assert (paper.year, paper.date, paper.venue) == (2021, "2021-01", "ICRS")
    assert paper.abstract == 'On "tides", in braces'
    assert [one.kind for one in found[1:]] == ["bad_line", "no_title"]


REFERENCES = {
    "a.ris": """TY  - JOUR
TI  - Tide tables
AU  - Ames, Hana
DO  - 10.1000/x
AB  - On tides.
ER  -
TY  - BOOK
TI  - Ebb
ID  - gray2001
ER  -
TY  - BOOK
TI  - Flow
ID  - 7
ER  -
""",
    "a.nbib": """PMID- 11
TI  - Tide tables
FAU - Ames, Hana
AB  - On tides.

PMID- 12
TI  - Ebb
""",
    "a.json": json.dumps([
        {"id": "7", "DOI": "10.1000/x", "title": "Tide tables", "abstract": "On tides.",
         "author": [{"family": "Ames", "given": "Hana"}], "issued": {"raw": "2021"}},
        {"id": "gray2001", "title": "Ebb", "issued": {"raw": "2001"}},
        {"id": "8", "title": "Flow", "issued": {"raw": "2001"}},
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFERENCES)
def test_references_are_papers_with_an_abstract_or_without_one(tmp_path, name):
    path = tmp_path / name
    path.write_text(REFERENCES[name])
    tides, ebb, *others = read_papers(path)
    ids = ("PMID:11", "PMID:12") if name == "a.nbib" else ("10.1000/x", "gray2001")
    assert (tides.paper.id, ebb.paper.id) == ids
    assert (tides.paper.abstract, tides.paper.authors) == ("On tides.", ("Ames, Hana",))
    assert (ebb.paper.title, ebb.paper.abstract) == ("Ebb", "")
    assert [one.kind for one in others] == ["no_id"] * (name != "a.nbib")


EXPORTS = {
    "pubmed.csv": "PMID,Title,Authors,Journal/Book,Publication Year,DOI\n"
    '7,Tide tables,"Ames H; Gray F",ICRS,2021,10.1/X\n',
    "zotero.csv": "Key,Author,Title,Publication Title,Publication Year,DOI,Abstract Note\n"
    'AB3,"Ames H; Gray F",Tide tables,ICRS,2021,10.1/X,On tides.\n',
    "scopus.csv": "Authors;Title;Year;Source title;DOI\n"
    '"Ames H; Gray F";Tide tables;2021;ICRS;10.1/X\n',
    "corpus.jsonl": '{"_id": "10.1/X", "Title": "Tide tables", "authors": ["Ames H", "Gray F"], '
    '"year": 2021, "journal": "ICRS", "text": "On tides."}\n',
}


@pytest.mark.parametrize("name", EXPORTS)
def test_a_table_or_data_set_that_is_indexed_makes_a_base_as_well(tmp_path, name):
    [record] = read_papers(write(tmp_path, name, EXPORTS[name]))
    paper = record.paper
    assert (paper.id, paper.title, paper.year) == ("10.1/x", "Tide tables", 2021)
    assert (paper.authors, paper.venue) == (("Ames H", "Gray F"), "ICRS")


def test_a_table_in_utf_16_as_excel_saves_it_is_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("DOI\tTitle\tAuthor\n10.1/X\tTide tables of Étretat\tAmes\n", "utf-16")
    [record] = read_papers(path)
    assert record.paper.title == "Tide tables of Étretat"


def test_a_record_without_an_id_is_told_with_the_fields_that_it_has(tmp_path):
    [problem] = read_papers(write(tmp_path, "a.csv", "Name,Title\nx,Tide tables\n"))
    assert problem.kind == "no_id"
    assert "expected one of id, _id, docid, " in problem.detail
    assert problem.detail.endswith("found Name, Title")


def test_a_folder_is_told_from_a_file(tmp_path):
    with pytest.raises(InputError, match=r"is a folder: name its files, e\.g\. .*\.bib"):
        list(read_papers(tmp_path))


@pytest.mark.parametrize("name", ["p.xml", "p.bib", "p.jsonl", "p.json"])
def test_nonsense_breaks_no_reader(tmp_path, name):
    for content in ("", "\0\1\2", "<a><b>", "@article{", '{"title": {}}', "[[]]", "@x{a,b=}"):
        found = list(read_papers(write(tmp_path, name, content)))
        assert all(isinstance(one, ImportProblem) for one in found), content


_ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "author", "doi", "a"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def _spoil(draw, value, depth=2):
    """Put something odd in the place of a part of a record."""
    if depth and isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: _spoil(draw, value[key], depth - 1)}
    if depth and isinstance(value, list) and value and draw(st.booleans()):
        return [_spoil(draw, value[0], depth - 1), *value[1:]]
    return draw(_ODD)


@st.composite
def _odd_record(draw, whole):
    name = draw(st.sampled_from(sorted(whole)))
    return {**whole, name: _spoil(draw, whole[name])}


@pytest.mark.parametrize(
    ("form", "whole"),
    [
        ("s2", {**S2, **S2ORC, "authors": S2["authors"]}),
        ("s2", S2ORC),
        ("openalex", OPENALEX),
        ("arxiv", ARXIV),
        ("jsonl", {**S2, "id": "1", "date": "2021-01-05", "categories": ["a"], "pmid": 3}),
    ],
    ids=["s2", "s2orc", "openalex", "arxiv", "jsonl"],
)
@given(data=st.data())
def test_an_odd_record_costs_itself_alone(form, whole, data):
    odd = data.draw(st.lists(_odd_record(whole), min_size=1, max_size=5))
    with TemporaryDirectory() as folder:
        path = Path(folder, "p.jsonl")
        path.write_text("".join(json.dumps(one) + "\n" for one in [*odd, whole]))
        *found, last = read_papers(path, form)
    assert isinstance(last, PaperRecord)
    assert len(found) == len(odd)
    assert {type(one) for one in found} <= {PaperRecord, ImportProblem}
    assert all(one.place == at for at, one in enumerate(found, 1) if isinstance(one, ImportProblem))


@given(st.lists(st.sampled_from(["@", "article", "{", "}", "k,", "a", "=", '"', "#", "\n", "%"])))
def test_odd_bibtex_ends_no_file(parts):
    with TemporaryDirectory() as folder:
        path = Path(folder, "p.bib")
        path.write_text("".join(parts) + "\n@misc{last, title = {Last}}\n")
        *_, last = read_papers(path)
    assert isinstance(last, PaperRecord | ImportProblem)


@given(
    st.lists(st.sampled_from(["<a>", "</a>", "<paper>", "</paper>", "<title/>", "x", "<author/>"]))
)
def test_odd_xml_ends_no_file(parts):
    with TemporaryDirectory() as folder:
        path = Path(folder, "p.xml")
        path.write_text(f"<collection>{''.join(parts)}</collection>")
        assert all(isinstance(one, PaperRecord | ImportProblem) for one in read_papers(path))


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ({"authorships": True}, "authorships must be a list, got True"),
        ({"authorships": ["Ann"]}, "authorships must be a list of objects, got 'Ann' in it"),
        ({"primary_location": "x"}, "primary_location must be an object, got 'x'"),
    ],
)
def test_a_base_is_built_of_the_others_and_the_odd_one_is_told(tmp_path, odd, told):
    path = tmp_path / "p.jsonl"
    nulls = {**OPENALEX, "id": "W13", "doi": None, "locations": None, "authorships": [None]}
    lines = [{**OPENALEX, **odd}, {**nulls, "title": "Other"}]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    with PaperBase.build(tmp_path / "a.papers", path, form="openalex") as base:
        report = base.report
    assert (report.added, report.problems) == (1, {"bad_line": 1})
    assert told in report.told[0]
