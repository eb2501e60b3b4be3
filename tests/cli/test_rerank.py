"""`deepera rerank` on good input."""

import gzip
import json
from pathlib import Path

import pytest

from cli.conftest import PASSAGES, QUESTION, TEA, line

pytestmark = pytest.mark.full


@pytest.fixture
def rerank(deepera):
    def run(source, *args, given=None):
        return deepera("rerank", source, "--backend", TEA, *args, given=given)

    return run


def test_rankings_go_to_the_file_and_the_report_beside_it(rerank, questions, read, tmp_path):
    out = tmp_path / "out.jsonl"
    result = rerank(questions(line("q1"), line("q2")), "-o", out)
    assert result.exit_code == 0
    assert [one["id"] for one in read(out)] == ["q1", "q2"]
    assert [one["id"] for one in read(out)[0]["ranking"]] == ["b", "a", "c"]
    report = json.loads((tmp_path / "out.report.json").read_text(encoding="utf-8"))
    assert report["lines"] == {"read": 2, "written": 2, "bad": 0}
    assert result.stdout == ""
    assert result.stderr.startswith("deepera: 2 lines written, 0 bad; 6 passages, 2 kept")


def test_a_dash_is_stdin_and_stdout(rerank):
    raw = json.dumps(line("q1")).encode()
    result = rerank("-", "-o", "-", given=raw)
    assert json.loads(result.stdout)["id"] == "q1"


def test_stdout_is_the_default(rerank, questions):
    result = rerank(questions(line("q1")))
    assert [json.loads(one)["id"] for one in result.stdout.splitlines()] == ["q1"]


def test_a_report_can_go_elsewhere(rerank, questions, tmp_path):
    path = tmp_path / "report.json"
    rerank(questions(line("q1")), "--report", path)
    assert json.loads(path.read_text(encoding="utf-8"))["end"] == "complete"


def test_json_puts_the_report_on_stdout_beside_a_file(rerank, questions, tmp_path):
    result = rerank(questions(line("q1")), "-o", tmp_path / "out.jsonl", "--json")
    assert json.loads(result.stdout)["lines"]["written"] == 1
    assert result.stderr == ""


def test_json_puts_the_report_on_stderr_beside_stdout(rerank, questions):
    result = rerank(questions(line("q1")), "--json")
    assert json.loads(result.stderr)["lines"]["written"] == 1
    assert json.loads(result.stdout)["id"] == "q1"


def test_quiet_says_nothing(rerank, questions, tmp_path):
    result = rerank(questions(line("q1")), "-o", tmp_path / "out.jsonl", "--quiet")
    assert result.output == ""


def test_settings_reach_the_reranker(rerank, questions):
    args = ("--threshold", "0.3", "--top-n", "1", "--no-summaries")
    ranked = json.loads(rerank(questions(line("q1")), *args).stdout)
    assert ranked["threshold"] == 0.3
    assert [one["kept"] for one in ranked["ranking"]] == [True, False, False]
    assert ranked["ranking"][0]["summary"] == ""


def test_on_empty_and_order_reach_the_reranker(rerank, questions):
    args = ("--threshold", "0.99", "--on-empty", "topn", "--order", "retrieval")
    ranked = json.loads(rerank(questions(line("q1")), *args).stdout)
    assert ranked["outcome"] == "no_evidence"
    assert [one["id"] for one in ranked["ranking"] if one["kept"]] == ["a", "b", "c"]


def test_a_run_whose_questions_are_all_degraded_leaves_code_1(deepera, questions):
    broken = ("--backend", "support.scripted:broken_backend")
    result = deepera("rerank", questions(line("q1"), line("q2")), *broken)
    assert result.exit_code == 1
    assert "evidence for 0 of 2 questions, 2 degraded" in result.stderr


def test_the_commonest_cause_of_failure_is_told_once_even_quietly(deepera, questions):
    broken = ("--backend", "support.scripted:broken_backend")
    result = deepera("rerank", questions(line("q1"), line("q2")), *broken, "--quiet")
    assert result.stderr == (
        "deepera: 6 passages could not be judged: RuntimeError: out of order\n"
    )


