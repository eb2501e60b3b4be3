"""What is kept, in which order, and what the ranking says."""

import random
from dataclasses import replace
from itertools import product

import pytest
from langchain_core.documents import Document

from deepera_graph import BackendError, EvidenceReranker, PerIntent, Quantile, Settings
from deepera_graph.errors import RoleError
from deepera_graph.pipeline.intent import UNKNOWN
from deepera_graph.pipeline.select import NO_TEXT, select
from deepera_graph.testing import judged, scripted_backend

LEVELS = [0.1, 0.35, 0.6, 0.8, 0.8, 0.85, 0.9, None]
CHANCE = random.Random(7)
SCORES = [CHANCE.choice(LEVELS) for _ in range(30)]
RANKS = CHANCE.sample(range(1, 16), 15) * 2  # every first-stage rank occurs twice
PASSAGES = [
    Document(id=f"p{n}", page_content=f"Passage {n}.", metadata={"retrieval_rank": rank})
    for n, rank in enumerate(RANKS)
]
GRID = list(product(
    [0.3, 0.8, 0.9, 0.95], [1, 3, 10, 30], ["empty", "top1", "topn", "original"],
    ["score", "retrieval"],
))  # fmt: skip


def expected(threshold, n, on_empty, order):
    """The same rules once more, as plainly as they can be put: (kept, ranking), as indices."""
    judged = [i for i in range(30) if SCORES[i] is not None]
    best = sorted(judged, key=lambda i: (-SCORES[i], RANKS[i], i))
    first = sorted(judged, key=lambda i: (RANKS[i], i))
    failed = sorted((i for i in range(30) if SCORES[i] is None), key=lambda i: (RANKS[i], i))
    kept = [i for i in best if SCORES[i] >= threshold][:n]
    if not kept and on_empty == "original":
        kept = first[:n]
    elif not kept:
        kept = {"empty": [], "top1": best[:1], "topn": best[:n]}[on_empty]
    if order == "retrieval":
        kept = [i for i in first if i in kept]
    return kept, kept + [i for i in best if i not in kept] + failed


@pytest.fixture(scope="module")
def backend():
    scores = {
        f"Passage {n}.": RuntimeError("out of order") if score is None else score
        for n, score in enumerate(SCORES)
    }
    return scripted_backend(scores)


@pytest.mark.full
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow, id="all"), 3])
@pytest.mark.parametrize("order", ["score", "retrieval"])
@pytest.mark.parametrize("on_empty", ["empty", "top1", "topn", "original"])
def test_thirty_passages_come_out_as_computed_by_hand(backend, on_empty, order, every):
    """Of every third case each threshold and each number is in one at least."""
    cases = [one for one in GRID if one[2:] == (on_empty, order)]
    assert len(cases) == 16
    for threshold, n, _, _ in cases[::every]:
        reranker = EvidenceReranker(
            backend, threshold=threshold, top_n=n, on_empty=on_empty, order=order,
            content="passage", max_failed_share=1,
        )  # fmt: skip
        result = reranker.rerank("Which passage is it?", PASSAGES)
        kept, ranking = expected(threshold, n, on_empty, order)
        assert [one.id for one in result.kept] == [f"p{i}" for i in kept]
        assert [one.id for one in result.passages] == [f"p{i}" for i in ranking]
        assert [one.rank for one in result.passages] == list(range(1, 31))
        assert [one.score for one in result.passages] == [SCORES[i] for i in ranking]
        none_passed = threshold > 0.9
        assert result.outcome == ("no_evidence" if none_passed else "ok")
        assert result.fallback == (on_empty if none_passed and on_empty != "empty" else None)


def judgement(index, score, start=0, end=None, **changes):
    return {
        "index": index, "id": str(index), "start": start, "end": end or 10, "score": score,
        "status": "failed" if score is None else "scored", "reason": f"{start}", "quote": "",
        "unusable": False, **changes,
    }  # fmt: skip


def selected(texts, judgements, **settings):
    state = {
        "question": "q",
        "passages": [Document(id=str(n), page_content=text) for n, text in enumerate(texts)],
        "judgements": judgements,
        "intent": {"fields": {**UNKNOWN, "intent": "mechanism"}, "status": "fallback", "cause": ""},
    }
    return select(state, settings=Settings(**settings))


def test_the_threshold_is_inclusive():
    update = selected(["x" * 10] * 2, [judgement(0, 0.8), judgement(1, 0.7999999)])
    assert [one["kept"] for one in update["ranking"]] == [True, False]


def test_verdicts_may_come_in_any_order():
    texts = ["x" * 10] * 6
    judgements = [judgement(n, score) for n, score in enumerate([0.5, 0.9, 0.9, 0.2, 1.0, 0.5])]
    once = selected(texts, judgements)
    assert selected(texts, judgements[::-1]) == once
    assert [one["index"] for one in once["ranking"]] == [4, 1, 2, 0, 5, 3]


