"""A judge that cannot make much of a question says so, and the user is told."""

import asyncio
import io
import json
import logging
from dataclasses import replace

import pytest
from langchain_core.documents import Document
from rich.console import Console

from deepera_graph import (
    EvidenceReranker,
    RerankResult,
    cascade_backend,
    load_backend,
    screened_backend,
)
from deepera_graph.cli.judging.evidence import show_result
from deepera_graph.export import describe_evidence
from deepera_graph.jobs.files import to_output_line
from deepera_graph.jobs.lines import QuestionLine
from deepera_graph.judges.base import as_judge
from deepera_graph.judges.heuristic.roles import A_FEW_WORDS, NOT_ENGLISH, NOTHING_SHARED
from deepera_graph.testing import judged, scripted_backend
from langchain_deepera import DeepEraCompressor
from support.list_judges import ListJudge, list_backend, strict

PROBLEM = "ask about moss"
GERMAN = "Hilft Wachs gegen Austrocknung von \u00c4pfeln?"
APPLES = ["Wax kept apples firm.", "Apples were stored."]


class Picky(ListJudge):
    def question_problem(self, question, windows):
        self.seen = [one["text"] for one in windows]
        return "" if "moss" in question else PROBLEM


def picky():
    return replace(list_backend(), judge=Picky(lambda batch: [judged(0.9)] * len(batch["windows"])))


@pytest.fixture(scope="module")
def result():
    return EvidenceReranker(picky()).rerank("Which?", ["one", "two", "one"])


def test_the_result_warns_and_the_passages_are_judged_all_the_same(result):
    assert (result.warnings, len(result.kept)) == ((PROBLEM,), 3)
    assert EvidenceReranker(picky()).rerank("Which moss?", ["one"]).warnings == ()


def test_sync_and_async_warn_alike(result):
    found = asyncio.run(EvidenceReranker(picky()).arerank("Which?", ["one"]))
    assert found.warnings == result.warnings


def test_the_judge_sees_each_distinct_text_once():
    backend = picky()
    EvidenceReranker(backend).rerank("Which?", ["one", "two", "one"])
    assert sorted(backend.judge.seen) == ["one", "two"]


def test_a_warning_is_written_down_and_read(result):
    assert RerankResult.from_json(result.to_json()).warnings == result.warnings
    old = result.to_dict()
    del old["warnings"]
    assert RerankResult.from_dict(old).warnings == ()


def test_people_and_agents_read_it(result):
    out = io.StringIO()
    show_result(Console(file=out, width=200), result)
    assert f"note: {PROBLEM}" in out.getvalue()
    assert PROBLEM in result._repr_html_()
    assert describe_evidence(result).splitlines()[1] == f"Note: {PROBLEM}."


def test_lines_and_events_have_it(result):
    line = QuestionLine(number=1, end=1, id="1", question="Which?", passages=[], metadata={})
    assert json.loads(to_output_line(line, result))["warnings"] == [PROBLEM]
    events = EvidenceReranker(picky()).stream("Which?", ["one"])
    assert [one["warnings"] for one in events if one["event"] == "selected"] == [[PROBLEM]]


def test_langchain_logs_it(caplog):
    compressor = DeepEraCompressor(reranker=EvidenceReranker(picky()))
    with caplog.at_level(logging.WARNING):
        compressor.compress_documents([Document("one")], "Which?")
    assert PROBLEM in caplog.messages


def test_another_question_on_the_same_thread_begins_without_warnings():
    reranker = EvidenceReranker(picky(), checkpointer=strict())
    config = {"configurable": {"thread_id": "1"}}
    assert reranker.rerank("Which?", ["one"], config=config).warnings == (PROBLEM,)
    assert reranker.rerank("Which moss?", ["one"], config=config).warnings == ()


@pytest.mark.parametrize("join", [cascade_backend, screened_backend])
def test_a_judge_made_of_two_says_what_either_says(join):
    other = scripted_backend(lambda task: judged(0.9))
    for backend in (join(picky(), other), join(other, picky())):
        assert EvidenceReranker(backend).rerank("Which?", ["one"]).warnings == (PROBLEM,)


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        ("Does wax coating keep apples firm?", ()),
        ("Wax keeps apples firm.", ()),
        (GERMAN, (NOT_ENGLISH,)),
        ("Who won the 1998 world cup?", (NOTHING_SHARED,)),
        ("apples wax", (A_FEW_WORDS,)),
        ("apples wax?", ()),
        ("wax increases firmness", ()),
    ],
)
def test_the_rules_say_what_they_cannot_judge(question, problem):
    assert EvidenceReranker("rules").rerank(question, APPLES).warnings == problem


def test_the_trained_judge_says_it_too():
    judge = as_judge(load_backend("local").judge)
    window = {"title": "", "section": "", "text": APPLES[0]}
    assert judge.question_problem(GERMAN, [window]) == NOT_ENGLISH
    assert judge.question_problem("Does wax keep apples firm?", [window]) == ""


def test_a_title_may_name_what_the_text_does_not():
    passage = {"text": "They stayed firm.", "title": "Waxed apples"}
    question = "Does wax protect an apple?"
    assert EvidenceReranker("rules").rerank(question, [passage]).warnings == ()


def test_no_passages_share_nothing_and_nobody_is_told():
    assert EvidenceReranker("rules").rerank("Does wax protect apples?", []).warnings == ()
