"""`--engine`: the same results from worker processes."""

import json
import os
import signal
import sys
import time
from importlib.util import find_spec

import pytest

from deepera_graph.packages import install_command

QUESTION = "Does green tea lower fasting glucose?"
WAIT = 60.0
RAY = ("--engine", "ray", "--workers", "2")
on_ray = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed"),
]


def test_without_ray_the_command_says_how_to_install_it(deepera, questions, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    result = deepera("rerank", questions({"question": "a?", "passages": []}), "--engine", "ray")
    assert result.exit_code == 2
    assert result.output == f"deepera: --engine ray needs ray: {install_command('ray')}\n"


@pytest.mark.parametrize("option", [("--workers", "2"), ("--ray-address", "auto")])
def test_options_of_ray_are_refused_without_it(deepera, questions, option):
    result = deepera("rerank", questions({"question": "a?", "passages": []}), *option)
    assert (result.exit_code, f"{option[0]} goes with --engine ray" in result.output) == (2, True)


class TestOnRay:
    pytestmark = on_ray

    @pytest.fixture
    def source(self, questions):
        lines = [
            {"id": f"q{n}", "question": QUESTION, "passages": passages(n), "subject": "tea"}
            for n in range(30)
        ]
        return questions(*lines[:4], b"no line", *lines[4:])

    @pytest.fixture
    def end(self, start):
        """Runs a command to its end; returns its exit code, stdout and stderr."""

        def run(*args):
            process = start(*args)
            out, err = process.communicate(timeout=WAIT)
            return process.returncode, out.decode(), err.decode()

        return run

    @pytest.mark.parametrize("place", ["file", "stdout"])
    def test_rankings_and_report_are_those_of_the_local_engine(self, end, source, tmp_path, place):
        out = tmp_path / "out.jsonl"
        given = ("rerank", source, "-o", out if place == "file" else "-", "--json")
        ended = end(*given), end(*given, "--overwrite", *RAY)
        if place == "stdout":
            assert ended[0][:2] == ended[1][:2]
            return
        first, second = (counted(json.loads(one[1])) for one in ended)
        assert first == second
        assert (
            ended[0][2] == ended[1][2] == "deepera: line 5: not JSON: Expecting value at column 1\n"
        )

    def test_a_budget_holds_for_all_workers_and_a_resume_elsewhere_pays_for_the_rest(
        self, end, source, server, tmp_path
    ):
        out, whole = tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
        model = ("--model", "any", "--base-url", server.base_url)
        assert end("rerank", source, "-o", whole, *model, "--cache", "off")[0] == 1
        n_whole = server.calls
        server.reset_counts()
        end("rerank", source, "-o", out, *model, "--max-calls", "31", *RAY)
        assert server.calls == 31
        assert end("rerank", source, "-o", out, *model, "--resume")[0] == 1
        assert out.read_bytes() == whole.read_bytes()
        assert 31 < server.calls <= n_whole

    def test_ctrl_c_leaves_a_journal_to_go_on_from_and_no_process(
        self, start, end, source, server, tmp_path
    ):
        out, whole = tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
        model = ("--model", "any", "--base-url", server.base_url, "--cache", "off")
        assert end("rerank", source, "-o", whole, *model)[0] == 1
        slowly = ("--requests-per-minute", "1200")
        process = start("rerank", source, "-o", out, *model, *slowly, *RAY, start_new_session=True)
        wait_for(lambda: out.exists() and out.read_bytes().count(b"\n") > 3)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=WAIT)
        assert process.returncode == 130
        assert b"interrupted; finished lines kept" in err
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
        assert 3 < out.read_bytes().count(b"\n") < 30
        assert end("rerank", source, "-o", out, *model, "--resume", *RAY)[0] == 1
        assert out.read_bytes() == whole.read_bytes()


TEXTS = (
    "In 60 adults, green tea lowered fasting glucose by 4% (p < 0.01).",
    "Effects of green tea on fasting glucose are debated.",
    "Glucose was measured in the morning.",
)


def passages(number):
    """Passages that differ from question to question."""
    return [{"id": f"p{n}", "text": f"{text} Trial {number}."} for n, text in enumerate(TEXTS)]


def counted(report):
    return {name: value for name, value in report.items() if name != "seconds"}


def wait_for(happens):
    limit = time.monotonic() + WAIT
    while not happens():
        assert time.monotonic() < limit
        time.sleep(0.01)
