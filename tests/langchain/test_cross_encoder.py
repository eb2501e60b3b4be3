"""Our judges in the place of a LangChain cross-encoder."""

import pytest
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document

from deepera_graph import BackendError, DeepEraError, EvidenceReranker, InputError, SettingsError
from deepera_graph.errors import AnswerError
from deepera_graph.testing import scripted_backend
from langchain_deepera import EvidenceCrossEncoder
from support.list_judges import TEXTS, list_backend, run, scores

SCORES = {"low": 0.1, "high": 0.9, "middle": 0.5}


def test_it_is_a_cross_encoder():
    assert isinstance(EvidenceCrossEncoder(), BaseCrossEncoder)


def test_scores_come_back_in_the_order_of_the_pairs():
    backend = scripted_backend(SCORES)
    pairs = [
        ("Which tea?", "high"),
        ("Which lake?", "low"),
        ("Which tea?", "middle"),
        ("Which tea?", "high"),
        ("Which lake?", "high"),
    ]
    assert EvidenceCrossEncoder(backend).score(pairs) == [0.9, 0.1, 0.5, 0.9, 0.9]
    assert (backend.intent.calls, backend.summarizer.calls) == (2, 0)


@pytest.mark.full
def test_scores_are_those_of_the_reranker():
    texts = ["Wax kept apples firm for 9 weeks (p < 0.01).", "Apples were waxed by hand."]
    question = "Does wax keep apples firm?"
    ranked = EvidenceReranker("local").rerank(question, texts)
    expected = {one.text: one.score for one in ranked.passages}
    found = EvidenceCrossEncoder("local").score([(question, text) for text in texts])
    assert found == [expected[text] for text in texts]


def test_all_texts_of_a_question_are_judged_together():
    texts = [*TEXTS, TEXTS[0]]
    expected = dict(sorted(scores(run(list_backend(), texts)).items()))
    backend = list_backend()
    pairs = [("Which?", text) for text in texts] + [("Which lake?", TEXTS[2])]
    assert EvidenceCrossEncoder(backend).score(pairs) == [*expected.values(), 1.0]
    assert [len(batch["windows"]) for batch in backend.judge.batches] == [3, 1]


def test_no_pairs_are_no_scores():
    assert EvidenceCrossEncoder().score([]) == []


def test_langchain_reranks_with_it():
    documents = [Document(page_content=text, metadata={"from": text}) for text in SCORES]
    reranker = CrossEncoderReranker(model=EvidenceCrossEncoder(scripted_backend(SCORES)), top_n=2)
    found = reranker.compress_documents(documents, "Which?")
    assert [one.metadata["from"] for one in found] == ["high", "middle"]


@pytest.mark.parametrize("on_error", ["keep_last", "drop"])
def test_a_pair_that_could_not_be_judged_is_an_error(on_error):
    backend = scripted_backend({**SCORES, "bad": AnswerError("no number")})
    encoder = EvidenceCrossEncoder(backend, on_error=on_error)
    with pytest.raises(
        DeepEraError, match=r"question 'Which tea\?' and the text 'bad': .*no number"
    ):
        encoder.score([("Which tea?", "high"), ("Which tea?", "bad")])


def test_nothing_judged_at_all_is_an_error():
    backend = scripted_backend({"bad": AnswerError("no number")})
    with pytest.raises((BackendError, DeepEraError), match="no number"):
        EvidenceCrossEncoder(backend).score([("Which tea?", "bad")])


def test_blank_input_and_unknown_settings_are_named():
    with pytest.raises(InputError, match="question must not be empty"):
        EvidenceCrossEncoder().score([(" ", "text")])
    with pytest.raises(SettingsError, match="top_n"):
        EvidenceCrossEncoder(top_n=0)


def test_every_pair_gets_a_score_whatever_is_enough():
    encoder = EvidenceCrossEncoder(scripted_backend(SCORES), stop_after=1, round_size=1)
    pairs = [("Which tea?", text) for text in ("high", "low", "middle")]
    assert encoder.score(pairs) == [0.9, 0.1, 0.5]
