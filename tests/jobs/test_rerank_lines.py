"""Files of questions reranked from Python."""

import asyncio
import io
import json
import os
import threading
import time
from dataclasses import replace

import pytest
from langchain_core.runnables import RunnableLambda

from deepera_graph import BackendError, EvidenceReranker, InputError, Judgement
from deepera_graph.errors import CallError
from deepera_graph.jobs.report import JobReport
from deepera_graph.jobs.rerank import rerank_lines
from support.scripted import TEA_SCORES, Script

GOOD_TEXT = "Green tea lowered fasting glucose by 4%."
OTHER_TEXT = "Tea is grown in hills."


def reranker(judge=None, **settings):
    backend = Script(TEA_SCORES).backend()
    if judge is not None:
        backend = replace(backend, judge=judge)
    return EvidenceReranker(backend, **settings)


def run(source, *, by=None, **options):
    out, report = io.BytesIO(), JobReport()
    rerank_lines(by or reranker(), source, out, report=report, **options)
    return [json.loads(line) for line in out.getvalue().splitlines()], report


def test_an_output_line_has_exactly_the_fields_of_the_contract(make_file, make_line):
    (line,), _ = run(make_file(make_line("q1", OTHER_TEXT, GOOD_TEXT)))
    assert list(line) == ["id", "question", "intent", "outcome", "threshold", "ranking", "usage"]
    assert list(line["ranking"][0]) == [
        "id", "rank", "score", "kept", "status", "reason", "quote", "summary", "study",
        "band",
    ]  # fmt: skip
    assert list(line["usage"]) == ["calls", "input_tokens", "output_tokens"]
    assert line["usage"]["calls"] == 4
    assert (line["id"], line["outcome"], line["threshold"]) == ("q1", "ok", 0.8)
    assert line["ranking"][0] == {
        "id": "p2",
        "rank": 1,
        "score": 0.93,
        "kept": True,
        "status": "scored",
        "reason": "scripted",
        "quote": "",
        "summary": GOOD_TEXT,
        "study": 1,
        "band": "evidence",
    }


def test_fields_of_its_own_come_back_as_metadata(make_file, make_line):
    (line,), _ = run(make_file(make_line("q1", GOOD_TEXT, subject="diet", gold_answer="yes")))
    assert line["metadata"] == {"subject": "diet", "gold_answer": "yes"}
    assert list(line)[-1] == "metadata"


@pytest.mark.full
def test_equal_judgements_are_equal_bytes(make_file, make_line):
    lines = [make_line(f"q{n}", OTHER_TEXT, GOOD_TEXT) for n in range(20)]
    outs = [io.BytesIO(), io.BytesIO()]
    for out, at_once in zip(outs, (1, 16), strict=True):
        by = reranker(max_concurrency=at_once)
        rerank_lines(by, make_file(*lines), out, report=JobReport())
    assert outs[0].getvalue() == outs[1].getvalue()


@pytest.mark.full
def test_lines_are_written_in_order_although_the_first_is_slow(make_file, make_line):
    async def slow_once(task):
        if "slow" in task["text"]:
            await asyncio.sleep(0.2)
        finished.append(task["text"])
        return Judgement(score=0.9)

    finished = []
    judge = RunnableLambda(lambda task: None, afunc=slow_once)
    lines = [make_line("q1", "a slow one"), *(make_line(f"q{n}", f"n {n}") for n in range(2, 9))]
    written, _ = run(make_file(*lines), by=reranker(judge))
    assert [line["id"] for line in written] == [f"q{n}" for n in range(1, 9)]
    assert finished[-1] == "a slow one"


def test_a_passage_without_text_costs_itself_and_not_its_question(make_file, make_line):
    question = make_line("q1", GOOD_TEXT, " ")
    question["passages"] += [{"id": "none", "text": None, "score": 2}, None]
    ((line,), report) = run(make_file(question))
    assert [(one["id"], one["status"]) for one in line["ranking"]] == [
        ("p1", "scored"), ("p2", "failed"), ("none", "failed"), ("4", "failed"),
    ]  # fmt: skip
    assert {one["reason"] for one in line["ranking"][1:]} == {"the passage has no text"}
    assert report.n_bad == 0


def test_a_bad_line_is_reported_and_the_others_run(make_file, make_line):
    no_text = make_line("q2", "")
    twice = make_line("q3", GOOD_TEXT)
    twice["passages"] *= 2
    seen = []
    written, report = run(
        make_file(make_line("q1", GOOD_TEXT), no_text, b"{", twice, make_line("q5", GOOD_TEXT)),
        watch=seen.append,
    )
    assert [line["id"] for line in written] == ["q1", "q5"]
    assert [(error["line"], error["id"]) for error in report.errors] == [
        (2, "q2"), (3, None), (4, "q3"),
    ]  # fmt: skip
    assert "has no text" in report.errors[0]["error"]
    assert "used twice" in report.errors[2]["error"]
    assert [line.number for line in seen] == [1, 2, 3, 4, 5]
    assert (report.n_written, report.n_bad, report.end) == (2, 3, "complete")


