"""A table of claims: semicolons, rows that cannot be read, rows that name no reference."""

import pytest
from langchain_core.documents import Document

from deepera_graph import ManuscriptCheck, WorkLibrary
from deepera_graph.errors import InputError
from deepera_graph.evidence.check.manuscript import read_manuscript
from deepera_graph.evidence.check.report import export_check

GOOD = "Wax keeps apples firm;10.5555/wax.1\n"


def read(folder, rows):
    path = folder / "claims.csv"
    path.write_text(f"claim;reference\n{rows}", encoding="utf-8")
    return read_manuscript(path)


@pytest.mark.parametrize(
    ("cell", "keys"),
    [
        ("Sanders (2010); Holm (2009)", ("Sanders (2010)", "Holm (2009)")),
        ('"Sanders (2010); Holm (2009)"', ("Sanders (2010)", "Holm (2009)")),
        ("10.5555/vd.1;10.5555/vd.2", ("10.5555/vd.1", "10.5555/vd.2")),
        ("Roy (2010);10.5555/v.2;PMID: 1234567", ("Roy (2010)", "10.5555/v.2", "PMID: 1234567")),
        ("sanders2010;holm2009", ("sanders2010", "holm2009")),
        ("Sanders (2010);", ("Sanders (2010)",)),
        ("sanders2010, holm2009", ("sanders2010", "holm2009")),
        ("Sanders (2010), Holm & Roy (2009)", ("Sanders (2010)", "Holm & Roy (2009)")),
        ("Sanders, 2010", ("Sanders, 2010",)),
    ],
)  # fmt: skip
def test_several_references_may_stand_in_a_table_of_semicolons(tmp_path, cell, keys):
    found = read(tmp_path, f"{GOOD}High dose sweetens pears;{cell}\n")
    assert found.claims[1].keys == keys
    assert found.faults == ()


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (
            "Doses of 1; 2 and 3 g sweeten pears;10.5555/vd.2",
            "the row has 3 cells in 2 columns: put quotes round a cell that has a semicolon",
        ),
        ("Pears are sweet", "the row has 1 cell in 2 columns"),
        (";10.5555/vd.2", "needs a claim and a reference, has reference"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_and_others_are_checked(tmp_path, row, fault):
    found = read(tmp_path, f"{GOOD}{row}\nKelp slows waves;10.5555/kelp.1\n")
    assert [one.keys for one in found.claims] == [("10.5555/wax.1",), ("10.5555/kelp.1",)]
    assert found.faults == (f"line 3: {fault}",)
    report = ManuscriptCheck().check(found)
    assert f"not checked: line 3: {fault}" in export_check(report, "text")
    with pytest.raises(InputError, match=f"line 2: {fault}"):
        read(tmp_path, f"{row}\n")


@pytest.mark.parametrize("text", ["", "claim,reference\n"])
def test_a_table_without_a_row_is_told_as_such_beside_a_list_of_references(tmp_path, text):
    table, works = tmp_path / "claims.csv", tmp_path / "works.bib"
    table.write_text(text)
    works.write_text("@article{lund, title={Wax on apples}, year={2018}}\n")
    with pytest.raises(InputError, match=r"claims\.csv: has no row with a claim"):
        read_manuscript(table, bibliography=works)


def test_a_row_without_a_reference_is_told_as_such(tmp_path):
    works = WorkLibrary([Document(id="w", page_content="Wax keeps apples firm.")])
    report = ManuscriptCheck(library=works).check(read(tmp_path, f"{GOOD}Kelp slows waves;\n"))
    pair = report.pairs[1]
    assert (pair.verdict, pair.notes) == ("missing", ("it names no reference",))
    for form in ("text", "markdown", "html"):
        shown = export_check(report, form)
        assert "has no ''" not in shown
        assert "not in the list of references:" not in shown
        assert "[]" not in shown


def test_an_entry_with_semicolons_is_one_reference(tmp_path):
    path = tmp_path / "claims.csv"
    path.write_text('claim,reference\nWax works,"Lee A; Roy B. Wax on fruit. Fruit. 2019;14:3."\n')
    assert len(read_manuscript(path).claims[0].keys) == 1


@pytest.mark.parametrize(
    ("cited", "verdict"),
    [
        ("a4", "supported"),
        ("b7", "supported"),
        ("lund", "supported"),
        ("12345678", "supported"),
        ("10.5555/wax.4", "supported"),
        ("Wax on stored apples", "supported"),
        ("Lund (2018)", "supported"),
        ("a5", "unavailable"),
    ],
)
def test_a_record_is_found_by_its_id_and_whatever_else_it_has(tmp_path, cited, verdict):
    text = "Wax keeps apples firm."
    known = {"title": "Wax on stored apples", "authors": "Lund, A.", "year": 2018, "key": "lund"}
    known |= {"doi": "10.5555/wax.4", "pmid": "12345678"}
    part = {"title": "Wax on pears", "part": 1}
    passages = [
        Document(id="a4", page_content=text, metadata=known),
        Document(id="b7#1", page_content=text, metadata=part),
    ]
    found = read(tmp_path, f"Wax keeps apples firm;{cited}\n")
    [pair] = ManuscriptCheck(library=WorkLibrary(passages)).check(found).pairs
    assert pair.verdict == verdict
    assert ("looked up are DOI, PMID" in " ".join(pair.notes)) == (verdict == "unavailable")


def test_the_number_of_a_printed_entry_is_no_id(tmp_path):
    path = tmp_path / "a.md"
    path.write_text("Wax keeps apples firm [1].\n\n## References\n\n1. Roy B, in press at last\n")
    passages = [Document(id="1", page_content="Wax keeps apples firm.", metadata={"title": "Wax"})]
    [pair] = ManuscriptCheck(library=WorkLibrary(passages)).check(path).pairs
    assert pair.verdict == "unavailable"


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("a.csv", "Statement,Cited work"),
        ("a.csv", "claims,references"),
        ("a.csv", "Claim text,Source"),
        ("a.tsv", "Sentence\tDOI"),
    ],
)
def test_columns_may_have_other_names(tmp_path, name, header):
    path, between = tmp_path / name, "\t" if name.endswith("tsv") else ","
    path.write_text(f"{header}\nWax keeps apples firm{between}10.5555/wax.1\n", encoding="utf-8")
    [claim] = read_manuscript(path).claims
    assert (claim.sentence, claim.keys) == ("Wax keeps apples firm", ("10.5555/wax.1",))
