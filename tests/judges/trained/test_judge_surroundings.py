"""What a passage gains from its company, on passages of random numbers; and the head on top."""

import json
from dataclasses import replace

import numpy as np
import pytest

from deepera_graph.judges.trained.features import PassageFeatures, PassageReading, ResultsClassifier
from deepera_graph.judges.trained.pool_features import (
    CONTEXT_FEATURES,
    RANKING_FEATURES,
    compute_context_features,
    compute_pool_features,
)
from deepera_graph.judges.trained.reading.vectors import TokenCounts, logit, sigmoid
from deepera_graph.judges.trained.scorer import (
    N_SAME_DOCUMENT,
    AnswerabilityModel,
    EvidenceScorer,
    PassageRanker,
    PlattScaling,
    SameDocumentModel,
    SinglePassageScorer,
    list_answerability_inputs,
    list_same_document_inputs,
    log_pool_size,
)
from deepera_graph.judges.trained.trees import Trees

COUNTS = TokenCounts(50, {"rust": 9, "shade": 3})
SUPPORT = CONTEXT_FEATURES.index("support")
QUESTION = "Does shade reduce rust?"
WORDS = ["rust", "shade", "12", "31", "HbA1c", "leaf", "sun", "coffee", "plots", "β"]


def one_split(feature, limit, low, high):
    return Trees(
        roots=np.array([0]),
        feature=np.array([feature, 0, 0]),
        limit=np.array([limit, 0, 0]),
        missing_left=np.array([True, False, False]),
        left=np.array([1, 1, 2]),
        right=np.array([2, 1, 2]),
        value=np.array([0, low, high]),
        depth=1,
        start=0.1,
    )


TOPIC, LINK = one_split(0, 0.0, -2, 1), one_split(2, 0.3, -1, 2)


def pool(n, seed=0):
    random = np.random.default_rng(seed)
    texts = [" ".join(random.choice(WORDS, 6)) for _ in range(n)]
    reads = []
    for _ in range(n):
        vector = random.normal(size=12).astype(np.float32)
        numbers = PassageFeatures._make(random.normal(size=len(PassageFeatures._fields)).tolist())
        tokens = random.random((3, 4), np.float32)
        reads.append(PassageReading(numbers, vector / np.linalg.norm(vector), tokens))
    return texts, reads


def around(texts, reads):
    found = compute_pool_features(COUNTS, QUESTION, texts, reads)
    topics = 1 / (1 + np.exp(-TOPIC.predict(found.topic_features())))
    topics = topics + 1e-3 * found.features[:, 0]  # no two are equal
    return compute_context_features(found, topics, LINK)


@pytest.fixture(scope="module")
def head():
    own = one_split(1, 0.0, -1.5, 0.7)
    beside = one_split(len(PassageFeatures._fields) + CONTEXT_FEATURES.index("support"), 0.5, -1, 2)
    scale, scale_alone = PlattScaling([1.2], -0.5), PlattScaling([0.9], -1.0)
    there = AnswerabilityModel([0.2, 0.5, 1.0, -0.3], 0.3)
    spread = one_split(RANKING_FEATURES.index("cosine, z-score"), 0.5, -1, 1)
    random = np.random.default_rng(5)
    return EvidenceScorer(
        counts=COUNTS,
        results=ResultsClassifier(random.normal(size=12), 0.1, random.normal(size=12), -0.2),
        topic=TOPIC,
        link=LINK,
        question=PassageRanker(beside, own, scale, there),
        article=PassageRanker(spread, own, scale, there),
        claim=PassageRanker(own, beside, scale_alone, there),
        question_alone=SinglePassageScorer(own, scale_alone),
        claim_alone=SinglePassageScorer(one_split(0, 0.2, -1, 1), scale),
        same_document=SameDocumentModel([2.0, -1.0, 3.0, 0.5, 0.1, *[0.0] * 15], -1.0),
        sentence=one_split(1, 0.5, -1, 1),
        operating_point=0.4,
        about={"seed": 0},
    )


@pytest.mark.parametrize("n", [2, 3, 9, 25])
def test_the_order_of_passages_changes_no_number(n):
    texts, reads = pool(n)
    rows = around(texts, reads)
    order = np.random.default_rng(1).permutation(n)
    again = around([texts[i] for i in order], [reads[i] for i in order])
    assert rows.shape == (n, len(CONTEXT_FEATURES))
    assert np.isfinite(rows).all()
    assert again == pytest.approx(rows[order], abs=1e-9)


def test_a_passage_alone_and_copies_of_one_have_no_company():
    texts, reads = pool(1)
    assert np.isnan(around(texts, reads)).all()
    assert np.isnan(around(texts * 3, reads * 3)).all()


def test_a_copy_supports_its_twin_no_more_than_any_other_does():
    texts, reads = pool(5)
    rows = around(texts, reads)
    with_copy = around([*texts, texts[0]], [*reads, reads[0]])
    for name in ("support", "link", "top_cosine", "top_words", "lead"):
        column = CONTEXT_FEATURES.index(name)
        assert with_copy[0, column] == with_copy[5, column]
        assert with_copy[0, column] <= rows[0, column] + 0.05


def test_the_size_of_a_pool_counts_up_to_forty():
    assert [log_pool_size(n) for n in (1, 40, 41, 1000)] == pytest.approx([0, *[np.log(40)] * 3])


