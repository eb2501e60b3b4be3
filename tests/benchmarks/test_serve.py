"""The measurements of the server run, and say what they measured."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "benchmarks" / "serve"


def run(script: str, *options: str) -> dict:
    command = [sys.executable, str(FOLDER / script), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_load_is_measured_beside_the_reranker_in_process() -> None:
    told = run("load.py", "--requests", "4", "--rounds", "1", "--passages", "3", "--clients", "2")
    assert {"in process", "2 clients", "1 client"} == set(told["requests_a_second"])
    assert all(rate > 0 for rate in told["requests_a_second"].values())
    assert told["seconds"]["2 clients"]["p50"] <= told["seconds"]["2 clients"]["p95"]


def test_memory_is_measured_after_each_tenth_of_the_requests() -> None:
    told = run("load.py", "--memory", "200", "--judge", "rules")
    assert [*told["rss_mb"]] == [str(n) for n in range(20, 201, 20)]
    first, *_, last = told["rss_mb"].values()
    assert last < first + 60  # MB; a request that stayed would be more


def test_batches_are_compared_with_one_text_a_call() -> None:
    told = run("batching.py", "--texts", "8", "--rounds", "1")
    assert told["1"]["largest_difference_of_a_vector"] == 0
    assert told["8"]["largest_difference_of_a_vector"] > 0
