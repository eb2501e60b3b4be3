"""`deepera check`: options, exit codes, files."""

import json
import re
from pathlib import Path

import pytest

from support.manuscripts import LIBRARY, PLANTED, write_manuscript

pytestmark = pytest.mark.full

DOCS = Path(__file__).parents[2] / "docs" / "check.md"
RULES = ("--backend", "rules", "--quiet")


@pytest.fixture
def planted(tmp_path):
    return write_manuscript(PLANTED[1], tmp_path)


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "plain.md"
    path.write_text(
        "# On\n\nWax coating keeps apples firm [1].\n\n# References\n\n"
        "1. Lund A, Roy B. Wax coating and the firmness of stored apples. 2018.\n"
    )
    return path


def test_the_code_is_1_where_a_work_was_retracted(deepera, planted):
    result = deepera("check", planted, LIBRARY, *RULES)
    assert result.exit_code == 1
    assert "RETRACTED" in result.stdout


def test_the_code_is_0_where_nothing_is_wrong(deepera, plain):
    result = deepera("check", plain, LIBRARY, *RULES, "--json")
    assert result.exit_code == 0
    assert [one["key"] for one in json.loads(result.stdout)["pairs"]] == ["1"]


@pytest.mark.parametrize(
    ("name", "begins"), [("r.html", "<!doctype"), ("r.md", "# "), ("r.csv", "claim,")]
)
def test_the_suffix_says_the_form(deepera, plain, tmp_path, name, begins):
    assert deepera("check", plain, LIBRARY, *RULES, "-o", tmp_path / name).exit_code == 0
    assert (tmp_path / name).read_text().startswith(begins)


def test_a_report_is_not_lost_and_can_be_gone_on_with(deepera, plain, tmp_path):
    out = tmp_path / "r.md"
    assert deepera("check", plain, LIBRARY, *RULES, "-o", out).exit_code == 0
    before = out.read_text()
    again = deepera("check", plain, LIBRARY, *RULES, "-o", out)
    assert (again.exit_code, "--resume" in again.stderr) == (2, True)
    assert deepera("check", plain, LIBRARY, *RULES, "-o", out, "--resume").exit_code == 0
    assert out.read_text().splitlines()[2:] == before.splitlines()[2:]


def test_the_documentation_shows_what_is_printed(deepera, tmp_path):
    page = DOCS.read_text(encoding="utf-8")
    [draft] = re.findall(r"```markdown\n(.*?)```", page, re.DOTALL)
    [shown] = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    [works] = re.findall(r"```jsonl\n(.*?)```", page, re.DOTALL)
    (tmp_path / "draft.md").write_text(draft)
    (tmp_path / "works.jsonl").write_text(works)
    result = deepera("check", tmp_path / "draft.md", tmp_path / "works.jsonl", "--quiet")
    assert (result.exit_code, result.stdout) == (1, shown)


def test_a_dry_run_says_what_would_be_judged(deepera, plain):
    result = deepera("check", plain, LIBRARY, "--model", "openai:any", "--dry-run", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (found["claims"], found["pairs"], found["readable"]) == (1, 1, 1)
    assert found["calls"] > 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["gone.docx"], "no such manuscript: 'gone.docx'"),
        (["gone.docx", "--resume"], "--resume goes with --out"),
        (["gone.docx", "-o", "r.docx"], "--out must end with .txt, .md, .html, .htm, .csv, .json"),
        (["gone.docx", "some/", "-l", "papers"], "give a SOURCE or --library, not both"),
        (["gone.docx", "--json", "--format", "csv"], "give --json or --format csv, not both"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(deepera, args, said):
    result = deepera("check", *args)
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize("name", ["apples.bib", "apples.csv"])
def test_a_source_that_lists_references_serves_a_manuscript_without_a_list(deepera, tmp_path, name):
    draft, listed = tmp_path / "draft.md", tmp_path / name
    draft.write_text("# On\n\nWax coating keeps apples firm (Lund and Roy, 2018).\n")
    said = "Wax coating kept apples firm: firmness fell by 6% in coated apples (p < 0.001)."
    head, row = (
        "Key,Author,Title,Publication Year,Abstract",
        f'L,"Lund, A; Roy, B",Wax,2018,"{said}"',
    )
    listed.write_text(
        f"@misc{{l, author={{Lund, A and Roy, B}}, title={{Wax}}, year=2018, abstract={{{said}}}}}"
        if name.endswith(".bib")
        else f"{head}\n{row}\n"
    )
    result = deepera("check", draft, listed, "--backend", "rules", "--json")
    assert f"as with --bib {listed}" in result.stderr
    [pair] = json.loads(result.stdout)["pairs"]
    assert "Wax coating kept apples firm" in json.dumps(pair)


@pytest.mark.parametrize("text", [None, "", "Wax keeps apples firm.\n"])
def test_a_manuscript_that_cannot_be_checked_is_all_that_is_told(deepera, tmp_path, text):
    draft, listed = tmp_path / "draft.md", tmp_path / "works.csv"
    listed.write_text("Key,Title,Abstract\nL,Wax on apples,Wax kept apples firm.\n")
    if text is not None:
        draft.write_text(text)
    result = deepera("check", draft, listed)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "draft.md" in result.stderr


def test_keys_of_a_manuscript_without_a_list_name_records_of_the_source(deepera, tmp_path):
    draft, records, numbered = (tmp_path / name for name in ("d.md", "r.jsonl", "n.md"))
    draft.write_text("# A\n\nWax keeps apples firm [@lund]. Night frost spoils pears [@v, @zz].\n")
    numbered.write_text("# A\n\nWax keeps apples firm [7].\n")
    records.write_text(
        '{"id": "7", "key": "lund", "title": "Wax on apples", "text": "Wax keeps apples firm."}\n'
        '{"id": "v", "text": "Night frost spoils pears."}\n{"id": "w", "text": "Figs dry."}\n'
    )
    report = json.loads(deepera("check", draft, records, *RULES, "--json").stdout)
    verdicts = {one["key"]: one["verdict"] for one in report["pairs"]}
    assert verdicts == {"lund": "supported", "v": "supported", "zz": "missing"}
    assert report["manuscript"]["uncited"] == []
    assert "2 of 2 references" in deepera("check", draft, records, "--dry-run", *RULES[:2]).stdout
    assert "no references found" in deepera("check", numbered, records, *RULES).stderr


def test_a_list_of_its_own_goes_before_a_source_that_lists_references(deepera, plain, tmp_path):
    listed = tmp_path / "other.bib"
    listed.write_text(
        "@article{other, author={Abe, A}, title={Tea}, year=2018, abstract={Tea is warm.}}\n"
    )
    result = deepera("check", plain, listed, "--backend", "rules", "--json")
    assert "--bib" not in result.stderr
    assert [one["key"] for one in json.loads(result.stdout)["pairs"]] == ["1"]