@pytest.mark.parametrize(
    ("windows", "score", "window", "status"),
    [
        pytest.param([0.3, 0.9, 0.5], 0.9, [50, 150], "scored", id="the-best-counts"),
        pytest.param([0.9, 0.9, 0.1], 0.9, [0, 100], "scored", id="the-first-of-equals"),
        pytest.param([0.9, None, 0.1], 0.9, [0, 100], "scored", id="a-failure-beside-evidence"),
        pytest.param([0.8, None, 0.1], 0.8, [0, 100], "scored", id="at-the-threshold"),
        pytest.param([0.7, None, 0.1], None, [50, 150], "failed", id="evidence-may-be-unread"),
        pytest.param([None, None, None], None, [0, 100], "failed", id="nothing-read"),
    ],
)
def test_windows_of_a_long_passage_are_joined(windows, score, window, status):
    places = [(0, 100), (50, 150), (100, 200)]
    judgements = [judgement(0, value, *place) for value, place in zip(windows, places, strict=True)]
    [record] = selected(["x" * 200], judgements)["ranking"]
    assert (record["score"], record["window"], record["status"]) == (score, window, status)
    assert record["kept"] == (score is not None and score >= 0.8)


def test_a_rule_sees_one_score_a_passage_however_many_windows_it_has():
    long = [judgement(0, value, n * 50, n * 50 + 100) for n, value in enumerate([0.9] * 9)]
    short = [judgement(1, 0.7), judgement(2, 0.6), judgement(3, 0.55)]
    update = selected(
        ["x" * 500, *["y" * 10] * 3], [*long, *short], threshold=Quantile(share=0.5, floor=0)
    )
    assert update["threshold"] == 0.7


def test_a_rule_may_look_at_the_intent():
    update = selected(
        ["x" * 10], [judgement(0, 0.6)], threshold=PerIntent(values={"mechanism": 0.6})
    )
    assert update["ranking"][0]["kept"]


def test_the_quote_is_found_where_it_was_read():
    text = "Tea helps. " * 20
    long = judgement(0, 0.9, 110, 220, quote="Tea helps.")
    [record] = selected([text], [judgement(0, 0.1, 0, 120), long])["ranking"]
    assert record["quote_span"] == [110, 120]
    assert text[slice(*record["quote_span"])] == record["quote"]


def test_a_quote_that_is_not_in_the_passage_has_no_span():
    [record] = selected(["x" * 10], [judgement(0, 0.9, quote="yyy")])["ranking"]
    assert record["quote_span"] is None


def test_a_passage_without_text_is_a_failure_with_its_cause():
    update = selected(["x" * 10, " "], [judgement(0, 0.9)], max_failed_share=0.5)
    last = update["ranking"][-1]
    assert (last["score"], last["kept"], last["reason"]) == (None, False, NO_TEXT)
    assert update["outcome"] == "ok"


@pytest.mark.parametrize(
    ("n_failed", "share", "outcome"),
    [(2, 0.2, "ok"), (3, 0.2, "degraded"), (0, 0, "ok"), (1, 0, "degraded"), (7, 0.7, "ok")],
)
def test_a_run_is_degraded_above_the_share_not_at_it(n_failed, share, outcome):
    judgements = [judgement(n, None if n < n_failed else 0.9) for n in range(10)]
    assert selected(["x" * 10] * 10, judgements, max_failed_share=share)["outcome"] == outcome


def test_the_share_is_compared_without_rounding():
    judgements = [judgement(n, None if n < 29 else 0.9) for n in range(100)]
    assert selected(["x" * 10] * 100, judgements, max_failed_share=0.29)["outcome"] == "ok"


def test_a_degraded_run_stays_degraded_when_nothing_is_kept():
    judgements = [judgement(0, None), judgement(1, 0.1)]
    assert selected(["x" * 10] * 2, judgements)["outcome"] == "degraded"


@pytest.mark.parametrize("on_empty", ["top1", "topn", "original"])
def test_a_failed_passage_is_never_kept(on_empty):
    update = selected(["x" * 10], [judgement(0, None)], on_empty=on_empty)
    assert not update["ranking"][0]["kept"]
    assert update["fallback"] is None


def test_dropping_takes_failed_passages_out_of_the_ranking_and_lists_them():
    judgements = [judgement(0, None), judgement(1, 0.9), judgement(2, 0.1), judgement(3, None)]
    update = selected(["x" * 10] * 4, judgements, on_error="drop")
    assert [(one["id"], one["rank"]) for one in update["ranking"]] == [("1", 1), ("2", 2)]
    assert [(one["id"], one["rank"], one["score"]) for one in update["left_out"]] == [
        ("0", 0, None),
        ("3", 0, None),
    ]
    assert update["outcome"] == "degraded"


