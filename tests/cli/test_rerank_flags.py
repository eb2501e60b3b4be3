"""What a line and the closing words say of replies that were bad, and of calls that failed."""

import json

import pytest

from cli.conftest import PASSAGES, QUESTION
from deepera_graph import llm_backend
from deepera_graph.testing import answer_in_json
from support.openai_server import ChatServer, Reply

pytestmark = pytest.mark.full

SCORES = {"lowered": 0.9}


@pytest.fixture
def rerank(deepera, questions, tmp_path):
    """Reranks one question by a server, and gives the output line, the report and what was said."""

    def run(answer, *options):
        path, out = questions({"id": "q1", "question": QUESTION, "passages": PASSAGES}), "out.jsonl"
        with ChatServer(answer) as server:
            judge = ["--model", "m", "--base-url", server.base_url, "--cache", "off"]
            ended = deepera("rerank", path, "-o", tmp_path / out, *judge, *options)
            n_calls = server.calls
        report = json.loads((tmp_path / "out.report.json").read_text())
        lines = (tmp_path / out).read_text().splitlines()
        return [json.loads(one) for one in lines], report, ended, n_calls

    return run


def ordinary(request):
    return answer_in_json(SCORES, request.system, str(request.messages[1]["content"]))


def stage(request):
    return "score" if "You judge" in request.system else request.system.split()[1]


def first_bad(*stages):
    """Answer in prose the first time in some stages, and well when asked again."""

    def answer(request):
        if stage(request) in stages and len(request.messages) == 2:
            return Reply(content="That is hard to say.")
        return ordinary(request)

    return answer


def test_a_quote_says_where_it_stands(rerank):
    [line], _, _, _ = rerank(ordinary)
    best, *others = line["ranking"]
    start, end = best["quote_span"]
    assert best["quote_status"] == "verbatim"
    assert PASSAGES[1]["text"][start:end] == best["quote"]
    assert not any("summary_status" in one for one in line["ranking"])
    assert not any("quote_span" in one for one in others if not one["quote"])


def test_what_was_asked_twice_is_flagged_in_every_stage_with_the_cause(rerank):
    [line], report, _, _ = rerank(first_bad("score", "shorten", "read"))
    best = line["ranking"][0]
    again = "asked twice, as the reply holds no complete JSON object"
    assert (best["status"], best["summary_status"]) == ("repaired", "repaired")
    assert best["reason"].count(again) == 2
    assert (line["intent"]["status"], line["intent"]["cause"]) == ("repaired", again[16:])
    assert report["usage"]["reasked_calls"] == 1 + len(PASSAGES) + 1


def test_words_of_a_drifted_summary_are_flagged(rerank):
    def answer(request):
        if stage(request) == "shorten":
            return {"text": "Green tea lowered it by 99% in mice of Oslo."}
        return ordinary(request)

    [line], _, _, _ = rerank(answer)
    best = line["ranking"][0]
    assert (best["summary_status"], best["summary"]) == ("drifted", PASSAGES[1]["text"])
    assert "not in the passage: 99%, Oslo" in best["reason"]


def test_calls_that_failed_are_told_and_those_of_a_failed_question_counted(rerank):
    def answer(request):
        return Reply(status=400) if "morning" in str(request.messages) else ordinary(request)

    lines, report, ended, n_calls = rerank(answer, "--on-error", "raise")
    used = report["usage"]
    assert lines == []
    assert (used["calls"] + used["failed_calls"], ended.exit_code) == (n_calls, 1)
    assert used["stages"]["unfinished"]["failed_calls"] == used["failed_calls"] > 0
    assert "no question done" in ended.stderr
    assert f"{used['calls']} calls, {used['failed_calls']} more failed" in ended.stderr


@pytest.mark.parametrize("raw", [b"\xff<html>", b"<html>gateway</html>", b'{"choices": '])
def test_an_answer_that_is_not_json_at_all_is_said_to_be_that(rerank, raw):
    [line], report, _, n_calls = rerank(lambda request: Reply(raw=raw))
    assert {one["reason"].partition(" (")[0] for one in line["ranking"]} == {
        "the server's answer is not JSON"
    }
    assert (line["outcome"], report["usage"]["failed_calls"]) == ("degraded", n_calls)


def test_the_manifest_names_model_prompts_and_schemas(rerank):
    _, report, _, _ = rerank(ordinary)
    about = llm_backend("openai:m", base_url="http://localhost:1/v1").about
    assert {name: report["manifest"][name] for name in ("model", "prompts", "schemas")} == about
