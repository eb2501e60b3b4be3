"""A run with a checkpointer, killed while it scores: a new process repeats next to no call."""

import logging
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from support.checkpointed_run import main
from support.kills import N_CALLS, kill, moments, slow_server

pytestmark = pytest.mark.full

TESTS = Path(__file__).parents[1]
log = logging.getLogger(__name__)


@pytest.fixture
def server():
    with slow_server() as running:
        yield running


@pytest.fixture
def start(server, tmp_path):
    started = []

    def run(name, way):
        files = [str(tmp_path / f"{name}.sqlite"), str(tmp_path / f"{name}.json")]
        process = subprocess.Popen(
            [sys.executable, "-m", "support.checkpointed_run", server.base_url, *files, way],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"},
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def end(server, tmp_path):
    """Runs to the end, in this process."""

    def run(name, way):
        out = tmp_path / f"{name}.json"
        main(server.base_url, str(tmp_path / f"{name}.sqlite"), str(out), way)
        return out.read_bytes()

    return run


def n_committed(database):
    """Count the calls whose outcome is saved; `usage` is written once a call, and once a thread."""
    count = "SELECT count(*) - count(DISTINCT thread_id) FROM writes WHERE channel = 'usage'"
    with closing(sqlite3.connect(database)) as states:
        return states.execute(count).fetchone()[0]


@pytest.mark.parametrize(
    ("n_kills", "way"),
    [
        (1, "async"),
        pytest.param(20, "sync", marks=pytest.mark.slow),
        pytest.param(20, "async", marks=pytest.mark.slow),
    ],
)
def test_only_calls_in_flight_are_repeated(start, end, server, tmp_path, n_kills, way):
    whole = end("whole", way)
    assert server.calls == N_CALLS
    for n, moment in enumerate(moments(3, n_kills)):
        server.reset_counts()
        n_sent = len(kill(start(str(n), way), server, *moment))
        n_in_flight = n_sent - n_committed(tmp_path / f"{n}.sqlite")
        resumed = end(str(n), way)
        n_repeated = server.calls - N_CALLS
        log.info(
            "%s, kill %d: %d sent, %d in flight, %d repeated",
            way, n, n_sent, n_in_flight, n_repeated,
        )  # fmt: skip
        assert resumed == whole
        assert 0 <= n_repeated <= n_in_flight
