"""`deepera rerank --stop-after`: what is written, reported, estimated and refused."""

import json

import pytest

from cli.conftest import PASSAGES, TEA, line

FIRST = [PASSAGES[1], PASSAGES[0], PASSAGES[2]]  # the evidence, 0.93, comes first


@pytest.fixture
def rerank(deepera, questions, tmp_path):
    source = questions(line("q1", passages=FIRST), line("q2"))

    def run(*args):
        return deepera("rerank", source, "-o", tmp_path / "out.jsonl", *args)

    return run


def test_what_was_not_needed_is_written_counted_and_told(rerank, read, tmp_path):
    ended = rerank("--backend", TEA, "--stop-after", "1", "--round-size", "1")
    first, second = read(tmp_path / "out.jsonl")
    assert [one["status"] for one in first["ranking"]] == ["scored", "not_needed", "not_needed"]
    assert first["ranking"][1]["reason"] == "skipped: 1 passage already scored >= 0.9"
    assert [one["id"] for one in second["ranking"]] == ["b", "a", "c"]
    report = json.loads((tmp_path / "out.report.json").read_text())
    assert report["passages"]["statuses"] == {"not_needed": 3, "scored": 3}
    assert (report["passages"]["failed"], report["outcomes"]) == (0, {"ok": 2})
    assert (
        "6 passages, 2 kept, 0 failed, 3 not needed; evidence for 2 of 2 questions" in ended.stderr
    )
    refused = rerank("--backend", TEA, "--stop-after", "2", "--round-size", "1", "--resume")
    assert refused.exit_code == 2
    assert "settings.stop_after was 1 and is 2" in refused.stderr


def test_a_dry_run_counts_all_and_says_that_it_may_be_less(rerank):
    args = ("--model", "openai:any", "--dry-run", "--stop-after", "1", "--round-size", "1")
    told = rerank(*args).stdout
    assert "score: 6 calls" in told
    assert "with --stop-after fewer passages may be asked about" in told


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (("--stop-after", "0"), "stop_after must be a whole number >= 1, got 0"),
        (("--round-size", "-1"), "round_size must be a whole number >= 1, got -1"),
        (("--stop-after", "1", "--threshold", "gap"), "got the rule 'gap'"),
    ],
)
def test_what_makes_no_sense_is_named(rerank, args, named):
    ended = rerank(*args)
    assert ended.exit_code == 2
    assert named in ended.stderr
