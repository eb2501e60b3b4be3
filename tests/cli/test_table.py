"""`deepera table`: forms, files, what is wrong."""

import json
import re
from pathlib import Path

import pytest

from deepera_graph.text.plain import drop_mark
from support.manuscripts import LIBRARY

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
QUESTION = "Does wax coating keep apples firm?"


def test_a_table_of_a_file_has_a_row_a_study(deepera):
    result = deepera("table", QUESTION, LIBRARY, "--quiet", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["rows"][0]["cells"]["n"]["words"] == "We coated 120 apples"
    assert found["rows"][0]["cells"]["p"]["value"] == "<0.001"


def test_the_documentation_shows_what_is_printed(deepera):
    page = (ROOT / "docs" / "evidence-tables.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    args = ("table", QUESTION, ROOT / "notebooks" / "apples.jsonl", "--top-n", "4", "--quiet")
    result = deepera(*args)
    assert (result.exit_code, drop_mark(result.stdout)) == (0, shown)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("t.md", b"# Does"),
        ("t.csv", b"study,"),
        ("t.html", b"<!doctype"),
        ("t.svg", b"<svg"),
        ("t.xlsx", b"PK"),
    ],
)
def test_the_suffix_says_the_form(deepera, tmp_path, name, begins):
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    out = tmp_path / name
    assert deepera("table", QUESTION, LIBRARY, "--quiet", "-o", out).exit_code == 0
    assert out.read_bytes().startswith(begins)
    told = deepera("table", QUESTION, LIBRARY, "--overwrite", "-o", out).stderr
    assert re.search(rf"\d+ stud(y|ies) in {re.escape(str(out))}\n", told)
    again = deepera("table", QUESTION, LIBRARY, "-o", out)
    assert (again.exit_code, "--overwrite" in again.stderr) == (2, True)


def test_a_dry_run_says_what_a_table_costs_at_most_and_asks_nobody(deepera, tmp_path):
    out = tmp_path / "t.csv"
    args = ("table", QUESTION, LIBRARY, "--quiet", "--dry-run", "-o", out)
    free = json.loads(deepera(*args, "--json", "--format", "json").stdout)
    assert (free["calls"], free["fill_calls"], out.exists()) == (0, 0, False)
    asked = deepera(*args, "--model", "openai:gpt-5-mini", "--json", "--format", "json")
    plain = json.loads(asked.stdout)
    assert plain["fill_calls"] == plain["passages"] == free["passages"]
    assert plain["calls"] >= plain["passages"]
    told = deepera("table", QUESTION, LIBRARY, "--dry-run", "--model", "openai:gpt-5-mini").stdout
    assert f"and {plain['passages']} more calls to fill cells, one a study" in told


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([QUESTION], "give a SOURCE, --library or --source"),
        ([" ", LIBRARY], "the question is empty"),
        ([QUESTION, LIBRARY, "--columns", "n,,p"], "--columns must be names with commas"),
        ([QUESTION, LIBRARY, "--columns", "n,n"], "columns must be different names"),
        ([QUESTION, LIBRARY, "-o", "t.docx"], "--out must end with .md, .txt, .html, .htm, .csv,"),
        ([QUESTION, LIBRARY, "--json", "--format", "csv"], "give --json or --format csv"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(deepera, args, said):
    result = deepera("table", *args)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_column_that_rules_cannot_fill_is_noted_with_what_it_may_be(deepera):
    args = ("table", QUESTION, LIBRARY, "--json", "--columns", "n,designn,population")
    assert json.loads(deepera(*args).stdout)["notes"][-2:] == [
        "only a chat model can fill the column 'designn'; did you mean 'design'?",
        "only a chat model can fill the column 'population'",
    ]


def test_notes_of_a_table_in_cells_are_said(deepera):
    args = ("table", QUESTION, LIBRARY, "--format", "csv", "--columns", "n,designn")
    note = "only a chat model can fill the column 'designn'; did you mean 'design'?"
    assert note in deepera(*args).stderr
    assert note not in deepera(*args, "--quiet").stderr


def test_a_table_goes_on_with_what_is_kept_beside_it(deepera, tmp_path):
    out = tmp_path / "t.json"
    args = ("table", QUESTION, LIBRARY, "--quiet", "-o", out)
    assert deepera(*args).exit_code == 0
    whole, kept = out.read_bytes(), tmp_path / "t.json.table.jsonl"
    lines = kept.read_bytes().splitlines(keepends=True)
    assert len(lines) == 2  # how it was made, and what was judged
    kept.write_bytes(lines[0] + lines[1][:-9])  # cut off by a kill
    out.unlink()
    assert deepera(*args, "--resume").exit_code == 0
    assert out.read_bytes() == whole
    judged = kept.read_bytes()
    assert deepera(*args, "--resume").exit_code == 0
    assert (out.read_bytes(), kept.read_bytes()) == (whole, judged)
    other = deepera("table", "Does tea help?", LIBRARY, "-o", out, "--resume")
    assert (other.exit_code, "question was" in other.stderr) == (2, True)
    alone = deepera("table", QUESTION, LIBRARY, "--resume")
    assert (alone.exit_code, "--resume goes with --out" in alone.stderr) == (2, True)
