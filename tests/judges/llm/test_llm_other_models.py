"""Chat models of other kinds, and clients of the caller's own."""

import asyncio
import json
import time
from typing import Any

import httpx
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr

from deepera_graph import EvidenceReranker, SettingsError, llm_backend
from deepera_graph.chat import client
from deepera_graph.testing import Gauge, answer_in_json
from support.openai_server import ChatServer, Request

pytestmark = pytest.mark.full

QUESTION = "Does tea lower fasting glucose?"
TEXTS = [f"Tea {n} lowered it." for n in range(12)]
SCORES = {"Tea 1 ": 0.9, "Tea 2 ": 0.85}


class PlainChat(BaseChatModel):
    """A model with nothing but `_generate`."""

    seconds: float = 0.0
    counted: Any = None  # the usage that its server tells
    _gauge: Gauge = PrivateAttr(default_factory=Gauge)

    @property
    def _llm_type(self) -> str:
        return "plain"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        assert not kwargs
        with self._gauge.entry():
            time.sleep(self.seconds)
            system, user = (str(message.content) for message in messages)
            text = json.dumps(answer_in_json(SCORES, system, user))
            message = AIMessage(f"Sure!\n```json\n{text}\n```")
            message.usage_metadata = self.counted
        return ChatResult(generations=[ChatGeneration(message=message)])


def rerank(reranker, is_async):
    if is_async:
        return asyncio.run(reranker.arerank(QUESTION, TEXTS))
    return reranker.rerank(QUESTION, TEXTS)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def is_async(request):
    return request.param


def test_a_model_with_only_generate_will_do(is_async):
    model = PlainChat(seconds=0.01)
    result = rerank(EvidenceReranker(llm_backend(model), max_concurrency=4), is_async)
    assert [one.text for one in result.kept] == [TEXTS[1], TEXTS[2]]
    assert model._gauge.entered == 1 + 12 + 2
    assert model._gauge.most == 4
    assert result.usage["score"].calls == 12
    assert result.usage["score"].input_tokens > 12 * len(QUESTION) / 4
    assert result.manifest["model"] == "PlainChat"


@pytest.mark.parametrize(
    "counted",
    [None, {}, {"input_tokens": 0, "output_tokens": 0}, {"input_tokens": -9, "output_tokens": -9}],
)
@pytest.mark.parametrize(
    "budget", [{"max_tokens": 3000}, {"max_cost": 3, "input_price": 1e3, "output_price": 1e3}]
)
def test_tokens_that_a_server_does_not_count_are_estimated_and_limited(
    is_async, counted, budget, caplog, monkeypatch
):
    monkeypatch.setattr(client, "_uncounted", set())
    model = PlainChat(counted=counted)
    reranker = EvidenceReranker(llm_backend(model), max_concurrency=1, budget=budget)
    result = rerank(reranker, is_async)
    assert result.outcome == "budget_stop"
    assert 3000 <= result.total_usage.tokens < 4500
    assert model._gauge.entered < 12
    [told] = [one.getMessage() for one in caplog.records if one.name == "deepera_graph.chat"]
    assert "the server of PlainChat does not count tokens" in told


def test_tokens_that_a_server_counts_are_taken_as_they_are(is_async, caplog):
    counted = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    result = rerank(EvidenceReranker(llm_backend(PlainChat(counted=counted))), is_async)
    score = result.usage["score"]
    assert (score.input_tokens, score.output_tokens) == (7 * 12, 3 * 12)
    assert not [one for one in caplog.records if one.name == "deepera_graph.chat"]


def test_a_model_that_cannot_be_written_down_is_live():
    backend = llm_backend(PlainChat())
    assert backend.spec is None


def completion(body: bytes) -> httpx.Response:
    asked = json.loads(body)
    texts = [message["content"] for message in asked["messages"]]
    message = {"role": "assistant", "content": json.dumps(answer_in_json(SCORES, *texts))}
    return httpx.Response(
        200,
        json={
            "id": "c", "object": "chat.completion", "created": 0, "model": asked["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        },
    )  # fmt: skip


def test_a_client_of_the_callers_own_is_used(is_async):
    requests = []

    def handle(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return completion(request.content)

    client = httpx.Client(transport=httpx.MockTransport(handle))
    model = ChatOpenAI(model="m", api_key="k", http_client=client)
    result = rerank(EvidenceReranker(llm_backend(model)), is_async)
    assert len(result.kept) == 2
    assert len(requests) == 15
    assert result.total_usage.input_tokens == 45
    client.close()


def test_an_async_client_of_the_callers_own_is_used(is_async):
    requests = []

    async def handle(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return completion(request.content)

    client = httpx.AsyncClient(transport=httpx.MockTransport(handle))
    model = ChatOpenAI(model="m", api_key="k", http_async_client=client)
    result = rerank(EvidenceReranker(llm_backend(model)), is_async)
    assert len(result.kept) == 2
    assert len(requests) == 15
    asyncio.run(client.aclose())


def test_the_callers_model_is_not_changed():
    with ChatServer(lambda one: answer_in_json(SCORES, one.system, one.user)) as server:
        model = ChatOpenAI(model="m", api_key="k", base_url=server.base_url, max_retries=5)
        before = (model.async_client, model.root_async_client, model.max_retries, model.extra_body)
        rerank(EvidenceReranker(llm_backend(model)), False)
        assert model.max_retries == model.root_async_client.max_retries == 5
        after = (model.async_client, model.root_async_client, model.max_retries, model.extra_body)
    assert all(one is two for one, two in zip(before, after, strict=True))


def test_two_models_on_two_servers_do_not_share_connections():
    def answer(request: Request) -> dict[str, object]:
        return answer_in_json(SCORES, request.system, request.user)

    with ChatServer(answer) as one, ChatServer(answer) as two:
        backends = [llm_backend("openai:m", base_url=server.base_url) for server in (one, two)]
        for backend in backends:
            rerank(EvidenceReranker(backend), False)
        assert (one.calls, two.calls) == (15, 15)


def test_the_body_of_the_callers_model_is_kept():
    with ChatServer(lambda one: answer_in_json(SCORES, one.system, one.user)) as server:
        model = ChatOpenAI(
            model="m", api_key="k", base_url=server.base_url, extra_body={"top_k": 7}
        )
        rerank(EvidenceReranker(llm_backend(model)), False)
        for request in server.requests:
            assert request.body["top_k"] == 7
            assert request.response_format["json_schema"]["strict"] is True


def test_options_go_with_a_name_only():
    with pytest.raises(SettingsError, match="go with a model's name only"):
        llm_backend(PlainChat(), temperature=0)


def test_a_model_that_raises_fails_its_passage_alone():
    class Shaky(PlainChat):
        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
            if "Tea 2 " in str(messages[-1].content):
                raise RuntimeError("out of memory")
            return super()._generate(messages, *args, **kwargs)

    result = rerank(EvidenceReranker(llm_backend(Shaky())), False)
    assert [one.text for one in result.failed] == [TEXTS[2]]
    assert "RuntimeError: out of memory" in result.failed[0].reason
