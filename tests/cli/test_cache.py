"""The judgement cache of the command line: what it saves, and who has one."""

import json
import re
import subprocess
import sys

import pytest

from cli.conftest import CALLS, PASSAGES, QUESTION, TEA, line

pytestmark = pytest.mark.full


@pytest.fixture
def rerank(deepera, questions, server, tmp_path):
    def run(*args, name="out.jsonl"):
        result = deepera(
            "rerank", questions(line()), "-o", tmp_path / name, "--model", "any",
            "--base-url", server.base_url, *args,
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        return result, (tmp_path / name).read_bytes()

    return run


def test_a_second_run_makes_no_call_and_writes_equal_bytes(rerank, server, tmp_path):
    _, first = rerank()
    assert server.calls == CALLS
    result, second = rerank(name="again.jsonl")
    assert server.calls == CALLS
    assert second == first
    used = json.loads((tmp_path / "again.report.json").read_text(encoding="utf-8"))["usage"]
    assert (used["calls"], used["cached_calls"]) == (CALLS, CALLS)
    assert f"{CALLS} calls, {CALLS} of them from the cache" in result.stderr


def test_ask_says_what_came_from_the_cache(deepera, questions, server):
    source = questions({"id": "a", "text": PASSAGES[0]["text"]}, name="papers.jsonl")
    args = ("ask", QUESTION, source, "--model", "any", "--base-url", server.base_url)
    told = [" ".join(deepera(*args).output.split()) for _ in range(2)]
    assert "from the cache" not in told[0]
    assert re.search(r"(\d+) calls?, \1 of them from the cache", told[1])


def test_another_process_has_the_same_cache(rerank, start, questions, server, tmp_path):
    _, first = rerank()
    process = start(
        "rerank", questions(line()), "-o", tmp_path / "two.jsonl", "--model", "any",
        "--base-url", server.base_url,
    )  # fmt: skip
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert server.calls == CALLS
    assert (tmp_path / "two.jsonl").read_bytes() == first


def test_off_keeps_no_answer(rerank, server, tmp_path):
    rerank("--cache", "off")
    rerank("--cache", "off", name="again.jsonl")
    assert server.calls == 2 * CALLS
    assert not (tmp_path / "cache").exists()


def test_a_folder_can_be_named(rerank, server, tmp_path):
    rerank("--cache", tmp_path / "mine")
    rerank("--cache", tmp_path / "mine", name="again.jsonl")
    assert server.calls == CALLS
    assert not (tmp_path / "cache").exists()


def test_ask_has_the_same_cache(deepera, questions, server):
    source = questions(*PASSAGES, name="papers.jsonl")
    args = ("ask", QUESTION, source, "--json", "--model", "any", "--base-url", server.base_url)
    first = json.loads(deepera(*args).stdout)
    n_calls = server.calls
    second = json.loads(deepera(*args).stdout)
    assert server.calls == n_calls > 0
    assert first["ranking"] == second["ranking"]


@pytest.mark.parametrize("backend", ["local", TEA])
def test_rules_and_code_known_by_name_alone_have_none(deepera, questions, tmp_path, backend):
    result = deepera("rerank", questions(line()), "--backend", backend)
    assert result.exit_code == 0
    assert "cache" not in result.stderr
    assert not (tmp_path / "cache").exists()


def test_code_known_by_name_alone_has_one_if_a_folder_is_named(deepera, questions, tmp_path):
    deepera("rerank", questions(line()), "--backend", TEA, "--cache", tmp_path / "mine")
    result = deepera("cache", "stats", "--cache", tmp_path / "mine", "--json")
    assert json.loads(result.stdout)["answers"] == CALLS


def test_a_factory_of_a_chat_model_has_one(deepera, questions, server, tmp_path, monkeypatch):
    code = f"""
from deepera_graph.judges.llm import llm_backend


def build():
    return llm_backend("openai:any", base_url={server.base_url!r})
"""
    (tmp_path / "chats.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for _ in range(2):
        result = deepera("rerank", questions(line()), "--backend", "chats:build")
        assert result.exit_code == 0, result.output
        del sys.modules["chats"]
    assert server.calls == CALLS


def test_a_default_cache_that_cannot_be_opened_is_told_and_done_without(rerank, server, tmp_path):
    (tmp_path / "cache").write_text("in the way", encoding="utf-8")
    result, _ = rerank()
    assert server.calls == CALLS
    assert result.stderr.startswith("deepera: going on without a cache: ")


def test_a_named_cache_that_cannot_be_opened_is_an_error(deepera, questions, tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    args = ("--backend", TEA, "--cache", tmp_path / "file" / "deep")
    result = deepera("rerank", questions(line()), *args)
    assert result.exit_code == 3
    assert result.stderr.count("\n") == 1
    assert "cannot be used" in result.stderr


def test_no_cache_yet_is_an_empty_one(deepera, tmp_path):
    assert deepera("cache", "stats").stdout.startswith("0 answers in ")
    assert deepera("cache", "clear", "--quiet").output == ""
    assert not (tmp_path / "cache").exists()


def test_stats_count_answers_by_role(rerank, deepera):
    rerank()
    plain = json.loads(deepera("cache", "stats", "--json").stdout)
    assert plain["answers"] == CALLS
    assert plain["roles"]["judge"] == len(PASSAGES)
    assert plain["bytes"] > 0
    shown = deepera("cache", "stats").stdout
    assert f"{CALLS} answers in {plain['folder']}" in shown
    assert f"judge: {len(PASSAGES)}" in shown


def test_clear_removes_every_answer(rerank, deepera):
    rerank()
    assert deepera("cache", "clear").stdout.startswith(f"{CALLS} answers removed from ")
    assert json.loads(deepera("cache", "stats", "--json").stdout)["answers"] == 0


@pytest.mark.parametrize(
    ("args", "n_removed"),
    [(("--older-than", "1"), 0), (("--older-than", "0"), CALLS), (("--max-mb", "0"), CALLS)],
)
def test_prune_keeps_to_its_limits(rerank, deepera, args, n_removed):
    rerank()
    assert json.loads(deepera("cache", "prune", *args, "--json").stdout)["removed"] == n_removed


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("prune",), "give --older-than, --max-mb or both"),
        (("prune", "--max-mb", "-1"), "-1"),
        (("stats", "--cache", "nowhere"), "no judgement cache in 'nowhere'"),
        (("clear", "--cache", "off"), "--cache must be a folder, got 'off'"),
        (("shrink",), "No such command 'shrink'"),
    ],
)
def test_a_wrong_use_is_one_line(deepera, args, problem):
    result = deepera("cache", *args)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert problem in result.stderr


def test_the_help_is_quick_to_import():
    code = "import deepera_graph.cli.main, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"sqlite3", "numpy", "sklearn", "bm25s"} & set(loaded) == set()
