"""An output file that is continued: the same bytes as without a break, and nothing done twice."""

import asyncio
import io
import json
import os
import signal
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda

from deepera_graph import EvidenceReranker, Judgement
from deepera_graph.errors import SettingsError
from deepera_graph.jobs.files import ResumableOutput, describe_run
from deepera_graph.jobs.lines import BadLine
from deepera_graph.jobs.report import JobReport
from deepera_graph.jobs.rerank import rerank_lines
from support.scripted import Script

pytestmark = pytest.mark.full

SCORES = {"lowered": 0.9}
SPEC = {"kind": "factory", "path": "tests:build"}


def line(n, **fields):
    texts = [f"Tea {n} lowered fasting glucose.", f"Hills {n}."]
    return json.dumps({"id": f"q{n}", "question": "Does tea help?", "passages": texts, **fields})


LINES = [line(0), line(1), "no line", "", line(2, subject="tea"), line(1), line(3)]


class Job:
    """One output file, and runs that write it."""

    def __init__(self, folder):
        self.out, self.manifest = Path(folder) / "out.jsonl", Path(folder) / "out.manifest"
        self.judged = []

    def run(
        self,
        lines=LINES,
        *,
        resume=True,
        scores=SCORES,
        judge=None,
        limit=None,
        watch=None,
        **options,
    ):
        backend = Script(scores, judged=self.judged).backend(SPEC)
        reranker = EvidenceReranker(replace(backend, judge=judge or backend.judge), **options)
        report = JobReport()
        ran = describe_run(reranker)
        with ResumableOutput(self.out, self.manifest, ran, resume=resume, overwrite=False) as out:
            source = io.BytesIO("\n".join(lines).encode())
            watch = watch or (lambda line: None)
            rerank_lines(reranker, source, out, report=report, limit=limit, watch=watch)
        return report.to_dict()

    @property
    def ids(self):
        return [json.loads(one)["id"] for one in self.out.read_bytes().splitlines()]


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path)


@pytest.fixture
def whole(tmp_path_factory):
    other = Job(tmp_path_factory.mktemp("whole"))
    report = other.run(resume=False)
    return other.out.read_bytes(), counted(report)


def counted(report):
    plain = {name: report[name] for name in report if name not in ("seconds", "earlier")}
    return {**plain, "manifest": report["manifest"] and report["manifest"]["settings"]}


def test_nothing_there_is_the_beginning(job, whole):
    report = job.run()
    assert (job.out.read_bytes(), counted(report)) == whole
    assert "earlier" not in report


def test_a_run_that_is_complete_is_left_as_it_is(job, whole):
    job.run()
    before = job.manifest.read_bytes()
    job.judged.clear()
    report = job.run()
    assert job.judged == []
    assert (job.out.read_bytes(), counted(report)) == whole
    assert job.manifest.read_bytes() == before
    assert report["earlier"]["written"] == 4
    assert report["earlier"]["usage"]["calls"] == report["usage"]["calls"]


@settings(max_examples=15, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1))
def test_wherever_both_files_are_torn_the_rest_is_done(of_out, of_manifest):
    with tempfile.TemporaryDirectory() as folder:
        job = Job(folder)
        report = job.run()
        out, manifest = job.out.read_bytes(), job.manifest.read_bytes()
        head = manifest.index(b"\n") + 1
        job.out.write_bytes(out[: round(of_out * len(out))])
        job.manifest.write_bytes(manifest[: head + round(of_manifest * (len(manifest) - head))])
        again = job.run()
        assert job.out.read_bytes() == out
        assert counted(again) == counted(report)


def failing_once():
    """A second question that fails as a whole, as no passage may fail."""
    return {"Hills 1": ValueError("off"), **SCORES}


def test_a_question_that_failed_as_a_whole_is_asked_again_in_its_place(job, whole):
    job.run(scores=failing_once(), on_error="raise")
    assert job.ids == ["q0", "q2", "q3"]
    job.judged.clear()
    report = job.run(on_error="raise")
    assert sorted(job.judged) == ["Hills 1.", "Tea 1 lowered fasting glucose."]
    assert job.out.read_bytes() == whole[0]
    assert report["lines"] == {"read": 6, "written": 4, "bad": 2}


def test_lines_behind_one_that_hung_are_not_done_again(job, whole):
    judged, done = [], threading.Event()

    async def judge(task):
        if task["text"] == "Hills 1.":
            await asyncio.sleep(60)
        judged.append(task["text"])
        if len(judged) == 7:
            done.set()
        return Judgement(score=0.9 if "lowered" in task["text"] else 0.1, reason="scripted")

    def interrupt():
        done.wait(10)
        while not job.out.exists() or not job.ids:
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    hanging = RunnableLambda(lambda task: None, afunc=judge)
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        job.run(judge=hanging)
    written = job.ids
    assert written[0] == "q0"
    assert "q1" not in written
    report = job.run()
    assert len(job.judged) == 2 * (4 - len(written))
    assert (job.out.read_bytes(), counted(report)) == whole


