"""Servers that refuse, are not there, or answer nonsense: what it does to a whole rerank."""

import asyncio
import json

import pytest

from deepera_graph import EvidenceReranker, llm_backend
from deepera_graph.testing import answer_in_json
from support.openai_server import ChatServer, Reply, Request

pytestmark = pytest.mark.full

QUESTION = "Does tea lower fasting glucose?"
TEXTS = ["Tea lowered it.", "Milk did not.", "Broken tea."]
QUICK = {"attempts": 2, "first_wait": 0, "timeout": 5}


def ordinary(request: Request) -> dict[str, object]:
    return answer_in_json({"Tea": 0.9, "Broken": 0.85}, request.system, request.user)


def rerank(answer, texts=TEXTS, is_async=False, **settings):
    with ChatServer(answer) as server:
        backend = llm_backend("openai:scripted", base_url=server.base_url, retry=QUICK)
        reranker = EvidenceReranker(backend, max_failed_share=0.5, **settings)
        result = (
            asyncio.run(reranker.arerank(QUESTION, texts))
            if is_async
            else reranker.rerank(QUESTION, texts)
        )
        return result, server.requests


def judges(request: Request) -> bool:
    return "You judge" in request.system


def broken_with(first, second=None):
    """Answer as usual, but to the third text say *first*, and *second* when asked again."""

    def answer(request: Request):
        if not judges(request) or "Broken" not in str(request.messages[1]["content"]):
            return ordinary(request)
        is_again = len(request.messages) > 2
        return second if is_again and second is not None else first

    return answer


GOOD = {"reason": "r", "evidence": [1], "score": 0.85}


@pytest.mark.parametrize(
    "wrapped",
    [
        f"Here is my verdict:\n{json.dumps(GOOD)}\nI hope this helps.",
        f"```json\n{json.dumps(GOOD, indent=2)}\n```",
        f'<think>A score of 0.2? {{"score": 0.2}} No.</think>{json.dumps(GOOD)}',
        f"Reasoning first ... </think>\n\n{json.dumps(GOOD)}",
        "{'reason': 'r', 'evidence': [1,], 'score': 0.85,}",
    ],
)
def test_what_is_written_around_an_answer_does_no_harm(wrapped):
    result, requests = rerank(broken_with(wrapped))
    [one] = [one for one in result.passages if one.id == "3"]
    assert (one.score, one.quote, one.status) == (0.85, "Broken tea.", "scored")
    assert sum(map(judges, requests)) == 3


@pytest.mark.parametrize(
    "bad",
    [
        '{"reason": "r", "evidence": [], "score": 85}',
        '{"reason": "r", "evidence": [], "score": "8/10"}',
        '{"reason": "r", "evidence": [], "score": -0.5}',
        '{"reason": "r", "evidence": [], "score": NaN}',
        '{"reason": "r", "evidence": [], "score": null}',
        '{"reason": "r", "evidence": [], "scor',
        "<think>The form is {\"reason\": \"r\", \"evidence\": [], \"score\": 0.9}, so I",
        f'{{"reason": "r", "evidence": [{"9" * 5000}], "score": ' + "9" * 5000 + "}",
        '{"reason": ' * 3000,
        "I would say 0.9.",
        '{"evidence": [], "rating": 0.9}',
    ],
)  # fmt: skip
def test_an_unusable_answer_is_asked_again_and_then_failed_never_a_number(bad):
    result, requests = rerank(broken_with(bad))
    [failed] = result.failed
    assert (failed.id, failed.score, failed.status, failed.kept) == ("3", None, "failed", False)
    assert "(asked twice)" in failed.reason
    assert sum(map(judges, requests)) == 4
    assert result.usage["score"].calls == 4
    assert result.usage["score"].reasked_calls == 1
    assert [one.id for one in result.kept] == ["1"]
    assert result.backend_failure is None


def test_an_answer_that_is_better_the_second_time_is_repaired_and_both_count():
    result, requests = rerank(broken_with('{"score": 85}', json.dumps(GOOD)))
    [one] = [one for one in result.passages if one.id == "3"]
    assert (one.score, one.status, one.kept) == (0.85, "repaired", True)
    assert result.usage["score"].calls == sum(map(judges, requests)) == 4
    again = [request for request in requests if len(request.messages) > 2]
    assert len(again) == 1
    assert "got 85" in again[0].user


