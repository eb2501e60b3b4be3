"""`deepera-lab bench quest audit`."""

import json
from pathlib import Path
from socket import create_server

import pytest

from deepera_graph.lab.quest.audit.drawing import Audit, draw_audit
from support.quest_build import fill_sheet, published_labels, write_build

pytestmark = pytest.mark.full

DOCS = Path(__file__).parents[2] / "docs" / "quest-audit.md"
COMMAND = ("bench", "quest", "audit")


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return write_build(tmp_path_factory.mktemp("quest") / "quest", (2110, 640, 310))


@pytest.fixture(scope="module")
def drawn(build):
    return draw_audit(build, build.parent / "drawn")


@pytest.fixture(scope="module")
def sheet(drawn):
    path = drawn.folder.parent / "anna.csv"
    path.write_bytes(fill_sheet(drawn, published_labels(drawn)))
    return path


def test_pairs_are_drawn_and_the_next_step_is_told(deepera_lab, build, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = deepera_lab(*COMMAND, "draw", build, "--out", "audit")
    assert result.exit_code == 0, result.output
    assert result.stdout in DOCS.read_text(encoding="utf-8")
    again = deepera_lab(*COMMAND, "draw", build, "--out", "audit")
    assert (again.exit_code, "give --overwrite" in again.stderr) == (2, True)
    made = deepera_lab(
        *COMMAND, "draw", build, "-o", "audit", "--overwrite", "--per-grade", "3", "--json"
    )
    assert json.loads(made.stdout)["pairs"] == 9


def test_the_report_has_the_published_figures_in_text_json_and_a_page(
    deepera_lab, drawn, sheet, tmp_path
):
    args = (*COMMAND, "report", drawn.folder, "--sheets", f"anna={sheet}")
    text = deepera_lab(*args)
    assert text.exit_code == 0, text.output
    shown = DOCS.read_text(encoding="utf-8")
    for name in ("Confusion", "Agreement with the majority", "Precision of grade 2"):
        table = text.stdout[text.stdout.index(f"## {name}") :].split("\n\n")[2]
        assert table in shown
    assert "The first 10 of 71; --json and --out have all." in text.stdout
    result = deepera_lab(*args, "--out", tmp_path / "out", "--resamples", "100", "--json")
    tables = {one["name"]: one["rows"] for one in json.loads(result.stdout)["tables"]}
    found = {name: round(one["mean"], 5) for name, one in tables["agreement"]}
    assert found == {
        "exact": 0.84222, "Pearson": 0.86686, "Spearman": 0.86669, "unweighted kappa": 0.76333,
        "linear kappa": 0.81469, "quadratic kappa": 0.86622,
    }  # fmt: skip
    assert [round(row[2]["mean"], 5) for row in tables["precision"]] == [0.86, 0.98667]
    assert json.loads((tmp_path / "out" / "audit.json").read_text()) == json.loads(result.stdout)
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "379 of 450 pairs have the grade" in page
    assert (tmp_path / "out" / "disagreements.csv").read_text("utf-8").count("\n") == 72
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))
    assert manifest["raters"] == {"anna": 450}
    again = deepera_lab(*args, "--out", tmp_path / "out")
    assert (again.exit_code, "give --overwrite" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("draw", "nowhere", "-o", "audit"), "no such folder: 'nowhere'"),
        (("draw", ".", "-o", "audit"), "it has no judgements.jsonl"),
        (("draw", ".", "-o", "audit", "--per-grade", "0"), "--per-grade"),
        (("label", "nowhere"), "has no audit.json; `deepera-lab bench quest audit draw` makes one"),
        (("label", "DRAWN", "--rater", "a/b"), "the name of a rater must be"),
        (("report", "DRAWN"), "has no labels yet"),
        (("report", "DRAWN", "--sheets", "anna"), "--sheets must be NAME=FILE"),
        (("report", "DRAWN", "--sheets", "anna=gone.csv"), "no such file: 'gone.csv'"),
        (("report", "DRAWN", "--sheets", "anna=SHEET", "--out", "DRAWN"), "another folder"),
    ],
)
def test_what_cannot_work_is_one_line(
    deepera_lab, drawn, sheet, tmp_path, monkeypatch, args, message
):
    monkeypatch.chdir(tmp_path)
    places = {"DRAWN": str(drawn.folder), "SHEET": str(sheet)}
    for name, place in places.items():
        args = [one.replace(name, place) for one in args]
    result = deepera_lab(*COMMAND, *args)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert Audit.open(drawn.folder).pairs == drawn.pairs


def test_a_port_that_cannot_be_listened_at_is_named(deepera_lab, drawn):
    with create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = deepera_lab(*COMMAND, "label", drawn.folder, "--port", port)
    assert result.exit_code == 2
    assert f"cannot listen at 127.0.0.1:{port}: " in result.stderr
    result = deepera_lab(*COMMAND, "label", drawn.folder, "--port", 99_999)
    assert "port must be from 0 to 65535, got 99999" in result.stderr