def test_a_token_that_all_passages_match_tells_none_of_them_apart():
    texts, reads = pool(6)
    subject, relation = np.full(6, 0.95), np.array([0.9, 0.2, 0.3, 0.25, 0.2, 0.1])
    told = [
        replace(one, tokens=np.array([[s, r]], np.float32))
        for one, s, r in zip(reads, subject, relation, strict=True)
    ]
    telling = around(texts, told)[:, CONTEXT_FEATURES.index("telling")]
    assert telling == pytest.approx(relation, abs=1e-3)
    lead = around(texts, told)[:, CONTEXT_FEATURES.index("telling_near_lead")]
    assert lead[0] == pytest.approx(0.6, abs=1e-3)
    assert (lead[1:] < 0).all()


def test_a_passage_scores_what_it_scores_whatever_its_order_value_is_compared_with(head):
    order, absolute = np.array([0.0, 2.0, -1.0]), np.array([1.0, 0.5, -2.0])
    chances = head.question.scale.probabilities(absolute + order)
    there = head.question.presence.probability(absolute, order)
    assert head.question.combine(absolute, order) == pytest.approx(chances * there)


@pytest.mark.parametrize("question", [QUESTION, "Shade reduces rust"])
@pytest.mark.parametrize("n", [1, 2, 12])
def test_a_head_judges_the_same_after_its_file(head, tmp_path, question, n):
    texts, reads = pool(n)
    head.save(tmp_path / "head.json")
    again = EvidenceScorer.load(tmp_path / "head.json")
    assert again.to_dict() == head.to_dict() == json.loads((tmp_path / "head.json").read_text())
    found, other = (one.score_passages(question, texts, reads) for one in (head, again))
    assert found.evidence.tolist() == other.evidence.tolist()
    shown = compute_pool_features(COUNTS, question, texts, reads)
    topics = sigmoid(head.topic.predict(shown.topic_features()))
    for numbers in (found.evidence, topics, shown.results):
        assert ((numbers >= 0) & (numbers <= 1)).all()
    support = compute_context_features(shown, topics, head.link)[:, SUPPORT]
    assert np.isnan(support).tolist() == [n == 1] * n


def test_questions_and_claims_have_rankings_of_their_own(head):
    texts, reads = pool(4)
    asked = head.score_passages(QUESTION, texts, reads).evidence
    swapped = replace(head, question=head.claim, claim=head.question)
    assert swapped.score_passages("Shade reduces rust", texts, reads).evidence.shape == asked.shape
    assert not np.array_equal(swapped.score_passages(QUESTION, texts, reads).evidence, asked)


def test_presence_lowers_all_scores_of_a_pool_alike(head):
    texts, reads = pool(9)
    sure = replace(head.claim, presence=AnswerabilityModel([0.0] * 4, 50.0))
    doubtful = replace(head.claim, presence=AnswerabilityModel([0.0] * 4, 0.0))
    scores = [
        replace(head, claim=one).score_passages("Shade reduces rust", texts, reads).evidence
        for one in (sure, doubtful)
    ]
    assert scores[1] == pytest.approx(scores[0] / 2)


def test_both_rankings_have_the_part_in_a_judgement_that_each_may_be_right(head):
    texts, reads = pool(24)

    def judged(start, *, of_several=False):
        one_paper = SameDocumentModel([0.0] * N_SAME_DOCUMENT, start)
        knows = replace(head, same_document=one_paper)
        return knows.score_passages(QUESTION, texts, reads, of_several=of_several).evidence

    several, one, doubtful = judged(-50.0), judged(50.0), judged(0.0)
    assert not np.array_equal(several, one)
    assert np.array_equal(judged(50.0, of_several=True), several)
    assert logit(doubtful) == pytest.approx((logit(several) + logit(one)) / 2)


def test_log_odds_undo_probabilities_and_are_finite_for_what_is_certain():
    odds = np.array([-9.0, 0.0, 2.5])
    assert logit(sigmoid(odds)) == pytest.approx(odds)
    assert logit(np.array([0.0, 1.0])) == pytest.approx([-13.8155, 13.8155], abs=1e-3)


def test_a_few_passages_are_never_taken_for_one_paper():
    sure = SameDocumentModel([0.0] * N_SAME_DOCUMENT, 50.0)
    parts = [sure.probability(around(*pool(n))) for n in (2, 20, 22, 25, 30, 40)]
    assert parts == pytest.approx([0, 0, 0.2, 0.5, 1, 1])


def test_a_copy_beside_one_text_does_not_hide_what_the_pool_is_like():
    texts, reads = pool(3)
    found = around([*texts, texts[0]], [*reads, reads[0]])
    lone = found.copy()
    lone[0] = np.nan
    assert list_same_document_inputs(lone).tolist() == list_same_document_inputs(found).tolist()


def test_presence_looks_at_the_best_two_passages():
    shown = list_answerability_inputs(np.array([0.0, 2.0, 0.5]), np.array([0.1, 0.3, 0.9]))
    assert shown == pytest.approx([2.0, 0.5, 0.9, np.log(3)])
    assert list_answerability_inputs(np.array([2.0]), np.array([0.3]))[:2].tolist() == [2.0, 2.0]


def test_a_head_whose_parts_see_other_numbers_is_refused(head):
    plain = head.to_dict()
    for name, part in (("scale", "PlattScaling"), ("presence", "AnswerabilityModel")):
        shorter = {**plain["question"][name], "weights": plain["question"][name]["weights"][:-1]}
        with pytest.raises(ValueError, match=f"{part} takes"):
            EvidenceScorer.from_dict({**plain, "question": {**plain["question"], name: shorter}})
