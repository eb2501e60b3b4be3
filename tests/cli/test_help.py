"""Help that teaches, in no time."""

import re
import subprocess
import sys

import pytest

from deepera_graph import __version__
from deepera_graph.settings import Settings

COMMANDS = ("demo", "rerank", "index", "ask", "calibrate", "bench", "cache", "judge")
WITH_JSON = (
    "demo",
    "rerank",
    "index",
    "ask",
    "calibrate",
    "bench table",
    "bench natural",
    "bench realism",
    "bench study",
    "bench build",
    "cache stats",
)


@pytest.mark.parametrize("command", WITH_JSON)
def test_the_help_of_a_command_has_examples_and_exit_codes(deepera, command):
    result = deepera(*command.split(), "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    assert f"deepera {command}" in result.stdout
    assert "130 interrupted" in " ".join(result.stdout.split())
    assert "--json" in result.stdout


def test_the_help_names_all_commands_and_their_exit_codes(deepera):
    text = " ".join(deepera("--help").stdout.split())
    assert all(f" {command} " in text for command in COMMANDS)
    for code in ("0 done", "1 a line", "2 usage", "3 backend or store unreachable"):
        assert code in text


def test_the_version_is_told(deepera):
    assert deepera("--version").stdout == f"deepera {__version__}\n"


def test_no_command_shows_the_help(deepera):
    result = deepera()
    assert result.exit_code == 2
    assert "Usage" in result.output


def test_help_loads_no_langchain():
    loaded = "import sys; print(*sys.modules)"
    code = f"from deepera_graph.cli.main import app; {loaded}"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"langchain_core", "langgraph", "pydantic", "qdrant_client", "openai", "asyncio"}
    assert heavy & set(modules) == set()


@pytest.mark.parametrize("name", ["threshold", "top_n", "max_concurrency", "order", "on_empty"])
def test_the_defaults_in_the_help_are_the_defaults(deepera, name):
    text = re.sub(r"[│\s]+", " ", deepera("rerank", "--help").stdout)
    option = f"--{name.replace('_', '-')} "
    after = text[text.index(option) :]
    assert after[after.index("[default:") :].startswith(f"[default: ({Settings().to_dict()[name]})")


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["reranc"], "Did you mean 'rerank'?"),
        (["rerank", "--treshold", "1"], "--threshold"),
        (["rerank"], "Missing argument 'IN'"),
        (["rerank", "-", "--top-n", "many"], "'many'"),
        (["rerank", "-", "--order", "size"], "'size'"),
        (["rerank", "-", "--limit", "0"], "0"),
    ],
)
def test_a_usage_error_is_one_line(deepera, args, hint):
    result = deepera(*args)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert hint in result.stderr
    assert result.stderr.rstrip().endswith("--help)")
