"""The command line, in this process and in one of its own, and files to give it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deepera_graph.cli.main import app
from deepera_graph.lab.cli.main import app as lab
from support.openai_server import ChatServer

TESTS = Path(__file__).parents[1]
TEA = "support.scripted:tea_backend"
QUESTION = "Does green tea lower fasting glucose?"
PASSAGES = [
    {"id": "a", "text": "Effects of green tea on fasting glucose are debated."},
    {"id": "b", "text": "Green tea lowered fasting glucose by 4% in 60 adults."},
    {"id": "c", "text": "Glucose was measured in the morning."},
]
CALLS = 1 + len(PASSAGES) + 1  # the intent, every passage, one summary


def line(name="q1", **fields):
    """A question line that can be used."""
    return {"id": name, "question": QUESTION, "passages": PASSAGES, **fields}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def no_wait(monkeypatch):
    """A call that failed is tried again at once."""
    monkeypatch.setattr("deepera_graph.chat.sending.Retrier._backoff", lambda *_: 0.0)


@pytest.fixture
def deepera():
    """Runs a command in this process."""
    return runner_of(app)


@pytest.fixture
def deepera_lab():
    """Runs a command for those who measure in this process."""
    return runner_of(lab)


def runner_of(program):
    """Runs commands of a program."""
    runner = CliRunner()

    def run(*args, given=None):
        return runner.invoke(program, [str(one) for one in args], input=given)

    return run


@pytest.fixture
def questions(tmp_path):
    """Writes a file of questions: objects as JSON, bytes as they are."""

    def write(*lines, name="in.jsonl"):
        path = tmp_path / name
        raw = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines]
        path.write_bytes(b"".join(one + b"\n" for one in raw))
        return path

    return write


@pytest.fixture
def environment(tmp_path):
    """An environment without keys, whose data folder is a fresh one."""
    dropped = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "QDRANT_API_KEY")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {
        **kept,
        "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}",
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


@pytest.fixture
def start(tmp_path, environment):
    """Starts a command in a process of its own, in a folder of its own."""
    started = []

    def run(*args, **options):
        process = subprocess.Popen(
            [sys.executable, "-m", "deepera_graph", *map(str, args)],
            stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={**environment, **options.pop("env", {})},
            **options,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def answer(request):
    """An answer that fits all roles; what tea lowered is evidence."""
    return {
        "topic": "diet",
        "entity_type": request.user[:200],
        "intent": "other",
        "expected_answer_type": "other",
        "reason": "scripted",
        "evidence": [1],
        "score": 0.9 if "lowered" in request.user else 0.1,
        "text": "Green tea lowered fasting glucose.",
    }


@pytest.fixture
def server():
    """A chat server that takes `CALLS` calls for a line."""
    with ChatServer(answer) as running:
        yield running


def read_lines(path):
    return [json.loads(one) for one in path.read_bytes().split(b"\n") if one]


@pytest.fixture
def read():
    return read_lines
