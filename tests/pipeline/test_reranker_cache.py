"""A reranker with a cache pays for a judgement once."""

import json
from pathlib import Path
from typing import Any

import pytest

from deepera_graph import EvidenceReranker, RerankResult, SettingsError, llm_backend
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.testing import answer_in_json
from support.openai_server import ChatServer, Request
from support.scripted import Script

QUESTION = "Does moss grow?"
PASSAGES = ["moss grew", "moss is studied", "stones"]


def answer(request: Request) -> dict[str, object]:
    return answer_in_json({"moss grew": 0.9}, request.system, request.user)


def judgements(result: RerankResult) -> str:
    plain = result.to_dict()
    return json.dumps([plain["intent"], plain["passages"], plain["outcome"]])


@pytest.mark.full
def test_a_second_run_makes_no_call_and_gives_the_same(tmp_path: Path) -> None:
    seen: set[str] = set()
    with ChatServer(answer) as server:
        for expected_calls in (5, 0):
            server.reset_counts()
            backend = llm_backend("openai:m", base_url=server.base_url)
            with JudgementCache(tmp_path / "cache.sqlite3") as cache:
                result = EvidenceReranker(backend, cache=cache).rerank(QUESTION, PASSAGES)
            assert server.calls == expected_calls
            assert result.total_usage.sent_calls == expected_calls
            assert result.total_usage.calls == 5
            seen.add(judgements(result))
    assert len(seen) == 1


@pytest.mark.full
def test_other_settings_use_the_same_judgements() -> None:
    with ChatServer(answer) as server, JudgementCache() as cache:
        backend = llm_backend("openai:m", base_url=server.base_url)
        one = EvidenceReranker(backend, cache=cache)
        one.rerank(QUESTION, PASSAGES)
        server.reset_counts()
        one.with_settings(threshold=0.95).rerank(QUESTION, PASSAGES)
        assert server.calls == 0


@pytest.mark.full
def test_another_model_is_asked_again() -> None:
    with ChatServer(answer) as server, JudgementCache() as cache:
        for model in ("openai:m", "openai:n"):
            server.reset_counts()
            backend = llm_backend(model, base_url=server.base_url)
            EvidenceReranker(backend, cache=cache).rerank(QUESTION, PASSAGES)
            assert server.calls == 5


def test_a_backend_of_live_objects_cannot_be_cached() -> None:
    with JudgementCache() as cache, pytest.raises(SettingsError, match="live objects"):
        EvidenceReranker(Script({}).backend(), cache=cache)


@pytest.mark.parametrize("cache", [True, "judgements.db", Path("judgements.db")])
def test_a_cache_that_is_none_is_named(cache: Any) -> None:
    with pytest.raises(SettingsError, match=r"cache must be a JudgementCache, .* got "):
        EvidenceReranker("local", cache=cache)
