"""The table of studies: verified cells, a chat model, studies that count once, forms."""

import csv
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from deepera_graph import Budget, EvidenceReranker, EvidenceTabulator, export_table
from deepera_graph.agents.journal import Journal
from deepera_graph.errors import SettingsError
from deepera_graph.evidence.report.report import list_studies
from deepera_graph.evidence.table.cells import read_cells
from deepera_graph.evidence.table.rows import Extracted, ExtractedCell
from deepera_graph.evidence.table.table import EvidenceTable
from deepera_graph.evidence.table.writing import write_xlsx
from evidence.test_cells import read
from support.scripted import Script

QUESTION = "Does green tea lower fasting glucose?"
TRIAL = (
    "We randomised 210 adults to green tea or water. Green tea lowered fasting glucose by 4% "
    "(95% CI 1% to 7%, p = 0.01)."
)
PASSAGES = [
    Document(id="t", page_content=TRIAL, metadata={"title": "Tea and glucose", "doi": "10.5555/t"}),
    Document(id="u", page_content="Moths sleep by day.", metadata={"title": "Moths"}),
]


def tabulator(columns=("n", "effect"), extractor=None, scores=None):
    backend = Script(scores or {"lowered": 0.9, "adults": 0.9}).backend()
    reranker = EvidenceReranker(backend, content="passage", threshold=0.8)
    return EvidenceTabulator(reranker, columns=columns, extractor=extractor)


def fill(*cells):
    """An extractor that says the same of every study."""
    made = [ExtractedCell(column=name, value=value, quote=quote) for name, value, quote in cells]
    return RunnableLambda(lambda task: Extracted(cells=made))


def test_a_design_that_only_the_title_names_is_shown():
    about = {"title": "Tea and glucose: a randomised controlled trial"}
    text = "Green tea lowered fasting glucose by 4% in 210 adults."
    passage = Document(id="t", page_content=text, metadata=about)
    table = tabulator(columns=("design", "n")).tabulate(QUESTION, [passage])
    cell = table.rows[0].find("design")
    assert (cell.value, cell.words) == ("randomised trial", "randomised")
    assert cell.note == "from the title"


@pytest.mark.parametrize(
    ("title", "text", "design"),
    [
        (
            "Tea: a meta-analysis",
            "We pooled 26 randomised trials with 4,578 adults.",
            "meta-analysis",
        ),
        ("Tea and glucose", "We pooled 26 randomised trials with 4,578 adults.", "meta-analysis"),
        ("Tea", "This is a pooled analysis of 26 randomised trials.", "meta-analysis"),
        (
            "Tea: a systematic review and meta-analysis of randomised controlled trials",
            "Adults in 26 trials were randomised.",
            "meta-analysis",
        ),
        ("Tea: a systematic review", "Trials were randomised.", "systematic review"),
        ("Tea: a systematic review", "A meta-analysis of 26 trials was done.", "meta-analysis"),
        ("Tea: a cohort study", "Other studies were randomised.", "cohort"),
        ("Tea: an open-label trial", "Adults were randomised to tea.", "randomised trial"),
        ("Tea: a randomised trial", "Its design was crossover.", "crossover trial"),
        ("Tea: a randomised trial", "Meta-analyses had small effects.", "randomised trial"),
        ("Tea and glucose", "Data were pooled in two randomised trials.", "randomised trial"),
    ],
)
def test_a_design_is_that_of_the_title_unless_the_text_is_finer(title, text, design):
    passage = {"id": "t", "text": f"Green tea lowered fasting glucose. {text}"}
    passage |= {"metadata": {"title": title}}
    reranker = EvidenceReranker(
        Script({"lowered": 0.9}).backend(), content="passage", threshold=0.8
    )
    result = reranker.rerank(QUESTION, [passage])
    assert EvidenceTable.of_result(result).rows[0].find("design").value == design
    assert list_studies(result)[0][0].design == design


SENTENCES = [one for row in read("seen.jsonl") for one in row["text"].split(". ")]


@pytest.mark.full
@settings(deadline=None)
@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=6), st.text(max_size=20))
def test_the_words_of_every_cell_stand_in_the_text(sentences, other):
    text = ". ".join([*sentences, other])
    for cell in read_cells(text).values():
        start, end = cell.span
        assert 0 <= start < end <= len(text)
        assert text[start:end].strip()


