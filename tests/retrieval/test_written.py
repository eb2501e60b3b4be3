"""What the commands wrote into a folder of papers is no paper."""

import json
from typing import get_args
from zipfile import ZipFile

import pytest
from langchain_core.documents import Document
from typer.testing import CliRunner

from deepera_graph import (
    EvidenceReranker,
    EvidenceTabulator,
    ManuscriptCheck,
    ReportWriter,
    WorkLibrary,
    export_check,
    export_report,
    export_result,
    export_table,
    read_passages,
)
from deepera_graph.cli.main import app
from deepera_graph.evidence.check.report import CheckFormat
from deepera_graph.evidence.report.report import ReportFormat
from deepera_graph.retrieval.files import describe_left_out
from deepera_graph.retrieval.written import MANUSCRIPT

QUESTION = "Does wax keep apples firm?"
PAPER = {
    "id": "wax",
    "title": "Wax on stored apples",
    "text": "Wax coating kept apples 12% firmer in storage (p = 0.01).",
    "year": 2018,
    "journal": "Fruit",
    "doi": "10.1000/wax",
}
DRAFT = (
    "# On\n\nWax coating keeps apples firm [1].\n\n# References\n\n"
    "1. Lund A. Wax on stored apples. 2018. doi:10.1000/wax\n"
)
SUFFIXES = {"markdown": "md", "text": "txt"}