@pytest.mark.parametrize("on_error", ["drop", "raise"])
def test_what_the_budget_left_unjudged_is_no_error(on_error):
    skipped = {**judgement(1, None), "status": "skipped_budget"}
    update = selected(["x" * 10] * 2, [judgement(0, 0.9), skipped], on_error=on_error)
    assert [one["status"] for one in update["ranking"]] == ["scored", "skipped_budget"]
    assert update["outcome"] == "budget_stop"


def test_raising_names_the_first_failure():
    with pytest.raises(RoleError, match="passage '1' could not be judged: 0"):
        selected(["x" * 10] * 3, [judgement(0, 0.9), judgement(1, None)], on_error="raise")


def test_no_passages_is_an_outcome_of_its_own():
    assert selected([], [])["outcome"] == "nothing_retrieved"


@pytest.mark.parametrize(
    ("quote", "required", "kept", "reason"),
    [
        ("lowered it", True, True, "0"),
        ("Lowered  it", True, False, "0; held back: the quote is not in the passage"),
        ("", True, False, "0; held back: no evidence was named"),
        ("", False, True, "0"),
        ("not there", False, True, "0"),
    ],
)
def test_a_verdict_without_proof_in_the_passage_can_be_held_back(quote, required, kept, reason):
    backend = scripted_backend(lambda task: judged(0.9, quote=quote, reason="0"))
    reranker = EvidenceReranker(backend, require_evidence=required, content="passage")
    [one] = reranker.rerank("Does tea lower it?", ["Tea lowered it."]).passages
    assert (one.kept, one.score, one.reason) == (kept, 0.9, reason)


def test_a_quote_that_a_judge_made_up_is_held_back_where_it_names_its_evidence():
    backend = replace(
        scripted_backend(lambda task: judged(0.9, quote="not there", reason="0")),
        names_evidence=True,
    )
    texts = ["Tea lowered it."]
    [one] = EvidenceReranker(backend, content="passage").rerank("Does it?", texts).passages
    assert (one.kept, one.reason) == (False, "0; held back: the quote is not in the passage")
    [one] = EvidenceReranker(backend, require_evidence=False).rerank("Does it?", texts).passages
    assert one.kept


def test_what_is_held_back_leaves_room_for_what_is_not():
    quotes = {"Best. Bare.": "", "Good. Proven.": "Proven.", "Weak.": ""}
    scores = {"Best. Bare.": 0.95, "Good. Proven.": 0.85, "Weak.": 0.1}
    backend = scripted_backend(
        lambda task: judged(scores[task["text"]], quote=quotes[task["text"]])
    )
    reranker = EvidenceReranker(backend, require_evidence=True, top_n=1)
    result = reranker.rerank("Which?", list(scores))
    assert [one.text for one in result.passages] == ["Good. Proven.", "Best. Bare.", "Weak."]
    assert [one.kept for one in result.passages] == [True, False, False]
    assert "held back" not in result.passages[2].reason
    assert result.outcome == "ok"


def test_nothing_proven_is_no_evidence_and_on_empty_acts():
    backend = scripted_backend(lambda task: judged(0.9))
    reranker = EvidenceReranker(backend, require_evidence=True)
    assert reranker.rerank("Which?", ["a", "b"]).outcome == "no_evidence"
    filled = reranker.with_settings(on_empty="top1").rerank("Which?", ["a", "b"])
    assert ([one.id for one in filled.kept], filled.fallback) == (["1"], "top1")


def test_a_proven_window_counts_before_a_bare_one_with_a_higher_score():
    text = "Bare claim. " * 20 + "Proven fact. " * 20
    proven = judged(0.85, quote="Proven fact.")
    backend = scripted_backend(lambda task: proven if "Proven" in task["text"] else judged(0.95))
    settings = {"max_passage_chars": 200, "content": "passage"}
    [one] = EvidenceReranker(backend, require_evidence=True, **settings).rerank("q?", [text]).kept
    assert (one.score, text[slice(*one.quote_span)]) == (0.85, "Proven fact.")
    [one] = EvidenceReranker(backend, **settings).rerank("q?", [text]).kept
    assert (one.score, one.quote_span) == (0.95, None)
    naming = replace(backend, names_evidence=True)
    [one] = EvidenceReranker(naming, **settings).rerank("q?", [text]).kept
    assert (one.score, text[slice(*one.quote_span)]) == (0.85, "Proven fact.")


def test_a_backend_that_judged_nothing_is_to_blame_not_a_passage():
    dead = [judgement(n, None, unusable=True) for n in range(2)]
    with pytest.raises(BackendError):
        selected(["x" * 10] * 2, dead, on_error="raise")