def test_tokens_of_unusable_answers_count():
    clean, _ = rerank(ordinary)
    result, requests = rerank(broken_with('{"score": 85}', json.dumps(GOOD)))
    [again] = [request for request in requests if len(request.messages) > 2]
    more = sum(len(str(message["content"]).split()) for message in again.messages)
    assert result.usage["score"].input_tokens == clean.usage["score"].input_tokens + more


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(status=401, content="bad key"), "the server refused the API key (HTTP 401)"),
        (Reply(status=403, content="no"), "the server refused the API key (HTTP 403)"),
        (Reply(status=404, content="no model scripted"), "no model scripted"),
    ],
)
def test_a_server_that_refuses_everything_is_to_blame(reply, reason, is_async):
    result, _ = rerank(lambda request: reply, is_async=is_async)
    assert len(result.failed) == 3
    assert reason in result.backend_failure
    assert all(one.unusable and one.score is None for one in result.passages)
    assert (result.outcome, result.intent["status"]) == ("degraded", "fallback")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_server_that_is_not_there_is_to_blame(is_async):
    backend = llm_backend("openai:m", base_url="http://127.0.0.1:9/v1", retry=QUICK)
    reranker = EvidenceReranker(backend)
    run = reranker.arerank(QUESTION, TEXTS) if is_async else None
    result = asyncio.run(run) if run else reranker.rerank(QUESTION, TEXTS)
    assert "the server cannot be reached" in result.backend_failure
    assert "Connect" in result.backend_failure or "refused" in result.backend_failure


@pytest.mark.parametrize("fault", ["reset", "half"])
def test_a_line_that_breaks_for_one_passage_fails_that_passage_alone(fault):
    result, _ = rerank(broken_with(Reply(fault=fault)))
    assert [one.id for one in result.failed] == ["3"]
    assert [one.id for one in result.kept] == ["1"]
    assert result.backend_failure is None
    assert result.usage["score"].failed_calls == 2


def test_a_server_without_schemas_is_asked_in_words_from_then_on():
    def answer(request: Request):
        if request.response_format or request.body.get("tools"):
            return Reply(status=400, content="response_format is not supported")
        return ordinary(request)

    result, requests = rerank(answer)
    assert [one.id for one in result.kept] == ["1", "3"]
    assert not result.failed
    refused = [one for one in requests if one.response_format or one.body.get("tools")]
    assert len(refused) == 3
    assert requests.index(refused[-1]) == 2
    told = [request.system for request in requests if judges(request)]
    assert len(set(told)) == 1
    schema = json.loads(told[0].rpartition("JSON schema:\n")[2])
    assert schema["required"] == ["reason", "evidence", "score", "direction"]


def test_a_refusal_is_a_failure_with_its_words():
    result, _ = rerank(broken_with(Reply(refusal="I cannot judge this.")))
    assert result.failed[0].reason == "the model refused: I cannot judge this."


def test_an_intent_that_cannot_be_had_does_not_stop_the_judge():
    def answer(request: Request):
        return "no idea" if "You read" in request.system else ordinary(request)

    result, requests = rerank(answer)
    assert result.intent["status"] == "fallback"
    assert [one.id for one in result.kept] == ["1", "3"]
    assert all("not known" in request.user for request in requests if judges(request))


def test_a_summary_of_none_drops_the_passage():
    def answer(request: Request):
        return {"text": "NONE"} if "You shorten" in request.system else ordinary(request)

    result, _ = rerank(answer)
    assert (result.outcome, len(result.kept)) == ("no_evidence", 0)


@pytest.mark.parametrize(
    ("required", "kept"), [(None, ["1", "3"]), (True, []), (False, ["1", "3"])]
)
def test_a_score_without_evidence_passes_flagged_unless_it_is_required(required, kept):
    def answer(request: Request):
        found = ordinary(request)
        return {**found, "evidence": []} if judges(request) else found

    result, _ = rerank(answer, require_evidence=required)
    assert [one.id for one in result.kept] == kept
    assert [one.score for one in result.passages[:2]] == [0.9, 0.85]
    flag = "kept by its score alone: no evidence was named"
    assert [one.id for one in result.passages if flag in one.reason] == kept
    told = "2 of 2 passages that passed have no sentence named as evidence"
    assert any(one.startswith(told) for one in result.warnings) == bool(kept)
