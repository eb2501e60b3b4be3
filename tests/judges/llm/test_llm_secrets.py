"""The key comes from the environment, goes to the server, and shows nowhere else."""

import copy
import json
import os
import pickle

import pytest
from langchain_openai import ChatOpenAI

from deepera_graph import EvidenceReranker, SettingsError, llm_backend
from deepera_graph.chat.models import find_key_variable
from deepera_graph.testing import answer_in_json
from support.openai_server import ChatServer, Reply, Request

KEY = "sk-verysecret123"
QUESTION = "Does tea lower fasting glucose?"
QUICK = {"attempts": 1, "first_wait": 0}


def ordinary(request: Request) -> dict[str, object]:
    return answer_in_json({"Tea": 0.9}, request.system, request.user)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def everything_shown(reranker, result) -> str:
    return "\n".join(
        [
            repr(reranker), repr(reranker.backend), str(reranker.backend.spec),
            json.dumps(reranker.to_dict()), repr(result), result.to_json(),
            result._repr_html_(), str(result.manifest), str(pickle.dumps(reranker)),
        ]
    )  # fmt: skip


@pytest.mark.parametrize("by_name", [True, False])
def test_the_key_reaches_the_server_and_nothing_else(by_name):
    with ChatServer(ordinary) as server:
        model = "openai:scripted" if by_name else ChatOpenAI(
            model="scripted", base_url=server.base_url, api_key=KEY
        )  # fmt: skip
        options = {"base_url": server.base_url, "api_key_env": "OPENAI_API_KEY"} if by_name else {}
        reranker = EvidenceReranker(llm_backend(model, **options))
        result = reranker.rerank(QUESTION, ["Tea lowered it."])
        headers = {request.headers["authorization"] for request in server.requests}
    assert headers == {f"Bearer {KEY}"}
    assert len(result.kept) == 1
    assert KEY not in everything_shown(reranker, result)


@pytest.mark.full
@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=401, content=f"Incorrect API key provided: {KEY}"),
        Reply(status=400, content=f"bad header 'Authorization: Bearer {KEY}'"),
        Reply(status=500, content=f"crash while serving {KEY}"),
    ],
)
def test_a_server_that_repeats_the_key_does_not_get_it_into_the_result(reply):
    with ChatServer(lambda request: reply) as server:
        backend = llm_backend(
            "openai:scripted", base_url=server.base_url, api_key_env="OPENAI_API_KEY", retry=QUICK
        )
        reranker = EvidenceReranker(backend)
        result = reranker.rerank(QUESTION, ["Tea lowered it."])
    assert result.failed
    assert "verysecret" not in everything_shown(reranker, result)


