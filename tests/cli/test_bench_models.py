"""`deepera-lab bench table` with rankers that need a model, a package or a key."""

import json
import sys

import pytest

from cli.conftest import PASSAGES, line
from deepera_graph.packages import install_command
from support.openai_server import ChatServer, Reply

QUICK = ("--resamples", "20", "--metrics", "HitRate@1")
N = 3


def reply(request):
    """An answer that fits every prompt; what tea lowered is evidence, wherever it stands."""
    asked = next(one["content"] for one in request.messages if one["role"] == "user")
    return {
        "topic": "diet",
        "entity_type": asked[:200],
        "intent": "other",
        "expected_answer_type": "other",
        "reason": "scripted",
        "evidence": [1],
        "score": 0.9 if "lowered" in asked else 0.1,
        "summary": "It lowered it.",
        "relevance_score": 9 if "lowered" in asked else 1,
        "order": [2, 1, 3],
        "ranked_document_ids": [1, 0, 2],
    }


@pytest.fixture
def server():
    with ChatServer(reply) as running:
        yield running


@pytest.fixture
def data(questions):
    lines = [
        line(f"q{n}", golden=["b"], question=f"Does {n} g of tea lower glucose?") for n in range(N)
    ]
    return questions(*lines, name="tea.jsonl")


@pytest.fixture
def table(deepera_lab, data):
    def run(*args):
        return deepera_lab("bench", "table", data, *QUICK, *args)

    return run


def rows(result, name="results"):
    grid = next(one for one in json.loads(result.stdout)["tables"] if one["name"] == name)
    heads = [one["name"] for one in grid["columns"]]
    return {row[1]: dict(zip(heads, row, strict=True)) for row in grid["rows"]}


def at(server):
    return ("--model", "tiny", "--base-url", server.base_url)


@pytest.mark.full
def test_all_rankers_that_ask_take_the_model_of_the_table(table, server):
    names = "deepera:llm,llm-pointwise,llm-listwise,rankgpt,paperqa,langchain-listwise"
    result = table("--rankers", names, *at(server), "--json")
    assert result.exit_code == 0, result.output
    found = rows(result)
    assert list(found) == [
        "DeepEra tiny", "LLM pointwise tiny", "LLM listwise tiny", "RankGPT tiny",
        "paper-qa style tiny", "LLMListwiseRerank tiny",
    ]  # fmt: skip
    for row in found.values():
        assert row["HitRate@1"]["mean"] == 1
        assert row["tokens"] > 0
        assert row["failed"] == 0
    assert found["LLM pointwise tiny"]["calls"] == len(PASSAGES)
    assert found["RankGPT tiny"]["calls"] == 1


@pytest.mark.full
def test_a_model_without_named_rankers_is_asked_by_deepera(table, server):
    assert "DeepEra tiny" in rows(table(*at(server), "--json"))


@pytest.mark.full
def test_answers_are_cached_and_rankings_kept(table, server, tmp_path):
    args = ("--rankers", "rankgpt,llm-pointwise", *at(server), "--keep", tmp_path / "kept")
    first = table(*args)
    n_calls = server.calls
    assert n_calls == N * (1 + len(PASSAGES))
    assert table(*args).stdout == first.stdout
    for path in (tmp_path / "kept").iterdir():
        path.unlink()
    assert table(*args).exit_code == 0
    assert server.calls == n_calls
    assert table(*args, "--cache", "off").exit_code == 0
    assert server.calls == n_calls  # kept
    for path in (tmp_path / "kept").iterdir():
        path.unlink()
    table(*args, "--cache", "off")
    assert server.calls == 2 * n_calls


@pytest.mark.full
def test_two_models_are_two_rows(table, server):
    url = server.base_url
    result = table("--rankers", f"rankgpt:one@{url},rankgpt:two@{url}", "--json")
    assert list(rows(result)) == ["RankGPT one", "RankGPT two"]
    assert {request.model for request in server.requests} == {"one", "two"}


@pytest.mark.full
def test_a_spent_budget_is_one_line_and_what_is_cached_is_not_paid_again(table, server):
    args = ("--rankers", "llm-pointwise", *at(server))
    result = table(*args, "--max-calls", "2")
    assert result.exit_code == 2
    assert result.stderr == "deepera-lab: budget reached: 2 calls\n"
    assert server.calls == 2
    assert table(*args).exit_code == 0
    assert server.calls == N * len(PASSAGES)


