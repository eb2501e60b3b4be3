"""A run that is killed between two calls goes on in another process, and repeats at most one."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from support import hop_world as hops
from support import kills
from support.hop_run import main
from support.openai_server import ChatServer

pytestmark = pytest.mark.full
TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("way", "n_calls"),
    [
        ("async", 5),
        pytest.param("sync", 3, marks=pytest.mark.slow),
        pytest.param("sync", 4, marks=pytest.mark.slow),
    ],
)
def test_a_killed_run_goes_on(way, n_calls, tmp_path):
    database = str(tmp_path / "path.sqlite")
    with ChatServer(hops.play, latency=0.05) as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "support.hop_run", server.base_url, database, way],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"},
        )
        kills.kill(process, server, n_calls, 0.02)
        process.communicate()
        before = len(server.requests)
        result = main(server.base_url, database, way)
        asked = Counter(json.dumps(one.messages) for one in server.requests)
    assert n_calls <= before < 6
    assert [one["answer"] for one in result.steps] == ["Anna Berg", "Nils Berg", "Falun", "1992"]
    assert result.text == "1992"
    assert len(asked) == 6
    assert sum(asked.values()) <= 6 + 1  # only what was in flight is asked again
