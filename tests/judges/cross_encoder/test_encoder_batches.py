"""A cross-encoder is given pairs in batches; a pair that it fails on fails alone."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from deepera_graph import Budget, EvidenceReranker, encoder_backend
from deepera_graph.testing import Gauge


class Work:
    """Gives each pair the length of its text; a text with an exclamation mark fails its batch."""

    def __init__(self, results=lambda found: found):
        self.batches, self.results, self.gauge = [], results, Gauge()

    def predict(self, pairs):
        texts = [text for _, text in pairs]
        with self.gauge.entry():
            self.batches.append(texts)
        if any("!" in text for text in texts):
            raise ValueError(f"bad text among {len(texts)}")
        return self.results([float(len(text)) for text in texts])


def reranker(work, **options):
    made = {"content": "passage", "threshold": 0.0, **options}
    return EvidenceReranker(encoder_backend(work, batch_size=3), **made)


@pytest.mark.parametrize("is_async", [False, True])
def test_pairs_of_like_length_are_together_and_no_batch_is_too_large(is_async):
    work = Work()
    texts = ["x" * n for n in (5, 90, 7, 80, 6, 70, 8)]
    made = reranker(work)
    result = asyncio.run(made.arerank("q", texts)) if is_async else made.rerank("q", texts)
    assert [[len(text) for text in batch] for batch in work.batches] == [
        [90, 80, 70],
        [8, 7, 6],
        [5],
    ]
    assert len(result.passages) == 7
    assert not result.failed


def test_a_bad_pair_fails_alone_and_the_others_of_its_batch_are_read_again():
    work = Work()
    result = reranker(work).rerank("q", ["xxx", "xx!", "xxxxx", "x"])
    assert [one.text for one in result.failed] == ["xx!"]
    assert "bad text among 1" in result.failed[0].reason
    assert [len(batch) for batch in work.batches] == [3, 1, 1, 1, 1]


def test_a_wrong_number_of_results_is_a_failure():
    result = reranker(Work(lambda found: [1.0, 2.0, 3.0, 4.0])).rerank("q", ["x", "xx"])
    assert len(result.failed) == 2


@pytest.mark.full
def test_the_model_is_called_by_one_thread_at_a_time():
    work = Work()
    made = reranker(work)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: made.rerank(f"q{n}", ["x", "xx", "xxx", "xxxx"]), range(16)))
    assert work.gauge.most == 1
    assert work.gauge.entered == 32


def test_a_budget_of_calls_holds_pair_by_pair():
    work = Work()
    result = reranker(work, budget=Budget(max_calls=2)).rerank("q", ["x", "xx", "xxx"])
    assert sum(map(len, work.batches)) == 2
    assert (result.outcome, result.usage["score"].calls) == ("budget_stop", 2)
    assert [one.status for one in result.failed] == ["skipped_budget"]
