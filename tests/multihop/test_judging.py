"""Who may score batches of adaptive retrieval, and who may not."""

import asyncio
import math
from dataclasses import replace

import pytest
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from deepera_graph import (
    EvidenceReranker,
    Judge,
    cascade_backend,
    encoder_backend,
    load_backend,
    screened_backend,
)
from deepera_graph.agents.twin import ado, do
from deepera_graph.errors import CallError, RoleError, SettingsError
from deepera_graph.judges.adapters import EmbeddingJudge, PairJudge
from deepera_graph.multihop.passages.graph import NeighbourGraph
from deepera_graph.multihop.passages.judging import find_judge, score_passages
from deepera_graph.schema import Intent, Judgement
from deepera_graph.stores.words import WordIndex
from langchain_deepera import EvidenceCrossEncoder, EvidenceEmbeddings
from multihop.conftest import WordEmbeddings
from support.scripted import TEA_SCORES, Script

QUESTION = "Does tea lower glucose?"
TEA = [Document(id=text, page_content=f"Tea: {text}.") for text in TEA_SCORES]


class Lengths(BaseCrossEncoder):
    """Scores a pair by the length of its text, as a logit."""

    def score(self, text_pairs):
        return [len(text) - 30.0 for _, text in text_pairs]


def scores(judge, passages=TEA, question=QUESTION):
    found = do(score_passages(judge, question, passages))
    asynchronous = asyncio.run(ado(score_passages(judge, question, passages)))
    assert [*map(str, asynchronous)] == [*map(str, found)]
    return found


def test_embeddings_score_by_cosine(passages, make_embeddings):
    found = scores(find_judge(make_embeddings()), passages)
    embeddings = make_embeddings()
    asked = embeddings.embed_query(QUESTION)
    for one, score in zip(passages, found, strict=True):
        text = embeddings.embed_query(one.page_content)
        cosine = sum(a * b for a, b in zip(asked, text, strict=True))
        assert score == pytest.approx((1 + cosine) / 2, abs=1e-6)


def test_vectors_of_a_graph_with_the_same_embeddings_are_taken(passages, make_embeddings):
    embeddings = make_embeddings()
    graph = NeighbourGraph.build(passages, embeddings, 3)
    changed = [*passages[:-1], Document(id="hills", page_content="Goats graze.")]
    embeddings.texts.clear()
    found = scores(find_judge(embeddings, graph), changed)
    assert embeddings.texts == ["Goats graze."] * 2  # sync and async
    assert found == pytest.approx(scores(find_judge(make_embeddings()), changed), abs=1e-6)
    others = make_embeddings(model="others")
    scores(find_judge(others, graph), passages)
    assert len(others.texts) == 2 * len(passages)


def test_without_a_judge_the_embeddings_of_the_graph_score(passages, make_embeddings, tmp_path):
    embeddings = make_embeddings()
    graph = NeighbourGraph.build(passages, embeddings, 3)
    assert scores(find_judge(None, graph), passages) == scores(
        find_judge(embeddings, graph), passages
    )
    graph.save(tmp_path)
    with pytest.raises(SettingsError, match="built with WordEmbeddings:words: give these"):
        find_judge(None, NeighbourGraph.load(tmp_path))


def test_with_a_graph_by_words_meaning_and_words_score_together(passages, make_embeddings):
    by_words = NeighbourGraph.of_words(passages, 3)
    question = "Where does the river Ebb rise?"
    near = scores(EmbeddingJudge(make_embeddings()), passages, question)
    shares = by_words.word_shares(question, [one.page_content for one in passages])
    expected = [(one + 0.5 * share) / 1.5 for one, share in zip(near, shares, strict=True)]
    assert scores(find_judge(None, by_words, make_embeddings()), passages, question) == expected
    assert max(shares) < 1


def test_the_word_part_is_bm25_over_the_most_it_can_be(passages):
    graph = NeighbourGraph.of_words(passages, 3)
    question = "Where does the river Ebb rise?"
    shares = graph.word_shares(question, [one.page_content for one in passages])
    index = WordIndex()
    index.add(passages)
    scores = {one.id: one.metadata["retrieval_score"] for one in index.search(question)}
    ratios = [
        scores[one.id] / share
        for one, share in zip(passages, shares, strict=True)
        if one.id in scores
    ]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-5)
    assert all(
        (share > 0) == (one.id in scores) for one, share in zip(passages, shares, strict=True)
    )
    assert graph.word_shares("Who?", ["Nobody."]) == [0.0]
    with pytest.raises(SettingsError, match="by meaning has no words"):
        NeighbourGraph.build(passages, WordEmbeddings(), 3).word_shares(question, ["Ebb."])


def test_without_a_judge_the_embeddings_of_a_store_score(passages, make_embeddings, tmp_path):
    NeighbourGraph.build(passages, make_embeddings(), 3).save(tmp_path)
    loaded = NeighbourGraph.load(tmp_path)
    found = scores(find_judge(None, loaded, make_embeddings()), passages)
    assert found == scores(EmbeddingJudge(make_embeddings(), loaded.find_vectors), passages)


@pytest.mark.full
@pytest.mark.parametrize("given", ["backend", "reranker"])
def test_a_backend_scores_as_its_reranker_does(given):
    backend = Script(TEA_SCORES).backend()
    judge = backend if given == "backend" else EvidenceReranker(backend, top_n=1)
    found = scores(find_judge(judge))
    result = EvidenceReranker(backend).rerank(QUESTION, TEA)
    by_id = {one.id: one.score for one in result.all_passages}
    assert found == [by_id[one.id] for one in TEA]


