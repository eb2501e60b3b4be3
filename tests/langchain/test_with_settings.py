"""A reranker with some settings changed."""

import asyncio

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from deepera_graph import EvidenceReranker, Quantile, SettingsError
from support.scripted import Script


def test_only_the_named_settings_change(script, documents, question):
    reranker = EvidenceReranker(script.backend(), threshold=Quantile(share=0.5), order="retrieval")
    other = reranker.with_settings(top_n=1)
    assert (reranker.settings.top_n, other.settings.top_n) == (10, 1)
    assert other.settings.threshold == reranker.settings.threshold
    assert other.backend is reranker.backend
    assert len(other.rerank(question, documents).kept) == 1
    assert len(reranker.rerank(question, documents).kept) == 3


@pytest.mark.full
@pytest.mark.parametrize(("change", "most"), [({"top_n": 1}, 2), ({"max_concurrency": 4}, 6)])
def test_the_limit_is_shared_unless_it_changes(change, most, documents, question):
    script = Script({}, seconds=0.03)
    reranker = EvidenceReranker(script.backend(), max_concurrency=2)
    other = reranker.with_settings(**change)

    async def both():
        await asyncio.gather(*(one.arerank(question, documents) for one in (reranker, other)))

    asyncio.run(both())
    assert script.most_in_flight == most


def test_the_saver_stays(script, documents, question):
    saver = InMemorySaver()
    other = EvidenceReranker(script.backend(), checkpointer=saver).with_settings(top_n=1)
    config = {"configurable": {"thread_id": "1"}}
    other.rerank(question, documents, config=config)
    assert saver.get(config) is not None


@pytest.mark.parametrize("change", [{"top_n": 0}, {"top": 3}])
def test_a_bad_change_is_an_error(change, reranker):
    with pytest.raises(SettingsError, match="top"):
        reranker.with_settings(**change)