def test_a_limit_counts_lines(make_file, make_line):
    written, _ = run(make_file(*(make_line(f"q{n}", GOOD_TEXT) for n in range(5))), limit=2)
    assert [line["id"] for line in written] == ["q0", "q1"]


def test_no_lines_are_an_error(make_file):
    with pytest.raises(InputError, match="holds no question, so there is nothing to rerank"):
        run(make_file())


def test_a_failed_passage_does_not_fail_its_line(make_file, make_line):
    by = EvidenceReranker(Script({"lowered": 0.9, "grown": ValueError("broken")}).backend())
    (line,), report = run(make_file(make_line("q1", OTHER_TEXT, GOOD_TEXT)), by=by)
    assert [(one["id"], one["score"], one["status"]) for one in line["ranking"]] == [
        ("p2", 0.9, "scored"),
        ("p1", None, "failed"),
    ]
    assert "broken" in line["ranking"][1]["reason"]
    assert (report.n_bad, report.n_failed) == (0, 1)


def unreachable_at(text):
    async def judge(task):
        if text in task["text"]:
            raise CallError("the server cannot be reached", unusable=True)
        return Judgement(score=0.9)

    return RunnableLambda(lambda task: None, afunc=judge)


@pytest.mark.full
def test_an_unreachable_backend_ends_the_run_and_keeps_what_is_done(make_file, make_line):
    lines = [make_line(f"q{n}", "down now" if n == 3 else "fine") for n in range(1, 7)]
    out, report = io.BytesIO(), JobReport()
    with pytest.raises(BackendError, match="line 3: the server cannot be reached"):
        rerank_lines(
            reranker(unreachable_at("down"), max_concurrency=1),
            make_file(*lines),
            out,
            report=report,
        )
    written = [json.loads(line)["id"] for line in out.getvalue().splitlines()]
    assert written[:2] == ["q1", "q2"]
    assert "q3" not in written
    assert report.end == "unreachable"
    assert report.n_written == len(written)


def test_a_question_without_passages_says_nothing_about_the_backend(make_file, make_line):
    written, _ = run(make_file(make_line("q1")), by=reranker(unreachable_at("")))
    assert written[0]["outcome"] == "nothing_retrieved"


@pytest.mark.full
def test_an_interrupt_keeps_what_is_done_behind_a_hanging_question(make_file, make_line):
    lines = [make_line("q1", "hangs"), make_line("q2", "fine"), make_line("q3", "fine")]
    done = threading.Event()
    n_judged = []

    async def judge(task):
        if "hangs" in task["text"]:
            await asyncio.sleep(60)
        n_judged.append(1)
        if len(n_judged) == 2:
            done.set()
        return Judgement(score=0.9)

    def interrupt():
        done.wait(10)
        time.sleep(0.1)
        os.kill(os.getpid(), 2)

    out, report = io.BytesIO(), JobReport()
    threading.Thread(target=interrupt).start()
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        rerank_lines(
            reranker(RunnableLambda(lambda task: None, afunc=judge)),
            make_file(*lines),
            out,
            report=report,
        )
    assert time.perf_counter() - started < 5
    assert [json.loads(line)["id"] for line in out.getvalue().splitlines()] == ["q2", "q3"]
    assert report.end == "interrupted"


@pytest.mark.full
def test_a_line_is_answered_before_the_next_one_is_there(make_line):
    read_end, write_end = os.pipe()
    first = json.dumps(make_line("q1", GOOD_TEXT)).encode() + b"\n"
    answered = threading.Event()

    def ask():
        with os.fdopen(write_end, "wb") as pipe:
            pipe.write(first)
            pipe.flush()
            answers.append(answered.wait(10))

    answers = []
    asking = threading.Thread(target=ask)
    asking.start()
    with os.fdopen(read_end, "rb") as source:
        rerank_lines(
            reranker(), source, None, report=JobReport(), watch=lambda line: answered.set()
        )
    asking.join()
    assert answers == [True]


@pytest.mark.full
def test_a_file_is_not_read_far_ahead(make_file, make_line):
    source = make_file(*(make_line(f"q{n}", GOOD_TEXT) for n in range(150)))
    read_at_first = []

    def watch(line):
        if not read_at_first:
            time.sleep(0.3)
            read_at_first.append(source.tell())

    rerank_lines(reranker(max_concurrency=1), source, io.BytesIO(), report=JobReport(), watch=watch)
    assert read_at_first[0] < source.tell() / 10


def test_a_broken_source_raises_what_it_raised(make_line):
    class Broken(io.BytesIO):
        def __next__(self):
            raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        rerank_lines(reranker(), Broken(), None, report=JobReport())


def test_a_lone_surrogate_survives(make_file):
    raw = b'{"id": "q\\ud800", "question": "Why tea?", "passages": ["lowered fasting"]}'
    (line,), _ = run(make_file(raw))
    assert line["id"] == "q\ud800"


def test_a_passage_of_200_000_characters_is_said_to_be_windowed(make_file, make_line):
    (line,), _ = run(
        make_file(make_line("q1", "".join(f"tea grows {n:05}. " for n in range(11_800)), GOOD_TEXT))
    )
    assert {one["id"]: one.get("windowed") for one in line["ranking"]} == {"p1": True, "p2": None}
    assert line["usage"]["calls"] > 15
