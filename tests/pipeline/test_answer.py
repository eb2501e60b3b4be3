"""The optional answer, and its citations."""

import pytest

from deepera_graph import EvidenceReranker, SettingsError, Usage
from deepera_graph.schema import Answer
from deepera_graph.testing import scripted_backend

SCORES = {"First text.": 0.9, "Second text.": 0.95, "Third text.": 0.1}
PASSAGES = [{"id": name, "text": f"{name.title()} text."} for name in ("first", "second", "third")]
QUESTION = "Which text?"


def answered(answer, scores=SCORES, **settings):
    backend = scripted_backend(scores, answer=answer)
    result = EvidenceReranker(backend, answer=True, **settings).rerank(QUESTION, PASSAGES)
    return result, backend


def said(text, citations=()):
    return lambda task: Answer(text=text, citations=list(citations), usage=Usage(1, 9, 9))


@pytest.mark.parametrize(
    ("text", "citations", "shown", "cited"),
    [
        ("It is [1].", [1], "It is [second].", ["second"]),
        ("It is [2] and [1].", [], "It is [first] and [second].", ["first", "second"]),
        ("Both [1, 2].", [], "Both [second, first].", ["second", "first"]),
        ("Both [1,2][2].", [], "Both [second, first][first].", ["second", "first"]),
        ("So [7]. Yes [1].", [9], "So . Yes [second].", ["second"]),
        ("So [1, 7].", [0, -1], "So [second].", ["second"]),
        ("So.", [2], "So.", ["first"]),
        ("Since [2019] or [0] or [x].", [], "Since  or  or [x].", []),
        (f"So [{'9' * 5000}]. Yes [1].", [], f"So [{'9' * 5000}]. Yes [second].", ["second"]),
    ],
)
def test_numbers_become_ids_and_those_out_of_range_are_dropped(text, citations, shown, cited):
    result, _ = answered(said(text, citations))
    assert result.answer == {
        "text": shown, "citations": cited, "status": "answered", "cause": "",
    }  # fmt: skip
    assert result.usage["answer"] == Usage(1, 9, 9)


def test_the_answerer_sees_the_kept_evidence_best_first_and_no_ids():
    _, backend = answered(said("It is [1]."))
    [task] = backend.answerer.tasks
    assert task.keys() == {"question", "intent", "evidence"}
    assert [item["text"] for item in task["evidence"]] == ["Second text.", "First text."]
    for item in task["evidence"]:
        assert item.keys() == {"text", "summary", "quote", "title", "section", "study"}
    assert "'second'" not in str(task)


def test_nothing_kept_is_insufficient_evidence_without_a_call():
    result, backend = answered(said("never"), threshold=0.99)
    assert backend.answerer.calls == 0
    assert result.answer == {
        "text": "insufficient evidence",
        "citations": [],
        "status": "insufficient_evidence",
        "cause": "no passage was kept",
    }
    assert result.outcome == "no_evidence"
    assert "answer" not in result.usage


def test_nothing_left_after_the_summaries_is_insufficient_evidence():
    backend = scripted_backend({"a": 0.9}, summary=lambda task: {"text": ""}, answer=said("no"))
    result = EvidenceReranker(backend, answer=True).rerank(QUESTION, ["a"])
    assert result.answer["status"] == "insufficient_evidence"
    assert backend.answerer.calls == 0


def test_no_passages_at_all_are_insufficient_evidence():
    backend = scripted_backend({})
    result = EvidenceReranker(backend, answer=True).rerank(QUESTION, [])
    assert (result.answer["status"], result.outcome) == (
        "insufficient_evidence", "nothing_retrieved",
    )  # fmt: skip


@pytest.mark.parametrize("text", ["insufficient evidence", "Insufficient evidence to tell [9]."])
def test_an_answerer_may_find_the_evidence_insufficient(text):
    result, backend = answered(said(text))
    assert backend.answerer.calls == 1
    assert (result.answer["text"], result.answer["status"]) == (
        "insufficient evidence", "insufficient_evidence",
    )  # fmt: skip


def test_a_failed_answer_says_so_and_keeps_the_evidence():
    result, _ = answered(lambda task: RuntimeError("broke"))
    assert result.answer == {
        "text": "", "citations": [], "status": "failed", "cause": "RuntimeError: broke",
    }  # fmt: skip
    assert [one.id for one in result.kept] == ["second", "first"]


def test_an_answer_that_took_two_replies_says_why():
    twice = Answer(text="It is [1].", citations=[1], repaired=True, problem="the reply is empty")
    result, _ = answered(lambda task: twice)
    assert (result.answer["status"], result.answer["cause"]) == (
        "answered", "asked twice, as the reply is empty",
    )  # fmt: skip


def test_without_asking_there_is_no_answer():
    backend = scripted_backend(SCORES)
    result = EvidenceReranker(backend).rerank(QUESTION, PASSAGES)
    assert (result.answer, backend.answerer.calls) == (None, 0)


def test_a_backend_without_an_answerer_cannot_be_asked_to_answer():
    with pytest.raises(SettingsError, match="'scripted' has no answerer"):
        EvidenceReranker(scripted_backend({}, answer=None), answer=True)


@pytest.mark.full
@pytest.mark.parametrize(
    ("text", "quotes", "cause"),
    [
        ('It says "A rule of the second text" [1].', [("second", [4, 29], "verbatim")], ""),
        ("It says “a rule of the second text”.", [(None, None, "not_found")], "no kept passage"),
        ("So “A  rule of the first text.” [2]", [("first", [4, 29], "normalised")], ""),
        ('A "rule" is "a law of apples and pears" [1].', [(None, None, "not_found")], "'a law of"),
        ('It is "A rule of the third text" [1].', [(None, None, "not_found")], "third"),
        ('The "rule" holds.', None, ""),
    ],
)  # fmt: skip
def test_what_an_answer_quotes_is_looked_for_in_the_kept_passages(text, quotes, cause):
    texts = {name: f"So: A rule of the {name} text." for name in ("first", "second", "third")}
    passages = [{"id": name, "text": one} for name, one in texts.items()]
    scores = dict(zip(texts.values(), SCORES.values(), strict=True))
    backend = scripted_backend(scores, answer=said(text))
    answer = EvidenceReranker(backend, answer=True).rerank(QUESTION, passages).answer
    found = [(one["id"], one["span"], one["status"]) for one in answer.get("quotes", ())]
    assert (found or None) == quotes
    assert cause in answer["cause"] if cause else not answer["cause"]
