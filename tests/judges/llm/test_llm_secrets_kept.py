"""However a call fails, and whoever listens: the key is in none of what can be read."""

import asyncio
import logging
import pickle
import traceback
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tracers.base import BaseTracer
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from deepera_graph import EvidenceReranker, SettingsError, llm_backend
from deepera_graph.chat.errors import shorten
from deepera_graph.errors import DeepEraError
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.testing import answer_in_json
from support.judging import Alone
from support.openai_server import ChatServer, Reply, Request

KEY = "4f9c1d7e2b8a46d0a1c3plainlooking"  # no prefix tells that it is one
QUESTION = "Does tea lower fasting glucose?"
QUICK = {"attempts": 2, "first_wait": 0, "timeout": 5}
HANGS = {**QUICK, "timeout": 0.25}
ECHO = f"bad key {KEY}; headers: {{'Authorization': 'Bearer {KEY}'}} " + "x" * 250 + KEY


class Ears(BaseTracer):
    """A tracer that keeps every run, as those that send runs away do."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def _persist_run(self, run: Any) -> None:
        self._keep(run)

    def _keep(self, run: Any) -> None:
        parts = (
            run.name,
            run.inputs,
            run.outputs,
            run.error,
            run.extra,
            run.events,
            run.serialized,
        )
        self.heard.append(repr(parts))
        for child in run.child_runs:
            self._keep(child)


class Errors(BaseCallbackHandler):
    """A handler that prints the errors it is given, with all that caused them."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        self.heard.append("".join(traceback.format_exception(error)) + repr(error))
        self.heard.append(repr(getattr(error, "body", "")))
        self.heard.append(str(getattr(getattr(error, "response", None), "text", "")))

    def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        self.heard.append(repr(response))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)


def everything(reranker: EvidenceReranker, result: Any) -> str:
    return "\n".join(
        [
            repr(reranker), repr(reranker.backend), repr(result), result.to_json(),
            result._repr_html_(), str(result.manifest), str(pickle.dumps(result)),
        ]
    )  # fmt: skip


def echoed(status: int) -> Reply:
    return Reply(status=status, content=ECHO)


def in_a_bare_page(status: int) -> Reply:
    return Reply(status=status, raw=ECHO.encode(), headers={"content-type": "text/html"})


REPLIES: list[tuple[str, Reply]] = [
    *((str(status), echoed(status)) for status in (400, 401, 403, 404, 422, 429, 500, 501, 503)),
    *((f"page-{status}", in_a_bare_page(status)) for status in (200, 401, 500)),
    ("in-the-answer", Reply(content=f'{{"reason": "{KEY}", "evidence": [1], "score": 0.9}}')),
    ("in-prose", Reply(content=ECHO)),
    ("in-the-refusal", Reply(refusal=ECHO)),
    ("in-arguments", Reply(tool_calls=[{
        "id": "c", "type": "function", "function": {"name": KEY, "arguments": ECHO}}])),
    ("reset", Reply(fault="reset")),
    ("half", Reply(content=ECHO, fault="half")),
    ("hang", Reply(fault="hang")),
]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(
    ("reply", "is_async"),
    [pytest.param(row[1], place % 2 == 0, id=row[0]) for place, row in enumerate(REPLIES)],
)
def test_a_server_that_repeats_the_key(
    reply: Reply, is_async: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(request: Request) -> Any:
        if "You judge" in request.system and "Tea" in request.messages[1]["content"]:
            return reply
        return answer_in_json({"Milk": 0.9}, request.system, request.user)

    ears, errors = Ears(), Errors()
    with ChatServer(answer) as server, JudgementCache(tmp_path / "cache.sqlite") as cache:
        backend = llm_backend(
            "openai:m",
            base_url=server.base_url,
            api_key_env="OPENAI_API_KEY",
            retry=HANGS if reply.fault == "hang" else QUICK,
        )
        reranker = EvidenceReranker(backend, cache=cache)
        run = (QUESTION, ["Tea lowered it.", "Milk did."])
        config: Any = {"callbacks": [ears, errors]}
        result = (
            asyncio.run(reranker.arerank(*run, config=config))
            if is_async
            else reranker.rerank(*run, config=config)
        )
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert len(result.passages) == 2
    assert ears.heard
    assert errors.heard
    read = "\n".join([everything(reranker, result), *ears.heard, *errors.heard, caplog.text])
    assert KEY not in read
    assert KEY[:12] not in read
    files = [path.read_bytes() for path in tmp_path.iterdir()]
    assert files
    assert not any(KEY.encode() in one for one in files)


def test_a_failure_printed_with_its_causes_does_not_show_the_key() -> None:
    with ChatServer(lambda request: echoed(401)) as server:
        backend = llm_backend(
            "openai:m", base_url=server.base_url, api_key_env="OPENAI_API_KEY", retry=QUICK
        )
        with pytest.raises(DeepEraError) as caught:
            backend.intent.invoke({"question": QUESTION, "problem": ""})
    assert KEY not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)