def test_a_row_is_a_study_that_the_judge_keeps():
    table = tabulator(("n", "design", "effect", "unit", "interval", "p", "direction")).tabulate(
        QUESTION, PASSAGES
    )
    [row] = table.rows
    assert {name: cell.value for name, cell in row.cells.items()} == {
        "n": "210",
        "design": "randomised trial",
        "effect": "4%",
        "unit": "%",
        "interval": "1 to 7%",
        "p": "0.01",
        "direction": "lower",
    }
    assert (row.link, row.cells["n"].words) == ("https://doi.org/10.5555/t", "210 adults")


def test_parts_of_one_study_are_one_row_and_what_the_rest_lacks_is_told():
    parts = [
        "We randomised 210 adults. Green tea lowered fasting glucose by 4% (p = 0.01).",
        "Of 201 adults 100 drank tea.",
        "Green tea lowered fasting glucose by 4% (p = 0.01). Tea was drunk at noon.",
    ]
    passages = [
        Document(id=f"t#{n}", page_content=one, metadata={"source": "t", "part": n, "page": n})
        for n, one in enumerate(parts, start=1)
    ]
    [row] = (
        tabulator(("n", "effect"), scores={"We randomised": 0.95}).tabulate(QUESTION, passages).rows
    )
    assert (row.cells["n"].value, row.cells["n"].page) == ("210", "1")
    assert row.cells["n"].note == "the rest of the text does not have 210"
    assert row.cells["effect"].note == ""


@pytest.mark.parametrize(
    ("cell", "value", "note"),
    [
        (("population", "adults", "210 adults"), "adults", ""),
        (("population", "children", "310 children"), "", "its quote is not in the study"),
        (("population", "211 adults", "210 adults"), "", "its quote does not have 211"),
        (("population", "GLP-1 adults", "210 adults"), "GLP-1 adults", ""),
        (("population", "", ""), "", "the study does not say it"),
        (("other", "adults", "210 adults"), "", "the study does not say it"),
    ],
)
def test_what_a_model_fills_stands_in_the_study_or_is_left_out(cell, value, note):
    [row] = tabulator(("population",), fill(cell)).tabulate(QUESTION, PASSAGES).rows
    found = row.cells["population"]
    assert (found.value, found.note, found.by) == (value, note, "model" if value else "")


def test_a_number_that_the_study_has_in_words_stands_in_it():
    found = fill(("n", "84", "Eighty-four adults"))
    passages = ["Eighty-four adults drank green tea, which lowered fasting glucose."]
    [row] = tabulator(("n",), found).tabulate(QUESTION, passages).rows
    assert (row.cells["n"].value, row.cells["n"].by) == ("84", "model")


def test_rules_fill_what_a_model_leaves_empty():
    [row] = tabulator(("n", "dose"), fill(("n", "", ""))).tabulate(QUESTION, PASSAGES).rows
    assert (row.cells["n"].value, row.cells["n"].by) == ("210", "rules")


def test_a_model_that_fails_leaves_the_reason():
    def fail(task):
        raise RuntimeError("out of order")

    [row] = tabulator(("dose",), RunnableLambda(fail)).tabulate(QUESTION, PASSAGES).rows
    assert "out of order" in row.cells["dose"].note


def test_without_a_model_a_column_of_ones_own_says_what_it_needs():
    [row] = tabulator(("dose",)).tabulate(QUESTION, PASSAGES).rows
    assert row.cells["dose"].note == "rules cannot fill this column; it needs a chat model"


def test_a_chat_model_is_shown_the_study_between_marks():
    reply = {"cells": [{"column": "dose", "value": "4%", "quote": "by 4%"}]}
    model = GenericFakeChatModel(messages=iter([AIMessage(json.dumps(reply))] * 3))
    [row] = tabulator(("dose",), model).tabulate(QUESTION, PASSAGES).rows
    assert (row.cells["dose"].value, row.cells["dose"].words) == ("4%", "by 4%")


async def test_async_gives_the_same():
    both = tabulator(("n", "dose"), fill(("dose", "4%", "by 4%")))
    table = await both.atabulate(QUESTION, PASSAGES)
    assert table.to_dict() == both.tabulate(QUESTION, PASSAGES).to_dict()


class Told:
    """An extractor that notes what it is asked, and is cut short at the study with a word."""

    def __init__(self, stops_at=""):
        self.asked, self.stops_at = [], stops_at

    def __call__(self, task):
        [text] = task["passages"]
        self.asked.append(text)
        if self.stops_at and self.stops_at in text:
            raise KeyboardInterrupt
        return Extracted(cells=[ExtractedCell(column="dose", value="4%", quote="by 4%")])


