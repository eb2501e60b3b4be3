"""What a command imports before it has something to say."""

import json
import subprocess
import sys

import pytest

HEAVY = {"grpc", "langchain_core.runnables.base", "langchain_openai", "langgraph", "numpy"}
HEAVY |= {"onnxruntime", "openai", "qdrant_client", "sklearn"}
RUN = (
    "import atexit, json, sys\n"
    "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
    "from deepera_graph.cli.main import run\n"
    "run()\n"
)


@pytest.fixture
def imports(environment, tmp_path):
    """Runs a command in a process of its own: code, what it said, what it had imported."""

    def run(*args):
        done = subprocess.run(
            [sys.executable, "-c", RUN, *map(str, args)],
            capture_output=True, text=True, cwd=tmp_path, env=environment, check=False,
        )  # fmt: skip
        *said, modules = done.stderr.splitlines()
        return done.returncode, done.stdout + "\n".join(said), set(json.loads(modules))

    return run


@pytest.fixture
def papers(questions):
    texts = ("Tea lowered glucose by 4% in 60 adults (p < 0.01).", "Effects of tea are debated.")
    return questions(*({"text": text} for text in texts), name="papers.jsonl")


@pytest.mark.parametrize(
    "args",
    [
        ("ask", "Tea?"),
        ("ask", "Tea?", "no-such-file"),
        ("ask", "Tea?", "papers.jsonl", "--threshold", "80"),
        ("ask", "Tea?", "papers.jsonl", "--backend", "locl"),
        ("ask", "Tea?", "papers.jsonl", "--where", "year"),
        ("ask", "Tea?", "papers.jsonl", "--model", "gpt-5-mini"),
        ("ask", "Tea?", "papers.jsonl", "--model", "openai:gpt-5-mini"),
        ("rerank", "no-such-file", "-o", "out.jsonl"),
        ("index", "no-such-file", "-c", "papers"),
        ("calibrate", "no-such-file", "-o", "curve.json"),
        ("demo", "--threshold", "80"),
        ("bench", "table", "no-such-file"),
        ("judge", "evaluate", "--data", "no-such-file"),
        ("papers", "ask", "Tea?", "-b", "no-such-file"),
        ("papers", "search", "Tea?", "-b", "no-such-file"),
        ("doctor", "--model", "gpt-5-mini"),
    ],
)
def test_a_usage_error_is_said_before_anything_heavy_is_imported(imports, papers, args):
    code, said, modules = imports(*args)
    assert (code in {1, 2}, said.startswith("deepera: "), HEAVY & modules) == (True, True, set())


def test_a_question_over_a_file_needs_neither_qdrant_nor_a_client_of_chat_models(imports, papers):
    code, said, modules = imports("ask", "Does tea lower glucose?", papers, "--threshold", "0")
    assert (code, "lowered glucose" in said) == (0, True)
    assert not {"grpc", "qdrant_client", "langchain_qdrant", "openai"} & modules
