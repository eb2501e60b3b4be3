"""Limits of `deepera rerank`: one budget for the whole file, and nothing lost."""

import json
import re
import time

import pytest

from cli.conftest import CALLS, PASSAGES, QUESTION, TEA, line
from support.faults import EVERY
from support.faulty_model import FaultyModel, Plan, question
from support.openai_server import ChatServer

pytestmark = pytest.mark.full

N_LINES = 6
TOKENS = ("input_tokens", "output_tokens")
LIMITS = {
    "calls": (("--max-calls", "9"), "budget reached: 9 calls"),
    "tokens": (("--max-tokens", "500"), "budget reached: 500 tokens"),
    "money": (
        ("--max-cost", "5", "--input-price", "10000", "--output-price", "10000"),
        "budget reached: cost 5.00",
    ),
}


@pytest.fixture
def rerank(deepera, questions, read, server, tmp_path):
    source = questions(*(line(f"q{n}", question=f"{n}: does tea help?") for n in range(N_LINES)))

    def run(*args, name="out.jsonl"):
        result = deepera(
            "rerank", source, "-o", tmp_path / name, "--model", "any",
            "--base-url", server.base_url, *args,
        )  # fmt: skip
        lines = read(tmp_path / name)
        is_whole = all(one["outcome"] == "ok" for one in lines)
        assert result.exit_code == (0 if is_whole else 1), result.output
        return result, lines

    return run


def statuses(lines):
    return [ranked["status"] for one in lines for ranked in one["ranking"]]


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize("max_calls", [1, 7])
def test_calls_never_exceed_the_limit(rerank, server, max_calls, at_once):
    rerank("--max-calls", max_calls, "--max-concurrency", at_once)
    assert server.calls == max_calls


def test_all_lines_are_written_with_every_passage(rerank, tmp_path):
    result, lines = rerank("--max-calls", CALLS, "--max-concurrency", "1")
    assert [one["id"] for one in lines] == [f"q{n}" for n in range(N_LINES)]
    assert len(statuses(lines)) == N_LINES * len(PASSAGES)
    assert lines[0]["outcome"] == "ok"
    assert {one["outcome"] for one in lines[1:]} == {"budget_stop"}
    assert set(statuses(lines[1:])) == {"skipped_budget"}
    assert all(one["score"] is None for one in lines[1]["ranking"])
    assert f"{N_LINES - 1} budget_stop" in result.stderr
    report = json.loads((tmp_path / "out.report.json").read_text(encoding="utf-8"))
    assert report["end"] == "complete"
    assert report["passages"]["failures_by_cause"] == {f"budget reached: {CALLS} calls": 15}


@pytest.mark.parametrize(("max_calls", "code"), [(CALLS - 2, 1), (CALLS, 0)])
def test_a_question_that_a_budget_stopped_ends_as_a_file_does(
    deepera, questions, server, max_calls, code
):
    args = ("--model", "any", "--base-url", server.base_url)
    source = questions(*PASSAGES)
    result = deepera("ask", QUESTION, source, *args, "--max-calls", max_calls, "--json")
    assert result.exit_code == code, result.output
    assert json.loads(result.stdout)["outcome"] == ("budget_stop" if code else "ok")


def test_what_is_missing_is_paid_for_in_the_next_run(rerank, server):
    rerank("--max-calls", "7")
    _, lines = rerank(name="rest.jsonl")
    assert server.calls == N_LINES * CALLS
    assert {one["outcome"] for one in lines} == {"ok"}


@pytest.mark.parametrize(
    "args",
    [
        ("--max-tokens", "1"),
        ("--max-seconds", "0.000001"),
        ("--max-cost", "0.0000001", "--input-price", "2", "--output-price", "8"),
    ],
    ids=lambda args: args[0],
)
def test_every_limit_stops_the_file(rerank, server, args):
    _, lines = rerank(*args, "--max-concurrency", "1")
    assert server.calls <= 1
    assert len(lines) == N_LINES
    assert "skipped_budget" in statuses(lines)


def test_a_dry_run_counts_without_the_limit(deepera, questions):
    args = ("--model", "openai:any", "--dry-run", "--json", "--max-calls", "1")
    plain = json.loads(deepera("rerank", questions(line()), *args).stdout)
    assert plain["usage"]["calls"] == 7