@settings(max_examples=15, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1))
def test_lines_that_wait_for_their_turn_survive_a_second_tear(of_out, of_manifest):
    with tempfile.TemporaryDirectory() as folder:
        job = Job(folder)
        job.run(scores=failing_once(), on_error="raise")
        job.run(scores=failing_once(), on_error="raise")
        assert job.ids == ["q0", "q2", "q3"]
        job.run(on_error="raise")
        out, manifest = job.out.read_bytes(), job.manifest.read_bytes()
        begun = [place for place in range(len(manifest)) if manifest.startswith(b"\n", place)]
        job.manifest.write_bytes(manifest[: begun[-1] - round(of_manifest * 50)])
        job.out.write_bytes(out[: 1 + round(of_out * (len(out) - 1))])
        job.run(on_error="raise")
        assert job.out.read_bytes() == out


def test_a_run_that_filled_a_gap_may_be_killed_before_its_end(job, whole):
    job.run(scores=failing_once(), on_error="raise")
    killed = {}

    def keep_files(line):
        if line.number == 2:  # written behind the others, and not yet put in its place
            killed.update({path: path.read_bytes() for path in (job.out, job.manifest)})

    job.run(on_error="raise", watch=keep_files)
    for path, data in killed.items():
        path.write_bytes(data)
    assert job.ids == ["q0", "q2", "q3", "q1"]
    job.judged.clear()
    report = job.run(on_error="raise")
    assert job.judged == []
    assert job.out.read_bytes() == whole[0]
    assert report["lines"] == {"read": 6, "written": 4, "bad": 2}


def test_a_run_leaves_output_and_manifest_and_nothing_else(job):
    job.run(scores=failing_once(), on_error="raise")
    job.run(on_error="raise")
    assert sorted(job.out.parent.iterdir()) == [job.out, job.manifest]


def test_lines_that_the_budget_stopped_are_done_again(job, whole):
    job.run(budget={"max_calls": 4}, max_concurrency=1)
    assert len(job.ids) == 4
    report = job.run()
    assert (job.out.read_bytes(), counted(report)) == whole
    assert job.judged.count("Hills 0.") == 1


def test_no_question_is_in_the_output_twice_while_a_resume_runs(job):
    job.run(budget={"max_calls": 4}, max_concurrency=1)
    seen = []
    job.run(watch=lambda line: seen.append(job.ids))
    assert all(len(ids) == len(set(ids)) for ids in seen)
    assert seen[-1] == job.ids


def test_lines_may_be_added_at_the_end(job):
    job.run(LINES[:2])
    job.judged.clear()
    job.run([*LINES[:2], line(7)])
    assert job.ids == ["q0", "q1", "q7"]
    assert len(job.judged) == 2


def test_a_bad_line_that_was_mended_gets_its_place(job):
    job.run()
    job.judged.clear()
    report = job.run([line(5) if one == "no line" else one for one in LINES])
    assert job.ids == ["q0", "q1", "q5", "q2", "q3"]
    assert len(job.judged) == 2
    assert report["lines"] == {"read": 6, "written": 5, "bad": 1}


def test_a_limit_can_be_raised(job, whole):
    job.run(limit=2)
    report = job.run()
    assert (job.out.read_bytes(), counted(report)) == whole


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        pytest.param([line(0), line(9), *LINES[2:]], "line 2 is not the one", id="changed"),
        pytest.param(LINES[1:], "line 1 is not the one", id="moved"),
        pytest.param(
            LINES[:4], r"made from more lines than there are now \(6, found 3\)", id="shorter"
        ),
    ],
)
def test_another_input_is_refused_and_the_output_stays(job, lines, problem):
    job.run()
    before = job.out.read_bytes()
    with pytest.raises(SettingsError, match=problem):
        job.run(lines)
    assert job.out.read_bytes() == before


def test_other_settings_are_refused_by_name(job):
    job.run(threshold=0.8)
    with pytest.raises(SettingsError, match=r"settings\.threshold was 0\.8 and is 0\.5$"):
        job.run(threshold=0.5)


def test_budget_and_concurrency_may_differ(job):
    job.run(LINES[:2], max_concurrency=2)
    job.run(max_concurrency=3, budget={"max_calls": 100})
    assert len(job.ids) == 4


def test_an_output_that_was_changed_is_refused(job):
    job.run()
    job.out.write_bytes(job.out.read_bytes().replace(b"Does tea", b"Does pea", 1))
    with pytest.raises(SettingsError, match="was changed since: it has another line for 'q0'"):
        job.run()


@pytest.mark.parametrize("content", [None, b"", b"{}\n", b"\xff\n", b'{"format": 9, "ran": {}}\n'])
def test_an_output_without_a_manifest_is_refused(job, content):
    job.out.write_bytes(b"{}\n")
    if content is not None:
        job.manifest.write_bytes(content)
    with pytest.raises(SettingsError, match=r"out\.manifest'"):
        job.run()
    assert job.out.read_bytes() == b"{}\n"


def test_the_manifest_is_there_before_the_first_line(job):
    job.run(scores={"Tea": RuntimeError("off")}, on_error="raise")
    assert job.out.read_bytes() == b""
    assert json.loads(job.manifest.read_bytes().splitlines()[0])["ran"]["backend"] == "scripted"


def test_two_runs_cannot_write_the_same_output(job):
    job.run(LINES[:2])
    with ResumableOutput(job.out, job.manifest, {}, resume=False, overwrite=True) as other:
        other.add_bad(BadLine(1, 1, None, "any"))
        with pytest.raises(SettingsError, match="is being written by another process"):
            job.run()
