import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from figures import Figures, own_seconds
from latency import PrefixCache, Speed, Turnstile, makespan
from oracle import Oracle, UnknownPromptError
from texts import make_question, make_questions
from tokens import quarters

from deepera_graph.chat.models import request_body
from deepera_graph.judges.llm.prompt import (
    FusedGroupReply,
    FusedMemberReply,
    FusedReply,
    IntentReply,
    numbered,
    read_verdicts,
)
from deepera_graph.text.words import split_sentences

FOLDER = Path(__file__).parents[2] / "benchmarks" / "speed"


def test_a_prompt_costs_its_first_token_what_it_must_read_and_what_it_writes() -> None:
    speed = Speed(ttft=0.25, prefill=4000, decode=80, straggler_share=0.1, straggler_factor=5)
    assert speed.seconds(1000, 40) == (0.5, 1.0)
    assert speed.seconds(1000, 40, drawn=0.05) == (2.5, 5.0)


@pytest.mark.parametrize(
    ("first", "second", "n_cached"),
    [
        pytest.param(range(40), range(40), 32, id="whole-blocks-only"),
        pytest.param(range(32), range(32), 16, id="the-last-token-is-read"),
        pytest.param(range(40), [*range(31), 99, *range(32, 40)], 16, id="up-to-the-difference"),
        pytest.param(range(40), range(1, 40), 0, id="from-the-start-only"),
        pytest.param([], range(40), 0, id="nothing-known"),
    ],
)
def test_a_prefix_is_found_in_whole_blocks(first, second, n_cached) -> None:
    cache = PrefixCache(block=16)
    cache.add(list(first))
    assert cache.find(list(second)) == n_cached


def test_calls_of_one_kind_share_the_places_and_wait_for_the_kind_before() -> None:
    calls = [{"kind": "intent", "arrived": 0.0, "service": 0.5}]
    calls += [{"kind": "score", "arrived": 1.0 + n, "service": 1.0} for n in range(5)]
    assert own_seconds(calls, 2, in_turn=False) == 0.5 + 3.0
    assert own_seconds(calls, 64, in_turn=False) == 0.5 + 1.0
    assert own_seconds(calls, 64, in_turn=True) == 5.5
    assert makespan([], 4) == 0.0


def test_only_the_calls_of_a_question_are_counted_for_it() -> None:
    call = {"kind": "score", "service": 1.0, "prompt": 100, "cached": 64, "output": 7, "late": 0.0}
    log = [{**call, "arrived": at, "status": 200} for at in (1.0, 2.0, 9.0)]
    log.append({**call, "arrived": 1.5, "status": 429})
    found = Figures.of({"start": 0.5, "end": 3.5}, log, 64, in_turn=False)
    assert (found.calls, found.refused, found.prompt, found.uncached) == (2, 1, 200, 72)


def test_requests_above_the_limit_are_told_how_long_to_wait() -> None:
    turnstile = Turnstile(60)
    waits = [turnstile.wait(now) for now in (100.0, 100.0, 100.0, 101.5)]
    assert waits == [0.0, 0.0, 1.0, 0.0]
    assert Turnstile(0).wait(5.0) == 0.0


def test_the_oracle_answers_in_the_form_asked_for_and_knows_what_is_relevant() -> None:
    question = make_question(7, 1, 10)
    oracle = Oracle(make_questions(7, 1, 10), quarters)
    shown = "\n".join(f"[{n}] {text}" for n, text in enumerate(question.passages.values(), 1))
    permutation = oracle.answer({}, f"You are RankGPT\n{shown}").text
    best = [int(one.strip("[] ")) for one in permutation.split(">")]
    assert {list(question.passages)[n - 1] for n in best[:2]} == question.relevant
    with pytest.raises(UnknownPromptError, match="asks like this"):
        oracle.answer({}, "What is this?")


def test_the_oracle_fills_in_our_own_forms() -> None:
    question = make_question(7, 1, 10)
    oracle = Oracle(make_questions(7, 1, 10), quarters)
    asked = oracle.answer(request_body("json_schema", IntentReply), f"Question: {question.text}")
    intent = IntentReply.model_validate_json(asked.text)
    assert intent.entity_type == question.entities
    assert (intent.intent, intent.expected_answer_type) == ("causal inference", "categorical")
    for code, text in question.passages.items():
        sentences = split_sentences(text)
        shown = f"Question: {question.text}\n\n=====\n{numbered(sentences)}\n====="
        said = oracle.answer(request_body("json_schema", FusedReply), shown).text
        verdict = FusedReply.model_validate_json(said)
        assert (verdict.finding is not None) == (code in question.relevant)
        if verdict.finding:
            quotes = [sentences[number - 1].text for number in verdict.finding.evidence]
            assert quotes == [verdict.finding.summary]


def test_the_oracle_writes_a_verdict_of_a_group_whole_where_a_passage_passes() -> None:
    question = make_question(7, 1, 10)
    oracle = Oracle(make_questions(7, 1, 10), quarters)
    shown = "\n".join(question.passages.values())
    said = oracle.answer(request_body("json_schema", FusedGroupReply), shown).text
    verdicts = json.loads(said)["verdicts"]
    assert [one["id"] for one in verdicts] == list(range(1, 11))
    for one, code in zip(verdicts, question.passages, strict=True):
        passes = code in question.relevant
        assert set(one) == ({"id", "score"} | ({"reason", "finding"} if passes else set()))
    found = read_verdicts(verdicts, 10, FusedMemberReply, "")
    assert {code for code, one in zip(question.passages, found, strict=True) if one.finding} == (
        question.relevant
    )


def test_a_reason_is_as_long_as_its_schema_allows() -> None:
    question = make_question(7, 1, 10)
    (code, *_) = question.relevant
    fields = {"reason": {"type": "string", "maxLength": 30}, "score": {"type": "number"}}
    form = {"name": "Any", "schema": {"type": "object", "properties": fields}}
    body = {"response_format": {"type": "json_schema", "json_schema": form}}
    oracle = Oracle(make_questions(7, 1, 10), quarters)
    found = json.loads(oracle.answer(body, question.passages[code]).text)
    assert len(found["reason"]) == 30
    assert found["score"] > 0.8
    del fields["reason"]["maxLength"]
    found = json.loads(oracle.answer(body, question.passages[code]).text)
    assert 25 <= len(quarters(found["reason"])) <= 28


@pytest.mark.slow
def test_the_command_prints_a_row_for_a_ranker_and_counts_on_the_server() -> None:
    options = ["--n", "4", "--questions", "1", "--rankers", "deepera-separate-text,haystack"]
    fast = ["--ttft", "0.01", "--prefill", "1e6", "--decode", "1e5"]
    run = subprocess.run(
        [sys.executable, str(FOLDER / "run.py"), *options, *fast],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    rows = [line.split(" | ") for line in run.stdout.splitlines() if "DeepEra" in line]
    assert [row[5] for row in rows] == ["5"], run.stdout + run.stderr
    if find_spec("haystack") is None:
        assert "not installed: haystack-ai" in run.stdout
    else:
        assert "Haystack LLMRanker" in run.stdout