def passages():
    about = {name: PAPER[name] for name in ("title", "year", "journal", "doi")}
    return [Document(id="wax", page_content=PAPER["text"], metadata=about)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Every form of every report, by the name of its file."""
    draft = tmp_path_factory.mktemp("draft") / "draft.md"
    draft.write_text(DRAFT)
    judge = EvidenceReranker("local", content="passage")
    result = judge.rerank(QUESTION, passages())
    table = EvidenceTabulator(judge).tabulate_result(result)
    report = ReportWriter(judge).write_from(result)
    check = ManuscriptCheck(judge, library=WorkLibrary(passages())).check(draft)
    found = {
        ("ask", form): export_result(result, form) for form in ("markdown", "html", "csv", "json")
    }
    found |= {
        ("table", form): export_table(table, form) for form in ("markdown", "html", "csv", "json")
    }
    found |= {("report", form): export_report(report, form) for form in get_args(ReportFormat)}
    found |= {("check", form): export_check(check, form) for form in get_args(CheckFormat)}
    return {f"{name}.{SUFFIXES.get(form, form)}": text for (name, form), text in found.items()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/own.jsonl").write_text(json.dumps(PAPER) + "\n")
    return tmp_path / "papers"


def read(path):
    skipped = []
    return [one.id for one in read_passages(path, on_skip=skipped.append)], skipped


@pytest.mark.full
def test_every_form_of_every_report_is_left_out_of_a_folder_and_named(folder, made):
    for name, text in made.items():
        (folder / name).write_text(text)
    found, skipped = read(folder)
    assert found == ["wax"]
    assert {one.place.rpartition("/")[2] for one in skipped} == {*made}
    assert all(one.is_written and not one.is_lost for one in skipped)


@pytest.mark.parametrize("name", ["ask.md", "ask.html", "report.txt", "check.md"])
def test_a_report_that_is_named_itself_is_read(folder, made, name):
    (folder / name).write_text(made[name])
    found, skipped = read(folder / name)
    assert found
    assert not skipped


def test_a_pattern_and_an_archive_are_no_names_of_a_report(folder, made):
    (folder / "ask.md").write_text(made["ask.md"])
    assert [one.place for one in read(folder / "*")[1]] == [(folder / "ask.md").as_posix()]
    packed = folder.parent / "all.zip"
    with ZipFile(packed, "w") as archive:
        archive.write(folder / "own.jsonl", "own.jsonl")
        archive.write(folder / "ask.md", "ask.md")
    found, skipped = read(packed)
    assert found == ["wax"]
    assert [one.place for one in skipped] == [f"{packed.as_posix()}/ask.md"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", "# Notes\n\nWax was tried; it was written by deepera.\n"),
        ("a.txt", "Wax was judged by two people; 3 calls were made to each."),
        ("a.html", "<html><head><title>Wax</title></head><body><p>Wax kept.</p></body></html>"),
        ("a.csv", "rank,id,title,text\n1,a,Wax,Wax kept apples firm.\n"),
        ("a.json", '[{"id": "a", "text": "Wax kept apples firm."}]'),
        ("a.jsonl", '{"id": "a", "question": "Wax?", "text": "Wax kept apples firm."}\n'),
    ],
)
def test_what_others_wrote_is_read(folder, name, content):
    (folder / name).write_text(content)
    found, skipped = read(folder)
    assert len(found) == 2
    assert not skipped


PANDOC = "---\ntitle: Wax\nbibliography: refs.bib\n---\n\nWax kept apples firm [@lund2018].\n"


@pytest.mark.parametrize(
    ("name", "content", "is_read"),
    [
        ("draft.md", PANDOC, False),
        ("draft.md", PANDOC.replace("[@lund2018]", "as @lund2018 found"), False),
        ("draft.markdown", PANDOC.replace("refs.bib", "[a.bib, b.bib]"), False),
        ("paper.md", PANDOC.replace("[@lund2018]", "(Lund 2018)"), True),
        ("paper.md", PANDOC.replace("[@lund2018]", "(lund@apples.org)"), True),
        ("notes.md", PANDOC.replace("bibliography", "author"), True),
        ("paper.md", PANDOC.partition("---\n\n")[2], True),
        ("paper.txt", PANDOC, True),
    ],
)
def test_a_manuscript_in_markdown_is_no_paper(folder, name, content, is_read):
    (folder / name).write_text(content)
    found, skipped = read(folder)
    assert len(found) == 1 + is_read
    told = [(f"{folder}/{name}", MANUSCRIPT)] if not is_read else []
    assert [(one.place, one.reason) for one in skipped] == told
    assert [MANUSCRIPT in one for one in describe_left_out(skipped)] == [True] * len(told)
    assert not any(one.is_lost for one in skipped)


def run(*arguments):
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.mark.full
def test_ask_again_does_not_read_its_own_report_and_says_so(folder):
    for form, name in (("text", "a.txt"), ("markdown", "a.md"), ("html", "a.html")):
        (folder / name).write_text(run("ask", QUESTION, "papers", "--format", form).stdout)
    (folder / "a.json").write_text(run("ask", QUESTION, "papers", "--multihop", "--json").stdout)
    made = run("table", QUESTION, "papers", "-o", "papers/table.html")
    assert made.exit_code == 0
    again = run("ask", QUESTION, "papers", "--json")
    assert again.exit_code == 0
    assert [one["id"] for one in json.loads(again.stdout)["ranking"]] == ["wax"]
    assert "skipped 6 files that deepera wrote: papers/a.html, papers/a.json" in again.stderr
    assert "name a file itself to have it read" in again.stderr


def test_what_rerank_wrote_is_left_out_of_a_folder_and_its_input_elsewhere(folder):
    line = {"question": QUESTION, "passages": [{"id": "a", "text": PAPER["text"]}]}
    (folder.parent / "q.jsonl").write_text(json.dumps(line) + "\n")
    assert run("rerank", "q.jsonl", "-o", "papers/ranked.jsonl").exit_code == 0
    found, skipped = read(folder)
    assert found == ["wax"]
    places = [one.place.rpartition("/")[2] for one in skipped if one.is_written]
    assert places == ["ranked.jsonl", "ranked.report.json"]


def test_a_folder_of_reports_alone_says_what_they_are(folder, made):
    (folder / "own.jsonl").unlink()
    (folder / "ask.md").write_text(made["ask.md"])
    asked = run("ask", QUESTION, "papers")
    assert asked.exit_code != 0
    assert "skipped 1 file that deepera wrote: papers/ask.md; name a file" in asked.stderr
