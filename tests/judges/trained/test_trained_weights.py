"""The weights that come with the package, behind `local_backend`."""

import asyncio
import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from langchain_core.documents import Document

from deepera_graph import EvidenceReranker, local_backend
from deepera_graph.demo import read_corpus, read_questions
from deepera_graph.doctor.checks import check_local
from deepera_graph.judges.trained.backend import SUMS, Weights, local_model
from deepera_graph.judges.trained.scorer import SameDocumentModel
from deepera_graph.lab.training.lessons.pools import read_pools
from langchain_deepera import EvidenceCrossEncoder, EvidenceEmbeddings
from support.bioasq import SHARED

TOPICS = Path(__file__).parents[3] / "benchmarks/judge/topics.jsonl"
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        not (Weights().place() / SUMS).is_file(), reason="this checkout has no weights"
    ),
]


@pytest.fixture(scope="module")
def reranker():
    return EvidenceReranker(local_backend("trained"), content="passage")


def ranked(reranker, question, texts):
    return {one.text: (one.score, one.quote) for one in reranker.rerank(question, texts).passages}


def test_a_result_stands_before_its_look_alikes_and_quotes_itself(reranker, question, passages):
    best = reranker.rerank(question, list(passages.values())).passages[0]
    assert best.text == passages["result"]
    assert best.quote in best.text
    assert best.score >= local_model().head.operating_point


def test_scores_depend_on_the_pool_and_not_on_its_order(reranker, question, passages):
    texts = list(passages.values())
    first = ranked(reranker, question, texts)
    assert ranked(reranker, question, texts[::-1]) == first
    again = asyncio.run(reranker.arerank(question, texts)).passages
    assert {one.text: (one.score, one.quote) for one in again} == first
    encoder = EvidenceCrossEncoder(reranker.backend)
    assert encoder.score([(question, one) for one in texts]) == [first[one][0] for one in texts]


def test_threads_at_once_give_what_one_gives(reranker, question, passages):
    texts = list(passages.values())
    expected = ranked(reranker, question, texts)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: ranked(reranker, question, texts), range(4)))
    assert found == [expected] * 4


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_judges_alike(reranker, question, passages):
    texts = list(passages.values())
    expected = ranked(reranker, question, texts)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(ranked, (reranker, question, texts)).get(30) == expected


def test_the_version_is_known_before_the_weights_are_loaded(reranker):
    assert reranker.backend.about["judge_version"] == local_model().version


@pytest.mark.parametrize(
    "question",
    [
        "Who won the 1998 world cup?",
        "How tall is the Eiffel tower?",
        "What is the capital of Peru?",
    ],
)
def test_nothing_far_from_the_question_comes_near_the_operating_point(reranker, question):
    found = reranker.rerank(question, ["Wax keeps apples firm.", "Apples fell by 6% in weight."])
    assert not found.kept
    assert max(one.score for one in found.passages) < local_model().head.operating_point / 2


def test_thirty_findings_on_one_subject_are_not_taken_for_one_paper(reranker):
    texts = [
        f"In {40 + n} adults yoga lowered blood pressure by {3 + n % 9} mmHg (p = 0.0{n % 5})."
        for n in range(30)
    ]
    assert reranker.rerank("Does yoga lower blood pressure?", texts).kept


def test_one_passage_less_is_not_taken_for_evidence_that_is_missing(reranker):
    documents = {one.id: one.page_content for one in read_corpus()}
    for question in read_questions()[:2]:
        first = {*question.golden, *question.look_alikes}
        ids = sorted(documents, key=lambda one: (one not in first, one))
        texts = [documents[one] for one in ids]
        scores = [
            {one.text: one.score for one in reranker.rerank(question.question, texts[:n]).passages}
            for n in (30, 28)
        ]
        for one in question.golden:
            whole, less = (found[documents[one]] for found in scores)
            assert less == pytest.approx(whole, abs=0.15)


def test_passages_on_other_subjects_are_not_taken_for_evidence_that_is_missing(reranker):
    pools = read_pools([TOPICS])
    changes = []
    for pool, other in zip(pools[4:8], pools[44:48], strict=True):
        evidence, wrong = (
            [x.text for x in pool.passages if bool(x.label) is one] for one in (True, False)
        )
        half = len(wrong) // 2
        mixed = [*evidence, *wrong[:half], *(one.text for one in other.passages[half : len(wrong)])]
        alone, beside = (
            {one.text: one.score for one in reranker.rerank(pool.question, texts).passages}
            for texts in ([*evidence, *wrong], mixed)
        )
        changes += [abs(beside[one] - alone[one]) for one in evidence]
    assert np.mean(changes) < 0.1


@pytest.mark.skipif(not (SHARED / "data").is_dir(), reason="the data sets are not here")
def test_passages_far_from_the_question_are_not_taken_for_one_paper(reranker, monkeypatch):
    found = []
    tell = SameDocumentModel.probability

    def listen(self, context):
        found.append(tell(self, context))
        return found[-1]

    monkeypatch.setattr(SameDocumentModel, "probability", listen)
    pools = read_pools([SHARED / "data"], sets=["natural"])
    for pool, other in zip(pools[:8], pools[100:108], strict=True):
        result = reranker.rerank(pool.question, [one.text for one in other.passages])
        assert not result.kept
    assert np.mean(found) < 0.5


@pytest.mark.parametrize(("n_titles", "asked"), [(1, True), (2, False)])
def test_passages_of_two_titles_are_not_of_one_paper(reranker, monkeypatch, n_titles, asked):
    calls = []
    tell = SameDocumentModel.probability
    listen = lambda self, context: calls.append(context) or tell(self, context)  # noqa: E731
    monkeypatch.setattr(SameDocumentModel, "probability", listen)
    passages = [
        Document(
            f"Wax coating number {n} kept apples firm.", metadata={"title": f"T{n % n_titles}"}
        )
        for n in range(24)
    ]
    reranker.rerank("Does wax coating keep apples firm?", passages)
    assert bool(calls) is asked


def test_the_doctor_tries_them_in_less_than_a_second():
    started = time.monotonic()
    [found] = check_local()
    assert found.status == "ok"
    assert time.monotonic() - started < 1


def test_embeddings_put_what_is_alike_together():
    near, also, far = EvidenceEmbeddings().embed_documents(
        ["Shade reduced leaf rust in coffee.", "Coffee in shade had less rust.", "Dogs ran fast."]
    )
    close, apart = (sum(a * b for a, b in zip(near, other, strict=True)) for other in (also, far))
    assert close > apart + 0.2