def test_requests_are_paced(rerank, server):
    started = time.monotonic()
    rerank("--requests-per-minute", "600", "--limit", "1")
    assert server.calls == CALLS
    assert time.monotonic() - started >= 0.1 * (CALLS - 1)


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--max-calls", "0"), "max_calls must be > 0, got 0"),
        (("--max-cost", "1"), "max_cost needs input_price and output_price"),
        (("--requests-per-minute", "5"), "--requests-per-minute goes with --backend llm"),
        (("--tokens-per-minute", "5"), "--tokens-per-minute goes with --backend llm"),
    ],
)
def test_a_limit_that_cannot_be_is_one_line(deepera, questions, args, problem):
    result = deepera("rerank", questions(line()), "--backend", TEA, *args)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert problem in result.stderr


@pytest.mark.parametrize(
    ("fault", "limit"),
    [
        ("prose, lasting", "calls"),
        ("prose, lasting", "tokens"),
        ("prose, lasting", "money"),
        ("429 Retry-After, once", "calls"),
        pytest.param("429 Retry-After, once", "tokens", marks=pytest.mark.slow),
        pytest.param("429 Retry-After, once", "money", marks=pytest.mark.slow),
    ],
)
def test_repeated_questions_and_retries_stop_at_the_limit_too(
    deepera, questions, read, tmp_path, fault, limit
):
    args, reason = LIMITS[limit]
    plan = Plan({fault: EVERY[fault]}, 1.0)
    known = [plan.passages(number, 6) for number in range(3)]
    model = FaultyModel(plan, {one.id: one for some in known for one in some})
    source = questions(
        *(
            line(
                f"q{number}",
                question=question(number),
                passages=[{"id": one.id, "text": one.text} for one in some],
            )
            for number, some in enumerate(known)
        )
    )
    with ChatServer(model) as server:
        result = deepera(
            "rerank", source, "-o", tmp_path / "out.jsonl", "--model", "any",
            "--base-url", server.base_url, "--max-concurrency", "2", *args,
        )  # fmt: skip
    assert result.exit_code == 1, result.output
    lines = read(tmp_path / "out.jsonl")
    report = json.loads((tmp_path / "out.report.json").read_text(encoding="utf-8"))
    used = report["usage"]
    assert used["calls"] + used["failed_calls"] == model.seen["sent"]
    assert used["input_tokens"] + used["output_tokens"] == model.seen["in"] + model.seen["out"]
    if reason.endswith("calls"):
        assert model.seen["sent"] == 9
    else:
        assert 500 <= model.seen["in"] + model.seen["out"] < 500 + 2 * 70
    assert len(statuses(lines)) == 3 * 6
    skipped = [
        one for some in lines for one in some["ranking"] if one["status"] == "skipped_budget"
    ]
    assert skipped
    assert all(reason in one["reason"] for one in skipped)
    assert lines[-1]["outcome"] == "budget_stop"
    for one in (one for some in lines for one in some["ranking"] if one["score"] is not None):
        assert one["score"] == model.known[one["id"]].score


PRICES = ("--input-price", "2.5", "--output-price", "10")


@pytest.mark.parametrize("size", [1, 5])
def test_a_dry_run_with_prices_tells_the_cost_and_without_them_how_to_see_it(
    deepera, questions, size
):
    source = questions(*(line(f"q{n}") for n in range(size)))
    args = ("rerank", source, "--dry-run", "--model", "openai:any")
    plain = json.loads(deepera(*args, *PRICES, "--json").stdout)
    total = {name: sum(used[name] for used in plain["usage"]["stages"].values()) for name in TOKENS}
    cost = (2.5 * total["input_tokens"] + 10 * total["output_tokens"]) / 1e6
    assert plain["cost"] == pytest.approx(cost)
    shown = deepera(*args, *PRICES).stdout
    (told,) = re.findall(r"cost: about ([0-9.]+), in the currency of the prices\n", shown)
    assert float(told) == pytest.approx(cost, rel=0.05)
    for prices in ((), PRICES[:2]):
        assert json.loads(deepera(*args, *prices, "--json").stdout)["cost"] is None
        assert "with --input-price and --output-price" in deepera(*args, *prices).stdout


def test_a_dry_run_of_a_judge_that_makes_no_calls_speaks_of_no_price(deepera, questions):
    assert "price" not in deepera("rerank", questions(line()), "--dry-run").stdout


def test_what_the_budget_left_is_not_told_as_failed(rerank):
    result, lines = rerank("--max-calls", "9")
    n = statuses(lines).count("skipped_budget")
    assert n > 1
    told = f"The budget stopped the run with {n} passages not judged (budget reached: 9 calls)."
    assert told in result.stderr
    assert f", 0 failed, {n} not judged; " in result.stderr
    assert "could not be judged" not in result.stderr