def test_a_run_with_some_degraded_questions_leaves_code_0(rerank, questions):
    other = line("q2", passages=[{"id": "x", "text": "Glucose was measured in the morning."}])
    source, backend = questions(line("q1"), other), "support.scripted:cracked_tea_backend"
    result = rerank(source, "--backend", backend, "--max-failed-share", "0.5")
    assert (result.exit_code, "1 degraded" in result.stderr) == (0, True)


def test_a_limit_stops_early(rerank, questions):
    source = questions(*(line(f"q{n}") for n in range(5)))
    assert len(rerank(source, "--limit", "2").stdout.splitlines()) == 2


def test_overwrite_replaces_both_files(rerank, questions, read, tmp_path):
    out = tmp_path / "out.jsonl"
    rerank(questions(line("q1")), "-o", out)
    result = rerank(questions(line("q2")), "-o", out, "--overwrite")
    assert result.exit_code == 0
    assert [one["id"] for one in read(out)] == ["q2"]


def test_two_runs_write_equal_bytes(rerank, questions, tmp_path):
    source = questions(*(line(f"q{n}") for n in range(6)))
    outs = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for out, at_once in zip(outs, ("1", "16"), strict=True):
        rerank(source, "-o", out, "--max-concurrency", at_once)
    assert outs[0].read_bytes() == outs[1].read_bytes()


def test_a_dry_run_tells_the_cost_and_writes_nothing(deepera, questions, tmp_path):
    out = tmp_path / "out.jsonl"
    args = ("-o", out, "--model", "openai:any", "--top-n", "2", "--dry-run")
    result = deepera("rerank", questions(line("q1")), *args)
    assert result.exit_code == 0
    assert "total: 6 calls" in result.stdout
    assert "estimate" in result.stdout
    assert not out.exists()


@pytest.mark.parametrize("name", ["local", "rules", "support.own_judges:overlap_backend"])
def test_a_dry_run_of_a_judge_that_asks_no_model_says_so(deepera, questions, name):
    told = deepera("rerank", questions(line("q1")), "--backend", name, "--dry-run").stdout
    assert "total: 0 calls, about 0 tokens in and 0 out" in told
    assert "backend makes no calls" in told


def test_a_dry_run_of_a_judge_that_does_not_say_counts_its_calls_and_says_so(deepera, questions):
    judge = ("--backend", "support.own_judges:silent_backend")
    told = deepera("rerank", questions(line("q1")), *judge, "--dry-run").stdout
    assert "total: 1 call, about 0 tokens in" in told
    assert "calls only: roles of the silent backend that do not say what they cost" in told


def test_a_dry_run_speaks_json(deepera, questions):
    args = ("--model", "openai:any", "--dry-run", "--json")
    plain = json.loads(deepera("rerank", questions(line("q1")), *args).stdout)
    assert plain["usage"]["calls"] == 7
    assert plain["usage"]["stages"]["score"]["calls"] == 3


@pytest.mark.parametrize(
    ("options", "stages"),
    [
        (("--mode", "separate"), {"intent": 1, "score": 3, "summarize": 3}),
        (("--mode", "fused"), {"intent": 1, "score": 3}),
        (("--mode", "grouped"), {"intent": 1, "score": 2}),
        (("--mode", "grouped", "--group-size", "3"), {"intent": 1, "score": 1}),
    ],
)
def test_a_dry_run_counts_the_calls_of_a_mode(deepera, questions, options, stages):
    args = ("--model", "openai:any", "--dry-run", "--json", *options)
    plain = json.loads(deepera("rerank", questions(line("q1")), *args).stdout)
    assert {name: used["calls"] for name, used in plain["usage"]["stages"].items()} == stages


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "openai:any", "--mode", "fused", "--group-size", "2"), "not with 'fused'"),
        (("--backend", "local", "--mode", "fused"), "--mode goes with --backend llm"),
        (("--backend", "local", "--group-size", "2"), "--group-size goes with --backend llm"),
    ],
)
def test_a_mode_that_makes_no_sense_is_refused(deepera, questions, options, message):
    result = deepera("rerank", questions(line("q1")), *options, "--dry-run")
    assert (result.exit_code, message in result.stderr) == (2, True)


