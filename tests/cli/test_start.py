"""What a command imports before it has something to say."""

import json
import os
import subprocess
import sys

import pytest

from cli.conftest import TESTS

pytestmark = pytest.mark.full

HEAVY = {"grpc", "langchain_core.runnables.base", "langchain_openai", "langgraph", "numpy"}
HEAVY |= {"onnxruntime", "openai", "qdrant_client", "sklearn"}
ERRORS = [
    ("ask", "Tea?"),
    ("ask", "Tea?", "no-such-file"),
    ("ask", "Tea?", "papers.jsonl", "--threshold", "80"),
    ("ask", "Tea?", "papers.jsonl", "--backend", "locl"),
    ("ask", "Tea?", "papers.jsonl", "--where", "year"),
    ("ask", "Tea?", "papers.jsonl", "--model", "gpt-5-mini"),
    ("ask", "Tea?", "papers.jsonl", "--model", "openai:gpt-5-mini"),
    ("rerank", "no-such-file", "-o", "out.jsonl"),
    ("index", "no-such-file", "-l", "papers"),
    ("calibrate", "no-such-file", "-o", "curve.json"),
    ("demo", "--threshold", "80"),
    ("bench", "table", "no-such-file"),
    ("study", "multihop", "no-such-folder"),
    ("judge", "evaluate", "--data", "no-such-file"),
    ("papers", "ask", "Tea?", "-l", "no-such-file"),
    ("papers", "search", "Tea?", "-l", "no-such-file"),
    ("doctor", "--model", "gpt-5-mini"),
]
RUN = """
import io, json, sys
from deepera_graph.cli import main
from deepera_graph.lab.cli import main as lab

shown, known = sys.stdout, set()
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    sys.stdout = sys.stderr = io.TextIOWrapper(io.BytesIO(), "utf-8")
    code = 0
    try:
        (lab if arguments[0] in ("bench", "judge", "study") else main).run()
    except SystemExit as end:
        code = end.code
    sys.stdout.seek(0)
    imported = sys.modules.keys() - known
    print(json.dumps([code, sys.stdout.read(), sorted(imported)]), file=shown)
    known |= imported
"""


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    texts = ("Tea lowered glucose by 4% in 60 adults (p < 0.01).", "Effects of tea are debated.")
    path = tmp_path_factory.mktemp("start") / "papers.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


@pytest.fixture(scope="module")
def imports(papers):
    """Runs commands in a process: of each the code, what it said, what none before had imported."""

    def run(*commands):
        dropped = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "QDRANT_API_KEY")
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        folders = {
            "XDG_DATA_HOME": papers.parent / "data",
            "XDG_CACHE_HOME": papers.parent / "kept",
        }
        path = f"{TESTS}{os.pathsep}{TESTS.parent}"
        given = json.dumps([[str(one) for one in arguments] for arguments in commands])
        done = subprocess.run(
            [sys.executable, "-c", RUN, given],
            capture_output=True, text=True, cwd=papers.parent, check=True,
            env={**kept, "PYTHONPATH": path, **{name: str(at) for name, at in folders.items()}},
        )  # fmt: skip
        found = [json.loads(one) for one in done.stdout.splitlines()]
        return [(code, said, set(modules)) for code, said, modules in found]

    return run


def test_libraries_are_listed_without_opening_them(imports, papers):
    index = ["index", papers, "-l", "listed", "--path", "listed"]
    (code, _, _), (listed, said, _) = imports(index, ["library", "list", "--path", "listed"])
    assert (code, listed, said.split()) == (0, 0, ["listed", "2", "passages", "sparse"])
    [(_, again, modules)] = imports(["library", "list", "--path", "listed"])
    assert (again, HEAVY & modules) == (said, set())


@pytest.fixture(scope="module")
def usage_errors(imports):
    return dict(zip(ERRORS, imports(*ERRORS), strict=True))


@pytest.mark.parametrize("args", ERRORS)
def test_a_usage_error_is_said_before_anything_heavy_is_imported(usage_errors, args):
    code, said, modules = usage_errors[args]
    assert (code in {1, 2}, said.startswith(("deepera: ", "deepera-lab: ")), HEAVY & modules) == (
        True,
        True,
        set(),
    )


def test_a_question_over_a_file_needs_neither_qdrant_nor_a_client_of_chat_models(imports, papers):
    asked = ("ask", "Does tea lower glucose?", papers, "--threshold", "0")
    [(code, said, modules)] = imports(asked)
    assert (code, "lowered glucose" in said) == (0, True)
    assert {"langgraph", "numpy"} <= modules
    assert not {"grpc", "qdrant_client", "langchain_qdrant", "openai"} & modules
