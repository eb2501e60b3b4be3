"""`deepera-lab study bioasq`."""

import csv
import json
import signal
import time

import pytest

from support.bioasq import CORPUS, plant_questions, write_set
from support.openai_server import ChatServer

pytestmark = pytest.mark.full

QUICK = ("--resamples", "20", "--quiet")


@pytest.fixture
def golden(tmp_path):
    return write_set(tmp_path / "golden.json", *plant_questions())


@pytest.fixture
def plants(deepera, tmp_path):
    """Options that name a collection of the plants."""
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(one) + "\n" for one in CORPUS), encoding="utf-8")
    where = ("--library", "plants", "--path", tmp_path / "store")
    result = deepera("index", corpus, *where, "-q")
    assert result.exit_code == 0, result.output
    return where


def write_run(path, order):
    lines = [
        {"id": one["id"], "ranked": [[pmid, 1 / rank] for rank, pmid in enumerate(order, start=1)]}
        for one in plant_questions()
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    return path


def test_depth_compares_the_collection_with_other_runs(deepera_lab, golden, plants, tmp_path):
    api = write_run(tmp_path / "api.jsonl", ["10", "20", "30"])
    result = deepera_lab(
        "study", "bioasq", "depth", golden, *plants, "--depths", "1,3", "--runs", f"api={api}",
        *QUICK, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    table = json.loads(result.stdout)["tables"][0]
    rows = {row[0]: row[1:] for row in table["rows"]}
    assert list(rows) == ["bm25", "api"]
    assert rows["bm25"][0]["mean"] == 1
    assert rows["api"][1]["mean"] == 0.5
    assert rows["api"][-1] is None  # nobody timed it


def test_rerankers_are_written_with_a_manifest(deepera_lab, golden, plants, tmp_path):
    out = tmp_path / "out"
    args = ("study", "bioasq", "rerankers", golden, *plants, "--rerankers", "rules", "--out", out)
    result = deepera_lab(*args, "--resamples", "20")
    assert result.exit_code == 0, result.output
    assert "# Rerankers" in result.stdout
    assert "| rules |" in result.stdout
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["settings"]["rerankers"] == "rules"
    assert manifest["golden"]["file"] == "golden.json"
    assert manifest["collection"] == {"passages": 12, "mode": "sparse", "embeddings": None}
    made = ("--runs", f"first={out / 'first-stage.jsonl'},rules={out / 'rules.jsonl'}")
    joined = deepera_lab("study", "bioasq", "ensembles", golden, *made, "--resamples", "20")
    assert "| nominated 6 + 4 |" in joined.stdout
    assert deepera_lab(*args, *QUICK).exit_code == 2  # it is not overwritten


def test_two_runs_are_joined_without_a_collection(deepera_lab, golden, tmp_path):
    one = write_run(tmp_path / "one.jsonl", ["10", "20", "30"])
    other = write_run(tmp_path / "other.jsonl", ["40", "50", "60"])
    out = tmp_path / "out"
    result = deepera_lab(
        "study", "bioasq", "ensembles", golden, "--runs", f"one={one},other={other}",
        "--out", out, "--resamples", "20",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "| nominated 6 + 4 |" in result.stdout
    assert {"weights-rank.png", "weights-rank.svg", "weights-rank.csv"} <= {
        one.name for one in out.iterdir()
    }


def test_a_chat_model_sorts_and_answers_in_styles(deepera_lab, golden, plants):
    def answer(request):
        if "order" in json.dumps(request.body):
            return {"order": [1]}
        return {"answer": "yes", "names": ["moss"], "text": "The moss held water."}

    with ChatServer(answer) as server:
        model = ("--model", "any", "--base-url", server.base_url, "--cache", "off")
        sorted_ = deepera_lab(
            "study", "bioasq", "rerankers", golden, *plants, "--rerankers", "rules", *model, *QUICK,
            "--json",
        )  # fmt: skip
        styles = deepera_lab(
            "study", "bioasq", "styles", golden, "--styles", "1,3", "--per-type", "1", *model,
            *QUICK, "--json",
        )  # fmt: skip
    assert sorted_.exit_code == styles.exit_code == 0, sorted_.output + styles.output
    names = [row[0] for row in json.loads(sorted_.stdout)["tables"][0]["rows"]]
    assert names == ["first stage", "rules", "rules, sorted by any"]
    names = [row[0] for row in json.loads(styles.stdout)["tables"][0]["rows"]]
    assert names == ["extractive", "style 1", "style 3"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("depth",), "give --library NAME, or --runs files of runs"),
        (("depth", "--runs", "api"), "--runs must be NAME=FILE"),
        (("styles", "--styles", "1"), "--styles and --examples go with --model"),
        (("styles", "--shots", "1"), "--shots needs --examples"),
        (("speed",), "'speed'"),
        (("depth", "--runs", "a=b", "--resume"), "--resume goes with --out"),
        (("depth", "--resume", "--overwrite"), "give --resume or --overwrite, not both"),
        (("styles", "--model", "m", "--examples", "none.json"), "no such file: 'none.json'"),
    ],
)
def test_what_cannot_work_is_a_usage_error(deepera_lab, golden, args, message):
    result = deepera_lab("study", "bioasq", args[0], golden, *args[1:], *QUICK)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_named_before_the_work(
    deepera_lab, golden, plants, tmp_path
):
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "results"
    result = deepera_lab("study", "bioasq", "rerankers", golden, *plants, *QUICK, "--out", out)
    assert result.exit_code == 2
    assert f"--out must be a folder that can be written, got '{out}'" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_experiment_goes_on_with_what_is_done(start, golden, tmp_path, signal_):
    out = tmp_path / "out"
    answers = {"answer": "yes", "names": ["moss"], "text": "The moss held water."}
    with ChatServer(lambda request: answers, latency=0.3) as server:
        args = (
            "study", "bioasq", "styles", golden, "--styles", "1,3", "--per-type", "2", "--out", out,
            "--model", "any", "--base-url", server.base_url, "--cache", "off", *QUICK,
            "--max-concurrency", "1",
        )  # fmt: skip
        process = start(*args)
        kept = out / "style-1.journal.jsonl"
        deadline = time.monotonic() + 60
        while not (kept.exists() and len(kept.read_bytes().splitlines()) > 1):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal_)
        _, err = process.communicate(timeout=30)
        n_before = server.calls
        if signal_ == signal.SIGINT:
            assert process.returncode == 130
            assert f"interrupted; what is done is kept in '{out}'" in err.decode()
            assert "--resume" in err.decode()
        again = start(*args, "--resume")
        assert again.wait(timeout=120) == 0, again.stderr.read().decode()
        n_all = server.calls
        whole = start(*(tmp_path / "whole" if one == out else one for one in args))
        assert whole.wait(timeout=120) == 0
        n_whole = server.calls - n_all
    assert n_before < n_whole <= n_all <= n_whole + 2
    tables = [
        [row[:7] for row in csv.reader((folder / "styles.csv").read_text("utf-8").splitlines())]
        for folder in (out, tmp_path / "whole")
    ]
    assert tables[0] == tables[1]