class Leaky(BaseChatModel):
    """A model of another provider, whose errors show its headers."""

    some_key: SecretStr = SecretStr(KEY)

    @property
    def _llm_type(self) -> str:
        return "leaky"

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        if "You judge" in str(messages[0].content):
            try:
                raise ConnectionError(f"https://127.0.0.1/?key={KEY}")
            except ConnectionError as error:
                raise RuntimeError(f"{ECHO}") from error
        text = str(answer_in_json({}, str(messages[0].content), str(messages[1].content)))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def test_an_error_of_another_provider_is_told_without_the_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reranker = EvidenceReranker(llm_backend(Leaky(), retry=QUICK))
    result = reranker.rerank(QUESTION, ["Tea lowered it."])
    assert result.failed
    assert "RuntimeError" in result.failed[0].reason
    assert KEY[:12] not in everything(reranker, result) + caplog.text
    task = {
        "question": QUESTION, "text": "Tea.", "title": "", "section": "",
        "intent": {"topic": "", "entity_type": "", "intent": "other",
                   "expected_answer_type": "other"},
    }  # fmt: skip
    with pytest.raises(DeepEraError) as caught:
        Alone(reranker.backend.judge).invoke(task)
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_a_server_that_is_not_there_is_told_without_its_password() -> None:
    url = f"http://user:{KEY}@127.0.0.1:9/v1"
    model = ChatOpenAI(model="m", base_url=url, api_key="k-another-one")
    reranker = EvidenceReranker(llm_backend(model, retry=QUICK))
    result = reranker.rerank(QUESTION, ["Tea."])
    assert "cannot be reached" in result.backend_failure
    assert KEY not in everything(reranker, result)
    assert reranker.backend.spec is None


@pytest.mark.parametrize(
    "url",
    [
        f"https://user:{KEY}@127.0.0.1/v1",
        f"https://:{KEY}@127.0.0.1/v1",
        f"https://127.0.0.1/v1?api-key={KEY}",
        f"https://127.0.0.1/v1?a=1&subscription_token={KEY}",
    ],
)
def test_an_address_with_a_secret_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="must not hold a password") as caught:
        llm_backend("openai:m", base_url=url)
    assert KEY not in str(caught.value)


@pytest.mark.full
def test_a_secret_in_a_header_of_the_callers_own_is_not_told() -> None:
    headers = {"X-Token": f"{KEY}-in-a-header"}
    with ChatServer(lambda request: Reply(status=500, content=str(request.headers))) as server:
        model = ChatOpenAI(
            model="m", base_url=server.base_url, api_key="k-another", default_headers=headers
        )
        reranker = EvidenceReranker(llm_backend(model, retry=QUICK))
        result = reranker.rerank(QUESTION, ["Tea."])
    assert KEY not in everything(reranker, result)


@pytest.mark.full
def test_an_error_of_a_client_of_the_callers_own_is_told_without_the_key() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(500, json={"error": {"message": str(dict(request.headers))}})

    client = httpx.Client(transport=httpx.MockTransport(handle))
    model = ChatOpenAI(model="m", api_key=KEY, http_client=client)
    reranker = EvidenceReranker(llm_backend(model, retry=QUICK))
    result = reranker.rerank(QUESTION, ["Tea."])
    assert KEY not in everything(reranker, result)
    client.close()


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-abcdefghij", "gsk_abcdefghijkl", "hf_abcdefghijkl", "xai-abcdefghijkl",
        "AIzaSyAbcdefghijklmnopqrstuv", "Bearer abc.def.ghi", "https://me:abcdefghijkl@host/",
    ],
)  # fmt: skip
def test_what_looks_like_a_key_is_not_told(text: str) -> None:
    assert "abcdef" not in shorten(ValueError(f"no access with {text} today")).lower()
    assert "abc.def" not in shorten(ValueError(f"no access with {text} today"))