def test_a_dry_run_of_the_local_backend_takes_no_calls(deepera, questions):
    plain = json.loads(deepera("rerank", questions(line("q1"), b"{"), "--dry-run", "--json").stdout)
    assert plain["usage"]["calls"] == 0
    assert plain["lines"] == {"read": 2, "written": 1, "bad": 1}


def test_the_local_backend_ranks_every_passage(deepera, questions):
    ranked = json.loads(deepera("rerank", questions(line("q1"))).stdout)
    assert sorted(one["id"] for one in ranked["ranking"]) == ["a", "b", "c"]
    assert ranked["usage"] == {"calls": 0, "input_tokens": 0, "output_tokens": 0}


def test_a_request_in_the_form_of_cohere_is_reranked_and_resumed_from_a_compressed_file(
    rerank, tmp_path, read
):
    requests = [
        {"query": QUESTION, "documents": [one["text"] for one in PASSAGES]} for _ in range(2)
    ]
    source, out = tmp_path / "requests.json.gz", tmp_path / "out.jsonl"
    source.write_bytes(gzip.compress(json.dumps(requests[:1]).encode()))
    assert rerank(source, "-o", out).exit_code == 0
    source.write_bytes(gzip.compress(json.dumps(requests).encode()))
    result = rerank(source, "-o", out, "--resume")
    assert "2 lines written (1 of them earlier)" in result.stderr
    assert [[each["id"] for each in one["ranking"]] for one in read(out)] == [["2", "1", "3"]] * 2


@pytest.fixture
def run_files(tmp_path):
    """A TREC run, its queries and its corpus; and the arguments that name them."""
    rows = [f"q1 Q0 {one['id']} {n} {9 - n} bm25\n" for n, one in enumerate(PASSAGES, start=1)]
    (tmp_path / "bm25.trec").write_text("".join(rows))
    (tmp_path / "queries.tsv").write_text(f"q1\t{QUESTION}\n")
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, PASSAGES)))
    args = ("--queries", tmp_path / "queries.tsv", "--corpus", tmp_path / "corpus.jsonl")
    return (tmp_path / "bm25.trec", *args)


def test_a_trec_run_is_reranked_into_a_trec_run(rerank, run_files, tmp_path):
    run = tmp_path / "out.trec"
    result = rerank(*run_files, "-o", tmp_path / "out.jsonl", "--trec", run)
    assert result.exit_code == 0, result.output
    assert [one.split()[:4] for one in run.read_text().splitlines()] == [
        ["q1", "Q0", "b", "1"],
        ["q1", "Q0", "a", "2"],
        ["q1", "Q0", "c", "3"],
    ]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--queries", "q.tsv"), "--queries and --corpus go together"),
        (("--corpus", "c.jsonl"), "--queries and --corpus go together"),
        (("--trec", "out.trec"), "--trec needs a file for --out, got '-'"),
        (("-o", "x.jsonl", "--trec", "x.jsonl"), "cannot be two of rankings, report"),
    ],
)
def test_options_for_runs_that_cannot_be_are_one_line(rerank, questions, args, problem):
    result = rerank(questions(line()), *args)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_run_that_is_there_is_not_replaced(rerank, run_files, tmp_path):
    (tmp_path / "out.trec").write_text("precious")
    result = rerank(*run_files, "-o", tmp_path / "out.jsonl", "--trec", tmp_path / "out.trec")
    assert result.exit_code == 2
    assert (tmp_path / "out.trec").read_text() == "precious"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_is_told_with_the_file(deepera, questions):
    result = deepera("rerank", questions(line()), "-o", "/dev/full", "--backend", TEA)
    assert result.exit_code == 1
    assert "deepera: /dev/full: No space left on device" in result.stderr
