"""A build that is killed goes on where it was."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.build.model_script import answer
from support.openai_server import ChatServer

pytestmark = pytest.mark.slow  # each run cuts a build off by its budget, see test_build.py

TESTS = Path(__file__).parents[2]
AT_ONCE = 2


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.01)


def test_a_killed_build_repeats_only_the_calls_that_were_in_flight(build_lakes, tmp_path):
    with ChatServer(answer, latency=0.1) as server:
        command = [sys.executable, "-m", "bench.build.lake_builds"]
        environment = {**os.environ, "PYTHONPATH": str(TESTS)}
        killed = subprocess.Popen(
            [*command, server.base_url, str(tmp_path / "out")], env=environment
        )
        try:
            wait_until(lambda: server.answered >= 8)
        finally:
            killed.kill()
            killed.wait()
        assert not (tmp_path / "out" / "manifest.json").exists()
        n_before = server.calls
        resumed = build_lakes(server, calls_at_once=16)
        n_all = server.calls
        whole = build_lakes(server, tmp_path / "whole", calls_at_once=16)
        n_whole = server.calls - n_all
    assert 8 <= n_before < n_whole
    assert n_whole <= n_all <= n_whole + AT_ONCE
    for one in whole.folder.iterdir():
        assert one.is_dir() or one.read_bytes() == (resumed.folder / one.name).read_bytes()