def test_the_intent_of_a_question_is_recognized_once():
    asked = []

    def recognize(task):
        asked.append(task["question"])
        return Intent(
            topic="tea", entity_type="food: tea", intent="other", expected_answer_type="other"
        )

    scorer = find_judge(replace(Script(TEA_SCORES).backend(), intent=RunnableLambda(recognize)))
    for question in (QUESTION, QUESTION, "Does tea help?", QUESTION):
        do(score_passages(scorer, question, TEA[:2]))
    assert asked == [QUESTION, "Does tea help?"]


@pytest.mark.full
def test_a_passage_that_a_backend_fails_on_is_an_error_and_no_zero():
    text = TEA[0].page_content
    found = scores(
        find_judge(Script({text: CallError("no idea"), **TEA_SCORES}).backend()), TEA[:3]
    )
    assert "no idea" in str(found[0])
    assert found[1:] == scores(find_judge(Script(TEA_SCORES).backend()), TEA[1:3])


@pytest.mark.parametrize(
    "backend",
    [
        "local",
        lambda: cascade_backend(load_backend("rules"), Script(TEA_SCORES).backend()),
        lambda: screened_backend(load_backend("local"), Script(TEA_SCORES).backend()),
        EvidenceCrossEncoder,
        lambda: EvidenceReranker("local"),
    ],
    ids=["local", "cascade", "screened by local", "cross-encoder of ours", "reranker"],
)
def test_a_judge_whose_scores_depend_on_the_company_is_refused(backend):
    with pytest.raises(SettingsError, match="depend on the passages that it reads together"):
        find_judge(backend if isinstance(backend, str) else backend())


@pytest.mark.full
@pytest.mark.parametrize(
    "backend",
    [
        lambda: "rules",
        lambda: encoder_backend(Lengths()),
        lambda: screened_backend(load_backend("rules"), Script(TEA_SCORES).backend()),
        lambda: EvidenceCrossEncoder("rules"),
        lambda: {"kind": "local", "judge": "rules"},
    ],
    ids=["rules", "encoder", "screened", "cross-encoder of ours", "plain"],
)
def test_scores_of_an_absolute_judge_do_not_depend_on_the_batch(backend):
    scorer = find_judge(backend())
    together = scores(scorer)
    assert [scores(scorer, [one])[0] for one in TEA] == together


def test_a_cross_encoder_is_mapped_from_logits_and_a_probability_is_taken_as_it_is():
    mapped = scores(find_judge(Lengths()))
    logits = [len(one.page_content) - 30.0 for one in TEA]
    assert mapped == pytest.approx([1 / (1 + math.exp(-one)) for one in logits])
    for one, logit in zip(scores(PairJudge(Lengths())), logits, strict=True):
        if 0 <= logit <= 1:
            assert one == logit
        else:
            assert "not in [0, 1]: is it a logit?" in str(one)
    assert scores(PairJudge(lambda question, texts: [0.25 for _ in texts])) == [0.25] * len(TEA)
    with pytest.raises(SettingsError, match="scale must be .*, got 'cosine'"):  # noqa: RUF043
        PairJudge(Lengths(), scale="cosine")


def test_a_judge_of_ones_own_scores_through_a_reranker():
    class Halves(Judge):
        def judge(self, batch, config=None):
            return [Judgement(score=0.5) for _ in batch["windows"]]

    assert scores(find_judge(Halves())) == [0.5] * len(TEA)
    assert EvidenceReranker(
        replace(load_backend("rules"), judge=EmbeddingJudge(WordEmbeddings()), spec=None)
    ).rerank(QUESTION, TEA).all_passages[0].score == max(scores(find_judge(WordEmbeddings())))


def test_ranks_of_a_first_stage_do_not_hinder_a_backend():
    late = [
        one.model_copy(update={"metadata": {"retrieval_rank": rank}})
        for rank, one in zip((9, 3, 12), TEA, strict=False)
    ]
    judge = find_judge(Script(TEA_SCORES).backend())
    assert scores(judge, late) == scores(judge, TEA[: len(late)])


def test_a_function_is_given_titles_and_texts():
    seen = []

    def judge(question, texts):
        seen.append((question, texts))
        return [0.5 for _ in texts]

    titled = Document(id="t", page_content="Text.", metadata={"title": "Title"})
    assert do(score_passages(find_judge(judge), QUESTION, [titled])) == [0.5]
    assert seen == [(QUESTION, ["Title\nText."])]


@pytest.mark.parametrize(
    ("judge", "cause"),
    [
        (lambda q, t: [0.5], "the scorer gave 1 scores for 2 passages"),
        (lambda q, t: ["high", 1], "the scorer failed: .*could not convert"),
        (lambda q, t: [None, None], "no score"),
        (lambda q, t: [float("inf")] * 2, "the score is inf, no number"),
    ],
)
def test_unusable_scores_are_errors_and_no_zeros(judge, cause):
    found = do(score_passages(find_judge(judge), QUESTION, TEA[:2]))
    assert all(isinstance(one, RoleError) for one in found)
    with pytest.raises(RoleError, match=cause):
        raise found[0]


def test_embeddings_that_fail_fail_each_passage():
    class Broken(EvidenceEmbeddings):
        def embed_documents(self, texts):
            raise ConnectionError("the wire is cut")

    found = do(score_passages(find_judge(Broken()), QUESTION, TEA[:2]))
    assert ["the embeddings failed" in str(one) for one in found] == [True, True]