@pytest.mark.parametrize("key", [f"{KEY}\n", f" {KEY} ", f"{KEY}\r\n"])
def test_white_space_around_the_key_is_no_part_of_it(key, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with ChatServer(ordinary) as server:
        backend = llm_backend(
            "openai:scripted", base_url=server.base_url, api_key_env="OPENAI_API_KEY", retry=QUICK
        )
        result = EvidenceReranker(backend).rerank(QUESTION, ["Tea lowered it."])
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert not result.failed


def test_a_key_that_cannot_be_sent_does_not_show_in_the_failure():
    model = ChatOpenAI(model="m", base_url="http://127.0.0.1:9/v1", api_key=f"{KEY}\n")
    with ChatServer(ordinary) as server:
        model = ChatOpenAI(model="m", base_url=server.base_url, api_key=f"{KEY}\n")
        reranker = EvidenceReranker(llm_backend(model, retry=QUICK))
        result = reranker.rerank(QUESTION, ["Tea lowered it."])
    assert result.failed
    assert "verysecret" not in everything_shown(reranker, result)


@pytest.mark.parametrize("option", ["api_key", "openai_api_key", "azure_ad_token"])
def test_a_key_is_not_taken_as_an_option(option):
    with pytest.raises(SettingsError, match=f"{option} is not taken.*api_key_env") as caught:
        llm_backend("openai:scripted", **{option: KEY})
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("options", [{"n": 0}, {"temperature": "hot"}])
def test_a_bad_option_does_not_print_the_key(options):
    with pytest.raises(Exception) as caught:  # noqa: PT011 -- LangChain's own
        llm_backend("openai:scripted", **options)
    assert KEY not in repr(caught.value) + str(caught.value)


def test_another_variable_may_hold_the_key(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-other-key-456")
    with ChatServer(ordinary) as server:
        backend = llm_backend("openai:m", base_url=server.base_url, api_key_env="MY_KEY")
        EvidenceReranker(backend).rerank(QUESTION, ["Tea."])
        assert server.requests[0].headers["authorization"] == "Bearer sk-other-key-456"
    assert backend.spec["api_key_env"] == "MY_KEY"


def test_a_named_variable_must_be_set(monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(SettingsError, match="MY_KEY"):
        llm_backend("openai:m", base_url="http://127.0.0.1:9/v1", api_key_env="MY_KEY")


@pytest.mark.parametrize("is_set", [True, False])
def test_a_server_of_ones_own_needs_no_key_and_is_not_sent_that_of_openai(is_set, monkeypatch):
    if not is_set:
        monkeypatch.delenv("OPENAI_API_KEY")
    with ChatServer(ordinary) as server:
        backend = llm_backend("openai:m", base_url=server.base_url)
        assert not EvidenceReranker(backend).rerank(QUESTION, ["Tea."]).failed
        sent = {request.headers["authorization"] for request in server.requests}
    assert sent == {"Bearer not-needed"}


@pytest.mark.parametrize(
    ("base_url", "sent"),
    [
        (None, KEY),
        ("https://api.openai.com/v1", KEY),
        ("https://eu.api.openai.com/v1/", KEY),
        ("https://API.OpenAI.com", KEY),
        ("http://api.openai.com/v1", "not-needed"),
        ("https://api.openai.com.example.org/v1", "not-needed"),
        ("https://notopenai.com/v1", "not-needed"),
        ("https://example.org/api.openai.com/v1", "not-needed"),
        ("http://[::1", "not-needed"),
    ],
)
def test_the_key_of_openai_goes_to_openai_alone(base_url, sent):
    variable = find_key_variable(base_url, None)
    assert (os.environ[variable] if variable else "not-needed") == sent


def test_a_server_that_wants_a_key_is_told_from_one_that_refuses_it(monkeypatch):
    with ChatServer(lambda request: Reply(status=401)) as server:
        for named, words in (({}, "was sent none"), ({"api_key_env": "OPENAI_API_KEY"}, "")):
            backend = llm_backend("openai:m", base_url=server.base_url, retry=QUICK, **named)
            failed = EvidenceReranker(backend).rerank(QUESTION, ["Tea."]).backend_failure
            assert "refused the API key (HTTP 401)" in failed
            assert ("was sent none" in failed) == bool(words)
            assert ("(api_key_env=, --api-key-env)" in failed) == bool(words)


@pytest.mark.full
@pytest.mark.parametrize("by_name", [True, False])
def test_a_copy_takes_its_key_from_the_environment(by_name, monkeypatch):
    with ChatServer(ordinary) as server:
        model = "openai:scripted" if by_name else ChatOpenAI(
            model="scripted", base_url=server.base_url, api_key=KEY, temperature=0.5
        )  # fmt: skip
        options = {"base_url": server.base_url, "api_key_env": "OPENAI_API_KEY"} if by_name else {}
        reranker = EvidenceReranker(llm_backend(model, **options), threshold=0.7)
        frozen = pickle.dumps(reranker)
        expected = reranker.rerank(QUESTION, ["Tea lowered it.", "Milk."])
        monkeypatch.setenv("OPENAI_API_KEY", "sk-another-day-99")
        copies = [
            pickle.loads(frozen),
            copy.deepcopy(reranker),
            EvidenceReranker.from_dict(json.loads(json.dumps(reranker.to_dict()))),
        ]
        for one in copies:
            server.reset_counts()
            result = one.rerank(QUESTION, ["Tea lowered it.", "Milk."])
            [headers] = {request.headers["authorization"] for request in server.requests}
            assert headers == "Bearer sk-another-day-99"
            assert one.settings == reranker.settings
            assert result.passages == expected.passages
            temperature = {request.body["temperature"] for request in server.requests}
            assert temperature == {0 if by_name else 0.5}


def test_a_copy_of_a_model_without_a_key_says_what_is_missing(monkeypatch):
    model = ChatOpenAI(model="m", base_url="http://127.0.0.1:9/v1", api_key=KEY)
    frozen = pickle.dumps(EvidenceReranker(llm_backend(model)))
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        pickle.loads(frozen)


def test_headers_may_hold_a_secret_and_are_not_written_down():
    headers = {"X-Token": KEY}
    url = "http://127.0.0.1:9/v1"
    model = ChatOpenAI(model="m", base_url=url, default_headers=headers)
    for backend in (
        llm_backend(model),
        llm_backend("openai:m", base_url=url, default_headers=headers),
    ):
        assert backend.spec is None
        assert KEY not in repr(backend)
        with pytest.raises(SettingsError, match="live objects"):
            EvidenceReranker(backend).to_dict()


@pytest.mark.parametrize("key", [KEY, "gsk_aBc123dEf456gHi"])
def test_a_key_in_place_of_its_variable_is_not_repeated(key):
    with pytest.raises(SettingsError, match="not the key itself") as caught:
        llm_backend("openai:m", base_url="http://127.0.0.1:9/v1", api_key_env=key)
    assert key not in str(caught.value)
