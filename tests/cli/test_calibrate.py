"""`deepera calibrate`, and the thresholds its curves give."""

import json
import subprocess
import sys

import pytest

from cli.conftest import TEA, line
from deepera_graph.packages import install_command

pytestmark = pytest.mark.full

QUICK = ("--resamples", "20")


@pytest.fixture
def labelled(questions):
    """30 questions with a passage of each label; they hold nothing a judge could see it by."""
    lines = [
        line(
            f"q{number}",
            passages=[
                {"id": "a", "text": f"Green tea lowered fasting glucose by {number}%.", "label": 1},
                {"id": "b", "text": "Effects of green tea are debated.", "label": 0},
            ],
        )
        for number in range(30)
    ]
    return questions(*lines, name="labelled.jsonl")


@pytest.fixture
def curve(deepera, labelled, tmp_path):
    out = tmp_path / "curve.json"
    result = deepera("calibrate", labelled, "-o", out, "--backend", TEA, *QUICK)
    assert result.exit_code == 0, result.output
    assert "Brier score" in result.stdout
    return out


def test_a_curve_becomes_the_threshold_of_rerank(deepera, questions, curve):
    args = ("rerank", questions(line()), "--backend", TEA, "--curve", curve)
    low, high = (
        json.loads(deepera(*args, "--probability", p).stdout)["threshold"] for p in ("0.1", "0.9")
    )
    assert 0.43 < low < high <= 0.93


def test_a_curve_becomes_the_threshold_of_ask(deepera, questions, curve, monkeypatch):
    monkeypatch.setenv("DEEPERA_CURVE", str(curve))
    source = questions({"id": "x", "text": "Tea lowered fasting glucose."}, name="papers.jsonl")
    args = ("ask", "Does tea lower glucose?", source, "--backend", TEA)
    result = json.loads(deepera(*args, "--json").stdout)
    assert 0.43 < result["threshold"] <= 0.93
    assert len(result["ranking"]) == 1


def test_a_curve_of_another_judge_is_used_with_a_warning(deepera, questions, curve, caplog):
    result = deepera("rerank", questions(line()), "--curve", curve)
    assert result.exit_code == 0
    assert "calibrated for another judge" in caplog.text


def test_quiet_says_nothing_where_the_curve_goes_into_a_file(deepera, labelled, tmp_path):
    args = ("--backend", TEA, "--method", "platt", *QUICK, "-q")
    assert deepera("calibrate", labelled, "-o", tmp_path / "c.json", *args).output == ""
    assert "Brier score" in deepera("calibrate", labelled, *args).stdout
    assert json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))["method"] == "platt"


def test_a_curve_is_not_replaced_unasked(deepera, labelled, curve):
    args = ("calibrate", labelled, "-o", curve, "--backend", TEA, *QUICK)
    before = curve.read_bytes()
    result = deepera(*args)
    assert result.exit_code == 2
    assert "exists; give --overwrite" in result.stderr
    assert curve.read_bytes() == before
    assert deepera(*args, "--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("package", "command", "extra"),
    [
        ("sklearn", ["calibrate"], "calibrate"),
        ("numpy", ["calibrate"], "calibrate"),
        ("bm25s", ["bench", "table"], "bench"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(labelled, environment, package, command, extra):
    program = "lab.cli" if command[0] == "bench" else "cli"
    code = f"import sys; sys.modules[{package!r}] = None; "
    code += f"from deepera_graph.{program}.main import run"
    result = subprocess.run(
        [sys.executable, "-c", f"{code}; run()", *command, labelled],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert install_command(extra) in result.stderr


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--precision", "2"), "precision must be in [0, 1], got 2.0"),
        (("--resamples", "0"), "n_resamples must be >= 1, got 0"),
        (("--max-concurrency", "0"), "max_concurrency must be a whole number >= 1, got 0"),
    ],
)
def test_options_that_cannot_be_are_one_line(deepera, labelled, args, problem):
    result = deepera("calibrate", labelled, *args)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert problem in result.stderr


def test_a_file_that_is_not_there_is_one_line(deepera, tmp_path):
    result = deepera("calibrate", tmp_path / "none.jsonl")
    assert result.exit_code == 2
    assert "no such file" in result.stderr


def test_a_folder_is_no_file_of_questions(deepera, tmp_path):
    result = deepera("calibrate", tmp_path, "-o", tmp_path / "curve.json")
    assert result.exit_code == 2
    assert "is a folder; name a file of labelled questions" in result.stderr


def test_unlabelled_lines_are_named(deepera, questions):
    result = deepera("calibrate", questions(line()))
    assert result.exit_code == 2
    assert "line 1" in result.stderr


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--probability", "0.8"), "--probability goes with --curve"),
        (("--curve", "none.json"), "'none.json' cannot be read"),
        (("--curve", "CURVE", "--threshold", "0.8"), "give --threshold or --curve, not both"),
        (("--curve", "CURVE", "--probability", "8"), "probability must be in [0, 1], got 8.0"),
    ],
)
def test_a_curve_that_cannot_be_used_is_one_line(deepera, questions, curve, args, problem):
    given = [curve if one == "CURVE" else one for one in args]
    result = deepera("rerank", questions(line()), "--backend", TEA, *given)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert problem in result.stderr
