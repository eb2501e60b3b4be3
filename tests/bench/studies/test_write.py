"""Markdown, CSV, figures and manifest of a study."""

import csv
import json
from io import StringIO
from pathlib import Path

import pytest

from bench.study_lakes import Judge, fixed, lab, lakes
from deepera_graph.lab.rankers.base import FirstStage
from deepera_graph.lab.studies.experiment import About, StudyResult
from deepera_graph.lab.studies.run import STUDIES, manifest, run_studies, write_study
from deepera_graph.lab.tables import (
    Column,
    Grid,
    MetricEstimate,
    format_cell,
    format_csv,
    format_table,
)

NAN = float("nan")
GRID = Grid(
    name="lakes",
    title="Lakes & ponds",
    columns=(Column("data set"), Column("HitRate@1", "percent"), Column("n", "count")),
    rows=(
        ("pike|perch", MetricEstimate(0.5, 0.25, 0.75, 0.01), 3),
        ("a_b {x} \\d", MetricEstimate(NAN, NAN, NAN, 0), None),
    ),
    note="50 % of them.",
)


@pytest.mark.parametrize(
    ("cell", "unit", "text"),
    [
        pytest.param(
            MetricEstimate(0.5, 0.4, 0.6, 0), "percent", "50.0 [40.0, 60.0]", id="interval"
        ),
        pytest.param(MetricEstimate(2, 1, 3, 0.5), "number", "2 ± 0.5 [1, 3]", id="spread"),
        pytest.param(MetricEstimate(0.25, NAN, NAN, 0), "percent", "25.0", id="no-interval"),
        pytest.param(
            MetricEstimate(2, 1.5, 3, 0), "count", "2.00 [1.50, 3.00]", id="mean-of-counts"
        ),
        pytest.param(-0.0001, "percent", "0.0", id="no-minus-zero"),
        pytest.param(12345, "count", "12,345", id="count"),
        pytest.param(None, "percent", "–", id="nothing"),
        pytest.param(NAN, "seconds", "–", id="not-a-number"),
        pytest.param(8e-6, "seconds", "<0.001", id="no-time"),
        pytest.param(0.0, "seconds", "0", id="no-time-at-all"),
        pytest.param("text", "text", "text", id="text"),
    ],
)
def test_a_cell_as_people_read_it(cell, unit, text):
    assert format_cell(cell, unit) == text


def test_markdown_escapes_what_would_break_a_table():
    text = format_table(GRID)
    assert text.startswith("| data set | HitRate@1 (%) | n |\n| --- | ---: | ---: |\n")
    assert "| pike\\|perch | 50.0 ± 1.0 [25.0, 75.0] | 3 |" in text
    assert text.endswith("| – | – |")


def test_csv_holds_fractions_and_intervals_in_columns_of_their_own():
    head, first, second = csv.reader(StringIO(format_csv(GRID)))
    assert head == [
        "data set", "HitRate@1", "HitRate@1 low", "HitRate@1 high", "HitRate@1 std", "n",
    ]  # fmt: skip
    assert first == ["pike|perch", "0.5", "0.25", "0.75", "0.01", "3"]
    assert second == ["a_b {x} \\d", "", "", "", "0", ""]


@pytest.mark.full
def test_all_studies_write_the_same_bytes_again(tmp_path):
    data = [lakes(2, setting="base"), lakes(3, distractors=(3, 5))]

    def run(folder):
        judge = Judge(fixed(0.6, 0.85, 0.95, 0.1, 0.75))
        made = lab([FirstStage(), judge], data, keep=tmp_path / "kept", shares=(1.0,))
        names = ("main", "threshold", "embeddings", "stability", "drift", "cost")
        chosen = [STUDIES[name] for name in names]
        run_studies(chosen, made, lambda one: tmp_path / folder / one.name)
        files = sorted((tmp_path / folder).rglob("*.*"))
        return judge, {one.relative_to(tmp_path / folder): one.read_bytes() for one in files}

    _, first = run("one")
    again, second = run("two")
    assert again.asked == []
    assert first == second
    names = {path.as_posix() for path in first}
    assert {"threshold/threshold.md", "threshold/threshold-1.svg", "threshold/threshold-1.png",
            "main/change.csv", "main/main.csv", "cost/manifest.json"} <= names  # fmt: skip


def test_the_manifest_says_what_it_depended_on_and_not_when_or_where(tmp_path):
    judge = Judge(fixed(0.6, 0.85, 0.95, 0.1, 0.75))
    plain = manifest(lab([FirstStage(), judge], [lakes(2)], keep=tmp_path))
    text = json.dumps(plain)
    assert str(tmp_path) not in text
    assert plain["datasets"]["ssli"]["questions"] == 2
    assert plain["rankers"]["first stage"] == {"kind": "first stage"}
    assert plain["setup"]["threshold"] is None
    assert plain["setup"]["thresholds_kept_from"] == {"judge": 0.8}


def test_one_of_several_that_needs_a_filter_says_so():
    chosen = [STUDIES["threshold"], STUDIES["cost"]]
    (_, left_out), (_, done) = run_studies(chosen, lab([FirstStage()], [lakes(2)]))
    assert left_out.findings[0].startswith("Left out: this experiment needs a ranker that filters")
    assert done.grids[0].rows


@pytest.mark.full
def test_files_of_the_study_before_do_not_stay_among_those_of_this_one(tmp_path):
    runner = lab([FirstStage()], [lakes(2)])
    (tmp_path / "notes.txt").write_text("of the user")
    run_studies([STUDIES["cost"]], runner, lambda one: tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    run_studies([STUDIES["main"]], runner, lambda one: tmp_path)
    after = {path.name for path in tmp_path.iterdir()}
    assert {"cost.md", "notes.txt"} <= before
    named = set(json.loads((tmp_path / "manifest.json").read_text())["files"])
    assert after == {*named, "manifest.json", "notes.txt"}
    assert "main.md" in named


@pytest.mark.parametrize("named", [["../mine.txt"], ["manifest.json"], "notes", [7], {}])
def test_a_manifest_of_others_removes_nothing(tmp_path, named):
    folder = tmp_path / "out"
    folder.mkdir()
    (tmp_path / "mine.txt").write_text("mine")
    (folder / "manifest.json").write_text(json.dumps({"files": named}))
    run_studies([STUDIES["cost"]], lab([FirstStage()], [lakes(2)]), lambda one: folder)
    assert (tmp_path / "mine.txt").exists()
    assert (folder / "manifest.json").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no device that is full")
def test_a_full_disk_is_told_with_the_table_that_has_no_room(tmp_path):
    path = tmp_path / "mine.md"
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as told:
        write_study(About("mine", "Mine", "Nothing."), StudyResult(grids=(GRID,)), {}, tmp_path)
    assert told.value.filename == str(path)
