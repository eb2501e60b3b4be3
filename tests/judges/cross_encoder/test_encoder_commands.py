"""The command line and the benchmark with a cross-encoder."""

import json

import pytest
from typer.testing import CliRunner

from bench.test_rankers import order, shown
from deepera_graph.cli.main import app
from deepera_graph.lab.rankers.named import asks_a_model, make_ranker
from support.tiny_encoder import TEXTS


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "in.jsonl"
    passages = [{"id": str(n), "text": text} for n, text in enumerate(TEXTS)]
    line = {"id": "q1", "question": "Do wet summers make copper green?", "passages": passages}
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    return path


def rerank(*args):
    return CliRunner().invoke(app, ["rerank", *map(str, args)])


def test_rerank_judges_with_the_encoder_of_a_folder(questions, folder, twin):
    result = rerank(questions, "--backend", f"encoder:{folder}", "--threshold", "0")
    [line] = map(json.loads, result.stdout.splitlines())
    assert result.exit_code == 0
    assert len(line["ranking"]) == len(TEXTS)
    assert all(one["reason"].startswith("cross-encoder tiny, logit") for one in line["ranking"])
    assert line["usage"]["calls"] == 0


@pytest.mark.full
def test_equal_runs_give_equal_bytes(questions, folder, twin):
    backend = f"encoder:{folder}"
    runs = {rerank(questions, "--backend", backend).stdout for _ in range(3)}
    assert len(runs) == 1


@pytest.mark.full
def test_a_cache_is_used_if_one_is_named(questions, folder, twin, tmp_path):
    options = (questions, "--backend", f"encoder:{folder}", "--cache", tmp_path / "cache")
    first, second = rerank(*options), rerank(*options)
    assert first.exit_code == second.exit_code == 0
    assert first.stdout == second.stdout


def test_a_dry_run_says_that_there_are_no_calls(questions, folder, twin):
    result = rerank(questions, "--backend", f"encoder:{folder}", "--dry-run")
    assert result.exit_code == 0
    assert "the encoder backend makes no calls" in result.stdout


@pytest.mark.parametrize(
    ("backend", "named"),
    [
        ("encoder:./gone", "'./gone' does not exist"),
        ("encoder:", "did you mean 'encoder:MODEL'"),
        ("encoder", "did you mean 'encoder:MODEL'"),
        ("encoder:gone.onnx", "'gone.onnx' does not exist"),
    ],
)
def test_a_model_that_is_not_there_is_a_usage_error_of_one_line(questions, backend, named):
    result = rerank(questions, "--backend", backend)
    assert result.exit_code == 2
    assert named in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_benchmark_ranks_with_it(folder, twin):
    name = f"deepera:encoder:{folder}"
    assert not asks_a_model(name)
    ranking = make_ranker(name).rank("Do wet summers make copper green?", shown(TEXTS))
    expected = sorted(
        range(len(TEXTS)),
        key=lambda n: -twin.logit(("Do wet summers make copper green?", TEXTS[n])),
    )
    assert order(ranking) == [str(n + 1) for n in expected]
