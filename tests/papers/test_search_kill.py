"""A search that is killed between two calls goes on in another process, and pays for none twice."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deepera_graph import PaperBase, PaperSearch
from deepera_graph.cli.main import app
from papers.planted import make_world, plain
from papers.world import write_lines
from support import kills
from support.openai_server import ChatServer
from support.paper_run import BASE, QUESTION, ROUNDS, main, play

pytestmark = pytest.mark.full

TESTS = Path(__file__).parents[1]
QUERIES = [one for each in ROUNDS for one in each]


@pytest.fixture
def folder(tmp_path):
    source = write_lines(tmp_path / "planted.jsonl", plain(make_world()))
    PaperBase.build(tmp_path / BASE, source).close()
    return tmp_path


@pytest.mark.parametrize(
    ("way", "n_calls"),
    [
        ("sync", 2),
        pytest.param("sync", 7, marks=pytest.mark.slow),
        pytest.param("async", 5, marks=pytest.mark.slow),
        pytest.param("cache", 6, marks=pytest.mark.slow),  # an interrupt, below, goes on with it
    ],
)
def test_a_killed_search_goes_on_and_repeats_only_what_was_in_flight(way, n_calls, folder):
    with ChatServer(play) as server:
        whole = main(server.base_url, folder, "whole")
        n_whole = len(server.requests)
    (folder / "asked.txt").unlink()
    with ChatServer(play, latency=0.05) as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "support.paper_run", server.base_url, str(folder), way],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"},
        )
        kills.kill(process, server, n_calls, 0.02)
        process.communicate()
        before = len(server.requests)
        found = main(server.base_url, folder, way)
        asked = Counter(json.dumps(one.messages) for one in server.requests)
    assert n_calls <= before < n_whole
    assert len(asked) == n_whole
    assert sum(asked.values()) <= n_whole + 1
    if way != "cache":  # the base is free to ask; of a thread its calls are kept, too
        assert sorted((folder / "asked.txt").read_text().splitlines()) == sorted(QUERIES)
    assert found.ids == whole.ids
    assert found.actions == whole.actions
    assert {one.id: one.reason for one in found.papers} == {
        one.id: one.reason for one in whole.papers
    }


def test_a_search_asked_again_takes_the_replies_that_were_kept(folder):
    with ChatServer(play) as server:
        first = main(server.base_url, folder, "cache")
        n_paid = len(server.requests)
        again = main(server.base_url, folder, "cache")
        assert len(server.requests) == n_paid == first.total_usage.calls
    assert again.total_usage.cached_calls == n_paid
    assert again.ids == first.ids
    assert again.actions == first.actions


def ask(server, folder):
    return [
        *("papers", "ask", QUESTION),
        *("--library", str(folder / BASE), "--cache", str(folder / "kept"), "--json"),
        *("--model", "any", "--base-url", server.base_url, "--max-concurrency", "1"),
    ]


def start(args, folder):
    return subprocess.Popen(
        [sys.executable, "-m", "deepera_graph", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
        text=True,
    )


def test_an_interrupt_tells_what_was_found_and_the_same_command_goes_on(folder):
    with ChatServer(play, latency=0.05) as server:
        process = start(ask(server, folder), folder)
        while server.calls < 5 and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (130, "")
        told = " ".join(err.split())
        assert re.search(r"interrupted; \d lookups? made, \d+ papers found so far", told)
        assert "go on with: deepera papers ask" in told
        done = CliRunner().invoke(app, ask(server, folder))
        asked = Counter(json.dumps(one.messages) for one in server.requests)
    assert done.exit_code == 0, done.stderr
    assert [one["text"] for one in json.loads(done.stdout)["actions"]] == QUERIES
    assert sum(asked.values()) <= len(asked) + 1


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["call", "plan", "judge"])
@pytest.mark.parametrize("way", ["sync", "async"])
def test_an_interrupt_comes_out_of_a_search_wherever_it_is_raised(folder, monkeypatch, where, way):
    how = {"planner": QUERIES, "selector": interrupt if where == "judge" else "rules"}
    if where == "plan":
        how["planner"] = interrupt
    with PaperBase.open(folder / BASE) as base:
        search = PaperSearch(base, **how)
        if where == "call":
            monkeypatch.setattr(base, "search", interrupt)
        ways = {"sync": search.search, "async": lambda asked: asyncio.run(search.asearch(asked))}
        with pytest.raises(KeyboardInterrupt):
            ways[way](QUESTION)
