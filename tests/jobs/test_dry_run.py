"""What a run would cost, and what it costs then."""

import io

import pytest

from deepera_graph import EvidenceReranker, llm_backend
from deepera_graph.agents.role import CountingModel
from deepera_graph.jobs.report import JobReport
from deepera_graph.jobs.rerank import count_calls, count_lines, rerank_lines
from deepera_graph.settings import Settings
from deepera_graph.testing import ScriptedChat
from deepera_graph.usage import CHARS_PER_TOKEN


def count_asked(settings, source, *, domain=None, **how):
    count_calls(llm_backend(CountingModel(), domain=domain), settings, source, **how)


def counted(source, **settings):
    report = JobReport()
    count_asked(Settings(**settings), source, report=report)
    return {stage: used.calls for stage, used in report.usage.items()}


@pytest.mark.full
def test_a_question_takes_one_call_then_one_a_passage_then_one_a_kept(make_file, make_line):
    texts = [f"passage {n}" for n in range(15)]
    assert counted(make_file(make_line("q1", *texts)), top_n=4) == {
        "intent": 1,
        "score": 15,
        "summarize": 4,
    }


def test_without_summaries_there_are_no_summary_calls(make_file, make_line):
    calls = counted(make_file(make_line("q1", "one", "two")), content="passage")
    assert calls == {"intent": 1, "score": 2}


def test_a_long_passage_takes_a_call_a_window(make_file, make_line):
    long = " ".join(f"Tea is grown in hill {n:03}." for n in range(90))
    calls = counted(make_file(make_line("q1", long)), max_passage_chars=1000)
    assert calls["score"] == 3


@pytest.mark.full
def test_as_many_calls_are_made_when_all_passages_pass(make_file, make_line):
    lines = [make_line(f"q{n}", "one fell", "two fell", "three fell") for n in range(3)]
    expected, real = JobReport(), JobReport()
    count_asked(Settings(top_n=2), make_file(*lines), report=expected)
    by = EvidenceReranker(llm_backend(ScriptedChat(scores={"fell": 0.9})), top_n=2)
    rerank_lines(by, make_file(*lines), io.BytesIO(), report=real)
    assert expected.total_usage.calls == real.total_usage.calls == 3 * (1 + 3 + 2)


def test_tokens_grow_with_the_prompt(make_file, make_line):
    reports = [JobReport(), JobReport()]
    for report, n_words in zip(reports, (100, 1100), strict=True):
        source = make_file(make_line("q1", "word " * n_words))
        count_asked(Settings(content="passage"), source, report=report)
    short, long = (report.usage["score"].input_tokens for report in reports)
    assert long - short == pytest.approx(1000 * len("word ") / CHARS_PER_TOKEN, rel=0.02)


def test_bad_lines_are_found(make_file, make_line):
    for count in (lambda *a, **b: count_asked(Settings(), *a, **b), count_lines):
        report = JobReport()
        count(make_file(b"{", make_line("q2", ""), make_line("q3", "fine")), report=report)
        assert (report.n_written, report.n_bad) == (1, 2)


def test_the_rules_of_a_field_are_counted(make_file, make_line):
    tokens = []
    for domain in (None, "law"):
        report = JobReport()
        count_asked(Settings(), make_file(make_line("q1", "one")), report=report, domain=domain)
        tokens.append(report.total_usage.input_tokens)
    assert tokens[1] > tokens[0]
