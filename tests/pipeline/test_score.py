"""What reaches the judge, and what becomes of its answers."""

import random

import pytest
from langchain_core.documents import Document

from deepera_graph import EvidenceReranker, Judgement, Usage
from deepera_graph.agents.role import CheckedRole
from deepera_graph.errors import AnswerError, CallError, RoleError
from deepera_graph.settings.budget import Limiter
from deepera_graph.testing import ScriptedRole, judged, scripted_backend

QUESTION = "Does tea lower glucose?"
FIELDS = {"topic", "entity_type", "intent", "expected_answer_type"}


def by_text(task):
    return judged((sum(map(ord, task["text"] + task["title"])) % 101) / 100)


def documents(n=12):
    return [
        Document(
            id=f"id{k}",
            page_content=f"Finding number {k * 37 % 11}, told {k} times.",
            metadata={
                "title": f"Title {k % 3}", "section": "Results", "label": "golden", "score": k,
                "retrieval_score": k / 10, "is_distractor": False,
            },
        )
        for k in range(n)
    ]  # fmt: skip


def verdicts(result):
    return {one.text: (one.score, one.reason, one.quote) for one in result.passages}


def test_the_judge_gets_exactly_what_it_may_see():
    backend = scripted_backend(by_text)
    EvidenceReranker(backend, threshold=0).rerank(QUESTION, documents())
    for task in backend.judge.tasks + backend.summarizer.tasks:
        assert task.keys() == {"question", "intent", "text", "title", "section"}
        assert task["intent"].keys() == FIELDS
        assert "golden" not in str(task)
        assert "distractor" not in str(task)
        assert not any(f"id{k}" in str(task) for k in range(12))
    assert [task.keys() for task in backend.intent.tasks] == [{"question", "problem"}]


def test_judgements_do_not_depend_on_order_ids_scores_labels_or_other_metadata():
    backend = scripted_backend(by_text)
    reranker = EvidenceReranker(backend, threshold=0.5)
    plain = reranker.rerank(QUESTION, documents())
    asked = sorted(map(str, backend.judge.tasks))
    shuffled = documents()
    random.Random(3).shuffle(shuffled)
    renamed = [
        Document(
            id=f"other{n}",
            page_content=one.page_content,
            metadata={
                "title": one.metadata["title"], "section": "Results", "label": f"distractor {n}",
                "retrieval_rank": 99 - n, "retrieval_score": -n, "year": 1990 + n,
            },
        )
        for n, one in enumerate(shuffled)
    ]  # fmt: skip
    backend.judge.tasks.clear()
    again = reranker.rerank(QUESTION, renamed)
    assert verdicts(again) == verdicts(plain)
    assert sorted(map(str, backend.judge.tasks)) == asked


def test_title_and_section_reach_the_judge_as_text():
    backend = scripted_backend(lambda task: judged(0.5))
    passages = [
        {"text": "a", "title": "T", "metadata": {"section": 3}},
        {"text": "b", "metadata": {"title": None}},
    ]
    EvidenceReranker(backend).rerank(QUESTION, passages)
    seen = {task["text"]: (task["title"], task["section"]) for task in backend.judge.tasks}
    assert seen == {"a": ("T", "3"), "b": ("", "")}


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (RuntimeError("it broke"), "RuntimeError: it broke"),
        (AnswerError("no number"), "no number"),
        (CallError("HTTP 500"), "HTTP 500"),
        (TimeoutError(), "TimeoutError: "),
    ],
)
def test_a_failed_passage_is_recorded_and_its_siblings_are_not_affected(failure, reason):
    backend = scripted_backend({"a": 0.9, "b": failure, "c": 0.85, "d": 0.1, "e": 0.2})
    result = EvidenceReranker(backend, on_empty="topn").rerank(QUESTION, list("abcde"))
    assert [one.text for one in result.passages] == ["a", "c", "e", "d", "b"]
    [failed] = result.failed
    assert (failed.score, failed.kept, failed.status, failed.rank) == (None, False, "failed", 5)
    assert failed.reason == reason
    assert [one.score for one in result.kept] == [0.9, 0.85]
    assert failed not in result.dropped
    assert result.outcome == "ok"


@pytest.mark.parametrize(
    "answer",
    [
        {"score": 1.2},
        {"score": -0.01},
        {"score": "0.9"},
        {"score": True},
        {"score": float("nan")},
        {"score": None},
        {"reason": "no score"},
        {"score": 0.9, "confidence": 1},
        "0.9",
        None,
        0.9,
    ],
)
def test_an_answer_outside_the_schema_is_a_failure_never_a_number(answer):
    backend = scripted_backend(lambda task: answer if task["text"] == "bad" else judged(0.9))
    result = EvidenceReranker(backend).rerank(QUESTION, ["good", "bad"])
    [failed] = result.failed
    assert (failed.text, failed.score) == ("bad", None)
    assert failed.reason.startswith("unusable answer")


@pytest.mark.parametrize("answer", [{"score": 1}, {"score": 0.9, "quote": "goo"}])
def test_a_plain_dict_is_an_answer(answer):
    result = EvidenceReranker(scripted_backend(lambda task: answer)).rerank(QUESTION, ["good"])
    assert result.passages[0].score == answer["score"]


def test_calls_of_unknown_cost_count_as_one():
    backend = scripted_backend(lambda task: Judgement(score=0.1))
    assert EvidenceReranker(backend).rerank(QUESTION, list("abc")).usage["score"] == Usage(calls=3)


def test_a_failure_carries_its_cost():
    backend = scripted_backend({"a": AnswerError("bad", usage=Usage(2, 30, 4)), "b": 0.9})
    usage = EvidenceReranker(backend).rerank(QUESTION, ["a", "b"]).usage["score"]
    assert usage == Usage(2, 30, 4)


def test_a_repaired_judgement_is_flagged():
    backend = scripted_backend(lambda task: judged(0.9, repaired=True))
    assert EvidenceReranker(backend).rerank(QUESTION, ["a"]).passages[0].status == "repaired"


def test_raising_waits_for_the_siblings():
    backend = scripted_backend({"a": RuntimeError("broke"), "b": 0.9, "c": 0.9}, seconds=0.01)
    with pytest.raises(RoleError, match="passage '1' could not be judged: RuntimeError: broke"):
        EvidenceReranker(backend, on_error="raise").rerank(QUESTION, list("abc"))
    assert backend.judge.calls == 3


def test_an_error_keeps_its_cause():
    cause = OSError("line cut")

    def play(task):
        raise CallError("gone") from cause

    with pytest.raises(CallError) as caught:
        CheckedRole(ScriptedRole(play), Judgement, Limiter(1)).invoke({})
    assert caught.value.__cause__ is cause


def test_a_backend_that_fails_everywhere_is_named():
    down = CallError("the server cannot be reached", unusable=True)
    reranker = EvidenceReranker(scripted_backend({"a": down, "b": down}))
    result = reranker.rerank(QUESTION, [*"ab", Document(page_content="")])
    assert result.backend_failure == "the server cannot be reached"
    assert result.outcome == "degraded"
    mixed = EvidenceReranker(scripted_backend({"a": down, "b": 0.1})).rerank(QUESTION, list("ab"))
    assert mixed.backend_failure is None
    blank = EvidenceReranker(scripted_backend({})).rerank(QUESTION, [Document(page_content=" ")])
    assert blank.backend_failure is None
