"""`deepera rerank` killed while it scores: resumed, it gives the same bytes at little cost."""

import json
import logging
import sqlite3
from contextlib import closing

import pytest

from deepera_graph.stores.judgements import FILE_NAME
from support.kills import (
    N_CALLS,
    N_QUESTIONS,
    asked,
    kill,
    moments,
    numbers,
    passages,
    question,
    slow_server,
)

pytestmark = pytest.mark.full

MOST_CALLS = 16  # in flight, by default
log = logging.getLogger(__name__)
KILLS = [1, pytest.param(20, marks=pytest.mark.slow)]


@pytest.fixture
def source(questions):
    lines = [
        {"id": f"q{n}", "question": question(n), "passages": passages(n)}
        for n in range(N_QUESTIONS)
    ]
    return questions(*lines[:4], b"no line", *lines[4:])


@pytest.fixture
def server():
    with slow_server() as running:
        yield running


@pytest.fixture
def arguments(source, server):
    def of(out, *args):
        url = ("--base-url", server.base_url)
        return ("rerank", source, "-o", out, "--model", "any", *url, "--quiet", *args)

    return of


@pytest.fixture
def end(deepera, arguments):
    """Runs to the end, in this process."""

    def run(out, *args):
        result = deepera(*arguments(out, *args))
        assert result.exit_code == 1, result.output  # 1, as one line is bad

    return run


@pytest.fixture
def begin(start, arguments, server):
    """Runs in a process that is killed; returns the requests it has sent."""

    def run(moment, out, *args):
        server.reset_counts()
        return kill(start(*arguments(out, *args)), server, *moment)

    return run


@pytest.fixture
def whole(end, server, tmp_path):
    """Output and report of a run that nobody killed."""
    out = tmp_path / "whole.jsonl"
    end(out, "--cache", "off")
    assert server.calls == N_CALLS
    return out.read_bytes(), counted(report_of(out))


def report_of(path):
    return json.loads(path.with_suffix(".report.json").read_text(encoding="utf-8"))


def counted(report):
    """What a report says, but for times and what was done when."""
    return {
        name: report[name]
        for name in ("end", "lines", "passages", "outcomes", "diagnostics", "errors")
    } | {
        "calls": report["usage"]["calls"],
        "threshold": report["manifest"]["settings"]["threshold"],
    }


def n_stored(folder):
    with closing(sqlite3.connect(folder / FILE_NAME)) as cache:
        return cache.execute("SELECT count(*) FROM judgement").fetchone()[0]


@pytest.mark.parametrize("n_kills", KILLS)
def test_with_the_cache_only_calls_in_flight_are_repeated(
    begin, end, whole, server, tmp_path, n_kills
):
    for n, moment in enumerate(moments(1, n_kills)):
        out, cache = tmp_path / f"{n}.jsonl", tmp_path / f"cache{n}"
        n_sent = len(begin(moment, out, "--cache", cache))
        n_in_flight = n_sent - n_stored(cache)
        end(out, "--resume", "--cache", cache)
        n_repeated = server.calls - N_CALLS
        log.info("kill %d: %d sent, %d in flight, %d repeated", n, n_sent, n_in_flight, n_repeated)
        assert 0 <= n_repeated <= n_in_flight <= MOST_CALLS
        assert (out.read_bytes(), counted(report_of(out))) == whole


@pytest.mark.slow
def test_one_run_may_be_killed_again_and_again(begin, end, whole, server, tmp_path):
    out, cache = tmp_path / "out.jsonl", ("--cache", str(tmp_path / "one cache"))
    n_sent = 0
    for n in range(10):
        n_sent += len(begin((8, 0.001 * n), out, "--resume", *cache))
    server.reset_counts()
    end(out, "--resume", *cache)
    assert n_sent + server.calls - N_CALLS <= 10 * MOST_CALLS
    assert (out.read_bytes(), counted(report_of(out))) == whole


@pytest.mark.slow
@pytest.mark.parametrize("n_kills", [20])
def test_without_a_cache_only_questions_in_flight_are_repeated(
    begin, end, whole, server, tmp_path, n_kills
):
    alone = ("--cache", "off", "--max-concurrency", "2")
    for n, moment in enumerate(moments(2, n_kills)):
        out = tmp_path / f"{n}.jsonl"
        before = begin(moment, out, *alone)
        n_written = out.read_bytes().count(b"\n") if out.exists() else 0
        end(out, "--resume", *alone)
        after = server.requests[len(before) :]
        n_repeated = len(before) + len(after) - N_CALLS
        sent = numbers(before).items()
        in_flight = {number: times for number, times in sent if number >= n_written}
        log.info(
            "kill %d: %d sent, %d lines, %d repeated of %s",
            n, len(before), n_written, n_repeated, in_flight,
        )  # fmt: skip
        assert set(numbers(after)) == set(range(n_written, N_QUESTIONS))
        assert n_repeated == sum(in_flight.values())
        assert max((asked(before) + asked(after)).values()) <= 2
        assert (out.read_bytes(), counted(report_of(out))) == whole
