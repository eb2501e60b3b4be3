"""`deepera serve`: what its options refuse, and what it says before it listens."""

import json
import socket
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from deepera_graph.serve import app
from deepera_graph.serve.config import KEYS, ServeConfig


@pytest.fixture
def served(monkeypatch):
    """What would be run, instead of running it."""
    given = []
    monkeypatch.setattr(app, "run", lambda config, listening, **how: given.append((config, how)))
    return given


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--max-documents", "0"], "--max-documents"),
        (["--timeout", "0"], "--timeout must be > 0, got 0.0"),
        (["--timeout", "nan"], "--timeout must be > 0, got nan"),
        (["--max-body", "nan"], "--max-body must be > 0 and finite, got nan"),
        (["--max-body", "inf"], "--max-body must be > 0 and finite, got inf"),
        (["--max-body", "0"], "--max-body must be > 0 and finite, got 0.0"),
        (["--port", "70000"], "70000"),
        (["--library", "nowhere.papers"], "nowhere.papers"),
        (["--library", "nowhere"], "nowhere"),
        (["--library", "http://127.0.0.1:9"], "must be a library or a file of papers, got 'http"),
        (["--backend", "rule"], "did you mean 'rules'"),
        (["--threshold", "2"], "2"),
    ],
)
def test_an_option_that_cannot_be_used_is_one_line(deepera, served, args, word, tmp_path):
    told = deepera("serve", *args)
    assert told.exit_code != 0
    assert served == []
    assert told.stderr.count("\n") == 1
    assert word in told.stderr


@pytest.mark.parametrize("key", ["hunter2", "hunter2-hüntér", " , "])
def test_a_key_that_cannot_be_one_is_refused_and_not_shown(deepera, served, monkeypatch, key):
    monkeypatch.setenv(KEYS, key)
    told = deepera("serve")
    assert (told.exit_code, served) == (2, [])
    assert KEYS in told.stderr
    assert "hunter2" not in told.stderr


def test_a_port_that_is_taken_is_told(deepera, served):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = deepera("serve", "--backend", "rules", "--port", port)
    assert (told.exit_code, served) == (2, [])
    assert f"cannot listen at 127.0.0.1:{port}: Address already in use\n" in told.stderr


@pytest.mark.parametrize(
    ("host", "keys", "warned"),
    [("127.0.0.1", "", False), ("0.0.0.0", "", True), ("0.0.0.0", "a-long-key", False)],
)
def test_an_address_that_others_reach_without_a_key_is_warned_of(
    deepera, served, monkeypatch, host, keys, warned
):
    monkeypatch.setenv(KEYS, keys)
    told = deepera("serve", "--backend", "rules", "--host", host, "--port", "0")
    assert ("may ask, without a key" in told.stderr) is warned
    assert f"answering at http://{host}:" in told.stderr
    assert len(served) == 1


def test_options_get_to_the_server(deepera, served, monkeypatch):
    monkeypatch.setenv(KEYS, "a-long-key")
    args = "--max-body 0.5 --max-documents 5 --timeout 3 --at-once 2 --queue 0 --log-questions"
    more = "--threshold 0.4 --top-n 3 --grace 7 --workers 3 --qdrant-url http://localhost:1 -q"
    deepera("serve", "--backend", "rules", "--port", "0", *f"{args} {more}".split())
    ((config, how),) = served
    assert isinstance(config, ServeConfig)
    assert config.backend == {"kind": "local", "judge": "rules"}
    limits = config.limits
    assert (limits.body_bytes, limits.documents, limits.seconds) == (524288, 5, 3.0)
    assert (limits.at_once, limits.queue, config.log_content, config.workers) == (2, 0, True, 3)
    assert (config.settings["threshold"], config.settings["top_n"]) == (0.4, 3)
    assert config.keys == ("a-long-key",)
    assert "a-long-key" not in repr(config)
    assert how == {"grace": 7, "quiet": True}


@pytest.fixture
def libraries(deepera, tmp_path):
    """A folder with the libraries apples and pears, and a file of papers."""
    for name in ("apples", "pears"):
        row = {"id": f"{name}-1", "title": f"Waxed {name}", "text": f"Wax kept {name} firm."}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row))
        deepera("index", tmp_path / f"{name}.jsonl", "--library", name, "--path", tmp_path / "in")
    papers = tmp_path / "plums.papers"
    deepera("papers", "build", tmp_path / "pears.jsonl", "--library", papers)
    return papers


@pytest.mark.parametrize(
    ("named", "searched", "papers"),
    [
        ((), ["apples", "pears"], None),
        (("apples",), ["apples"], "apples.sqlite"),
        (("pears,apples",), ["apples", "pears"], "pears.sqlite"),
        (("pears", "apples"), ["apples", "pears"], "pears.sqlite"),
        (("off",), [], None),
        (("plums.papers",), [], "plums.papers"),
        (("apples", "plums.papers"), ["apples"], "plums.papers"),
    ],
)
def test_only_the_libraries_that_are_named_are_served(
    deepera, served, libraries, named, searched, papers
):
    files = [str(libraries) if one.endswith(".papers") else one for one in named]
    given = [part for one in files for part in ("--library", one)]
    where = ("--path", libraries.parent / "in", "--backend", "rules", "--port", "0")
    told = deepera("serve", *given, *where)
    assert told.exit_code == 0, told.stderr
    ((config, _),) = served
    assert (config.papers and Path(config.papers).name) == papers
    with TestClient(app.create_app(config)) as client:
        listed = client.get("/v1/libraries").json()["libraries"]
        asked = {"question": "Does wax keep pears firm?", "library": "pears"}
        found = client.post("/v1/evidence", json=asked)
    assert [one["name"] for one in listed] == searched
    assert found.status_code == (200 if "pears" in searched else 404)


def test_the_papers_of_two_files_are_not_served(deepera, served, libraries):
    other = libraries.with_name("others.papers")
    other.write_bytes(libraries.read_bytes())
    told = deepera("serve", "--library", libraries, "--library", other)
    assert (told.exit_code, served) == (2, [])
    assert "one file of papers can be served, got '" in told.stderr