def test_what_is_not_available_has_a_line_everywhere(table, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    names = "bm25,cross-encoder:BAAI/bge-reranker-base,rankgpt:openai:gpt-5-mini"
    result = table("--rankers", names, "--out", tmp_path / "out")
    assert result.exit_code == 0
    why = f"sentence_transformers is not installed: {install_command('sentence-transformers')}"
    assert f"- cross-encoder:BAAI/bge-reranker-base on tea is left out: {why}\n" in result.stdout
    assert "| cross-encoder:BAAI/bge-reranker-base | not available |" in result.stdout
    assert result.stderr.count("\n") == 2
    assert f"cross-encoder:BAAI/bge-reranker-base is not available: {why}" in result.stderr
    assert "rankgpt:openai:gpt-5-mini is not available: no API key: set the" in result.stderr
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["not_available"][0]["reason"] == why


def test_strict_stops_at_what_is_not_available(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "flashrank", None)
    result = table("--rankers", "bm25,flashrank", "--strict")
    assert result.exit_code == 2
    assert result.stderr == "deepera-lab: flashrank is not installed: pip install 'flashrank'\n"
    assert result.stdout == ""


@pytest.mark.full
def test_a_server_that_is_not_there_leaves_the_others_their_rows(table, no_wait):
    nowhere = ("--model", "tiny", "--base-url", "http://127.0.0.1:9/v1", "--cache", "off")
    result = table("--rankers", "bm25,llm-pointwise,deepera:llm", *nowhere, "--json")
    assert result.exit_code == 0
    assert list(rows(result)) == ["BM25"]
    left_out = [one.partition(" on tea")[0] for one in json.loads(result.stdout)["findings"][1:]]
    assert left_out == ["LLM pointwise tiny", "DeepEra tiny"]
    alone = table("--rankers", "llm-pointwise", *nowhere)
    assert alone.exit_code == 3
    assert "cannot be reached" in alone.stderr


def test_a_refused_key_is_told_without_the_key(table, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret-0123456789")
    with ChatServer(lambda request: Reply(status=401, content="sk-secret-0123456789")) as server:
        args = ("--rankers", "rankgpt", *at(server), "--api-key-env", "MY_KEY")
        result = table(*args)
    assert result.exit_code == 3
    assert "refused the API key" in result.stderr
    assert "secret" not in result.output


@pytest.mark.full
def test_failed_calls_are_counted_and_can_be_tried_again(table, tmp_path):
    broken = True

    def answer(request):
        return Reply(status=400, content="bad") if broken and "lowered" in request.user else (
            reply(request)
        )  # fmt: skip

    with ChatServer(answer) as server:
        args = ("--rankers", "llm-pointwise", *at(server), "--keep", tmp_path / "kept")
        first = table(*args)
        assert "| tea | LLM pointwise tiny | passages not judged | 33.3 |" in first.stdout
        assert "| LLM pointwise tiny | 1 | 0.0 [0.0, 0.0]" in first.stdout
        broken = False
        again = table(*args)
        assert again.stdout == first.stdout
        assert "--retry-failed ranks them again" in again.stderr
        assert "| LLM pointwise tiny | 1 | 100.0 " in table(*args, "--retry-failed").stdout
        assert "| LLM pointwise tiny | 1 | 100.0 " in table(*args).stdout


def test_the_baseline_may_be_named_as_it_was_typed(table):
    result = table("--rankers", "bm25,random", "--baseline", "bm25")
    assert "## Minus BM25, on the same questions" in result.stdout


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--rankers", "rankgpt"), "needs one, e.g. --model NAME"),
        (("--rankers", "bm25", "--model", "openai:x"), "is asked by no ranker in --rankers"),
        (("--rankers", "rankgpt", "--model", "x"), "e.g. openai:x"),
        (("--rankers", "rankgpt", "--model", "x", "--base-url", "localhost"), "http"),
        (("--rankers", "rankgpt:openai:x", "--api-key-env", "NO_SUCH"), "NO_SUCH"),
        (("--rankers", "rankgpt:openai:x", "--api-key-env", "sk-123abc"), "not the key itself"),
        (("--rankers", "rankgpt:openai:x", "--max-concurrency", "0"), "max_concurrency must be"),
        (("--rankers", "rankgpt:openai:x", "--requests-per-minute", "0"), "requests_per_minute"),
        (("--rankers", "rankgpt:openai:x", "--max-cost", "1"), "needs input_price"),
        (("--rankers", "rankgtp:openai:x"), "did you mean 'rankgpt'"),
        (("--rankers", "rerankers:t5"), "must be TYPE/NAME"),
    ],
)
def test_mistakes_are_one_line(table, args, problem):
    result = table(*args)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1
    assert problem in result.stderr
    assert "sk-123abc" not in result.stderr