TWO = [
    *PASSAGES,
    Document(id="v", page_content="Tea lowered glucose by 4%.", metadata={"title": "V"}),
]


def resumed(journal, told, *, resume=True):
    reranker = EvidenceReranker(
        Script({"lowered": 0.9}).backend(), content="passage", threshold=0.8, max_concurrency=1
    )
    with journal.open(resume=resume):
        return EvidenceTabulator(
            reranker, columns=("dose",), extractor=RunnableLambda(told), journal=journal
        ).tabulate(QUESTION, TWO)


@pytest.mark.full
def test_a_table_that_was_cut_short_goes_on_and_asks_for_no_study_twice(tmp_path):
    path = tmp_path / "t.jsonl"
    whole = resumed(Journal(tmp_path / "whole.jsonl", {}), Told(), resume=False)
    cut, rest = Told(stops_at="Tea lowered"), Told()
    with pytest.raises(KeyboardInterrupt):
        resumed(Journal(path, {}), cut, resume=False)
    table = resumed(Journal(path, {}), rest)
    assert (table.rows, len(whole.rows)) == (whole.rows, 2)
    assert rest.asked == ["Tea lowered glucose by 4%."]
    assert resumed(Journal(path, {}), again := Told()).rows == whole.rows
    assert again.asked == []


def test_a_budget_holds_for_judging_and_filling_together():
    backend = Script({"lowered": 0.9}).backend()
    reranker = EvidenceReranker(
        backend, content="passage", threshold=0.8, budget=Budget(max_calls=4)
    )
    table = EvidenceTabulator(reranker, columns=("dose",), extractor=RunnableLambda(Told()))
    notes = [one.cells["dose"].note for one in table.tabulate(QUESTION, TWO).rows]
    assert notes
    assert all("budget" in one for one in notes)


def test_nothing_kept_is_a_table_without_rows():
    table = tabulator(scores={"nothing": 0.9}).tabulate(QUESTION, PASSAGES)
    assert table.rows == ()
    assert table.notes == ("no study of 2 passages is evidence",)


@pytest.mark.parametrize("columns", [(), ("n", "N"), ("n", " ")])
def test_columns_are_different_names(columns):
    with pytest.raises(SettingsError, match="columns must be"):
        tabulator(columns)


def test_a_table_survives_json():
    table = tabulator().tabulate(QUESTION, PASSAGES)
    assert EvidenceTable.from_dict(json.loads(export_table(table, "json"))) == table


def test_every_form_has_values_and_words():
    table = tabulator().tabulate(QUESTION, PASSAGES)
    for form in ("markdown", "csv", "html"):
        text = export_table(table, form)
        assert "210 adults" in text
        assert "4%" in text
    head, row = csv.reader(io.StringIO(export_table(table, "csv")))
    assert row[head.index("effect: words")] == "by 4%"


@pytest.mark.full
def test_a_workbook_has_the_words_as_comments():
    openpyxl = pytest.importorskip("openpyxl")
    table = tabulator().tabulate(QUESTION, PASSAGES)
    book = openpyxl.load_workbook(io.BytesIO(write_xlsx(table)))
    cells = {str(one.value): one for one in book["Studies"][2]}
    assert cells["210"].comment.text == "210 adults"
    assert "by 4%" in [one.value for one in book["Words"][2]]


def test_numbers_of_a_workbook_are_numbers():
    openpyxl = pytest.importorskip("openpyxl")
    text = "Green tea lowered fasting glucose in 1,210 adults (OR 0.80, 95% CI 0.70 to 0.90, {})."
    about = {"title": "Tea", "year": 2020}
    passages = [
        Document(id=p, page_content=text.format(p), metadata=about)
        for p in ("p = 0.01", "p < 0.01")
    ]
    table = tabulator(columns=("n", "effect", "interval", "p")).tabulate(QUESTION, passages)
    book = openpyxl.load_workbook(io.BytesIO(write_xlsx(table)))
    cells = {one.value: one for line in book["Studies"].iter_rows(min_row=2) for one in line}
    assert {2020, 1210, 0.8, 0.01, "<0.01", "0.70 to 0.90"} <= set(cells)
    assert (cells[0.8].number_format, cells[1210].number_format) == ("0.00", "General")
    assert {2020, 1210, 0.8} <= {one.value for one in book["Words"][2]}


@pytest.mark.parametrize("columns", ["design", "n, p", "", [5], []])
def test_columns_are_a_list_of_names(columns):
    with pytest.raises(SettingsError, match="columns must be names, got "):
        EvidenceTabulator(columns=columns)
