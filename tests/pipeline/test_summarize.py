"""Summaries: faithful, or replaced by the passage's own words."""

import pytest

from deepera_graph import EvidenceReranker, Judgement, Summary, Usage
from deepera_graph.testing import judged, scripted_backend

TEXT = "In 212 adults green tea lowered fasting glucose by 0.4 mmol/L. The trial was blind."
QUOTE = "green tea lowered fasting glucose by 0.4 mmol/L"
COST = Usage(1, 20, 5)


def reranked(summary, quote=QUOTE, score=0.9, **settings):
    backend = scripted_backend(
        lambda task: judged(Judgement(score=score, reason="why", quote=quote)),
        summary=lambda task: summary if isinstance(summary, Exception | dict) else Summary(
            text=summary, usage=COST
        ),
    )  # fmt: skip
    result = EvidenceReranker(backend, **settings).rerank("Does tea lower glucose?", [TEXT])
    return result, result.passages[0]


@pytest.mark.parametrize(
    "summary",
    [
        "Green tea lowered fasting glucose by 0.4 mmol/L in 212 adults.",
        "  In 212 adults green tea lowered fasting glucose.\n",
    ],
)
def test_a_summary_in_the_passages_own_terms_is_kept(summary):
    result, one = reranked(summary)
    assert (one.summary, one.summary_status, one.kept) == (summary.strip(), "ok", True)
    assert result.to_documents()[0].page_content == TEXT
    assert result.to_documents()[0].metadata["deepera"]["summary"] == summary.strip()
    assert result.usage["summarize"] == COST


@pytest.mark.parametrize(
    ("summary", "drifted"),
    [
        ("Green tea lowered fasting glucose by 0.6 mmol/L.", "0.6"),
        ("Green tea lowered glucose in 21 adults.", "21"),
        ("In 212 adults EGCG lowered fasting glucose.", "EGCG"),
        ("Green tea lowered fasting glucose by 0.4 mg/L.", "mg/L"),
        (
            "Green tea raised fasting glucose by 0.4 mmol/L.",
            "raised, where the passage has lowered",
        ),
    ],
)
def test_a_summary_that_drifts_is_replaced_by_the_quote_and_flagged(summary, drifted):
    result, one = reranked(summary)
    assert (one.summary, one.summary_status, one.kept) == (QUOTE, "drifted", True)
    assert one.reason.startswith("why; ")
    assert drifted in one.reason
    assert result.outcome == "ok"


@pytest.mark.parametrize("quote", ["", "green tea helps a lot"])
def test_without_a_quote_of_the_passage_its_text_stands_in(quote):
    _, one = reranked("Tea lowered glucose by 9 %.", quote=quote)
    assert (one.summary, one.summary_status) == (TEXT, "drifted")


def test_the_title_counts_as_the_passages_own_words():
    backend = scripted_backend(
        lambda task: judged(0.9), summary=lambda task: Summary(text="The KYOTO trial was blind.")
    )
    passage = {"text": TEXT, "title": "The KYOTO trial"}
    one = EvidenceReranker(backend).rerank("Does tea lower glucose?", [passage]).passages[0]
    assert one.summary_status == "ok"


def test_an_empty_summary_drops_the_passage_and_may_leave_nothing():
    result, one = reranked(" ")
    assert (one.kept, one.summary_status, one.score) == (False, "none", 0.9)
    assert one.reason == "why; the summarizer found no answer in the passage"
    assert (result.outcome, result.to_documents(), result.fallback) == ("no_evidence", [], None)
    assert result.dropped == (one,)


def test_an_empty_summary_drops_only_its_own_passage():
    backend = scripted_backend(
        {"Good one.": 0.9, "Bad one.": 0.95},
        summary=lambda task: Summary(text="" if task["text"] == "Bad one." else "Good one."),
    )
    result = EvidenceReranker(backend).rerank("Is it good?", ["Good one.", "Bad one."])
    assert [one.text for one in result.kept] == ["Good one."]
    assert [one.rank for one in result.passages] == [1, 2]
    assert result.outcome == "ok"


@pytest.mark.parametrize("on_empty", ["top1", "topn", "original"])
def test_what_on_empty_put_back_is_not_dropped_for_an_empty_summary(on_empty):
    result, one = reranked("", score=0.3, on_empty=on_empty)
    assert (one.kept, one.summary_status, result.outcome) == (True, "none", "no_evidence")
    assert result.to_documents()[0].page_content == TEXT
    assert result.fallback == on_empty


@pytest.mark.parametrize("failure", [RuntimeError("broke"), {"txt": "wrong key"}])
def test_a_failed_summary_gives_the_passage_itself(failure):
    result, one = reranked(failure)
    assert (one.summary, one.summary_status, one.kept) == (TEXT, "failed", True)
    assert "broke" in one.reason or "text: Field required" in one.reason
    assert result.outcome == "ok"


def test_content_passage_makes_no_summary_calls():
    result, one = reranked("Green tea.", content="passage")
    assert (one.summary, one.summary_status) == ("", "")
    assert result.to_documents()[0].page_content == TEXT
    assert "summarize" not in result.usage


def test_only_what_is_kept_is_summarized():
    backend = scripted_backend({f"Text {n}.": n / 10 for n in range(11)})
    result = EvidenceReranker(backend, threshold=0.5, top_n=3).rerank(
        "Which text?", [f"Text {n}." for n in range(11)]
    )
    assert sorted(task["text"] for task in backend.summarizer.tasks) == [
        "Text 10.", "Text 8.", "Text 9.",
    ]  # fmt: skip
    assert [one.summary for one in result.kept] == ["Text 10.", "Text 9.", "Text 8."]


def test_a_long_passage_is_summarized_from_the_window_that_counted():
    filler, finding = "Nothing here. " * 40, "Tea lowered glucose. "
    text = filler + finding + filler
    backend = scripted_backend(lambda task: judged(0.9 if finding in task["text"] else 0.1))
    reranker = EvidenceReranker(backend, max_passage_chars=200)
    one = reranker.rerank("Does tea lower glucose?", [text]).passages[0]
    assert one.windowed
    [task] = backend.summarizer.tasks
    assert task["text"] == text[slice(*one.window)]
    assert finding in task["text"]


@pytest.mark.parametrize("content", ["both", "summary", "passage"])
def test_a_summary_given_along_with_the_score_is_used_whatever_is_returned(content):
    backend = scripted_backend(lambda task: judged(0.9, summary="Good one."))
    result = EvidenceReranker(backend, content=content).rerank("Which?", ["Good one. More."])
    assert backend.summarizer.calls == 0
    assert result.kept[0].summary == ("" if content == "passage" else "Good one.")
