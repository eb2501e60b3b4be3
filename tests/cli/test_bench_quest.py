"""`deepera-lab bench quest` on the command line: build and judge, against a scripted server."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.quest.conftest import read
from bench.quest.scripted import Planted, Scripted
from deepera_graph.papers import PaperBase
from papers.planted import FIELDS, plain
from papers.world import write_lines
from support.literature import Literature
from support.openai_server import ChatServer

pytestmark = pytest.mark.full

FEW = ("--prefilter", "words", "--min-answers", 1, "--max-hops", 0, "--max-scored", 10)
AT_ONCE = 2


class Panel:
    """Scripted models of one server, by the name that a request gives."""

    def __init__(self, planted):
        self.planted, self.models = planted, {}

    def __call__(self, request):
        name = request.body["model"]
        model = self.models.setdefault(name, Scripted(model_name=name, planted=self.planted))
        return model.reply(next(m["content"] for m in request.messages if m["role"] == "user"))


@pytest.fixture(scope="module")
def planted():
    return Planted(100)


@pytest.fixture(scope="module")
def server(planted):
    with ChatServer(Panel(planted)) as running:
        yield running


@pytest.fixture(scope="module")
def base(planted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("quest")
    source = write_lines(folder / "planted.jsonl.gz", plain(planted.papers))
    with PaperBase.build(folder / "planted.papers", source) as made:
        return Path(made.place)


@pytest.fixture
def topics(tmp_path):
    path = tmp_path / "topics.txt"
    path.write_text("\n".join(FIELDS), encoding="utf-8")
    return path


@pytest.fixture
def quest(deepera_lab, base, tmp_path):
    def run(*args, url=None):
        model = ("--model", "writer", "--base-url", url) if url else ()
        return deepera_lab(
            "bench", "quest", *args, "--library", base, "--out", tmp_path / "out", *model
        )

    return run


def test_a_benchmark_is_built_from_topics_and_judged_again(quest, server, topics, tmp_path):
    judges = ("--judge-model", f"one,two@{server.base_url}")
    args = ("build", topics, "--limit", 1, *judges, *FEW)
    done = quest(*args, url=server.base_url)
    assert done.exit_code == 0, done.stderr
    assert "4 questions of 4 written (1 method, 1 setting, 1 comparison, 1 scope)" in done.stdout
    assert "questions ended by: max_scored 4" in done.stdout
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert [*manifest["judges"]] == ["one", "two"]
    assert server.base_url not in json.dumps(manifest)
    refused = quest(*args, url=server.base_url)
    assert (refused.exit_code, "--overwrite" in refused.stderr) == (2, True)
    n_calls = server.calls
    again = quest(*args, "--overwrite", "--json", url=server.base_url)
    assert json.loads(again.stdout) == manifest
    assert server.calls == n_calls

    earlier = tmp_path / "earlier.json"
    earlier.write_text(json.dumps(manifest), encoding="utf-8")
    repeat = ("build", topics, "--limit", 1, "--manifest", earlier, "--overwrite", "--quiet",
              "--base-url", server.base_url)  # fmt: skip
    assert quest(*repeat).exit_code == 0
    assert server.calls == n_calls
    earlier.write_text(json.dumps({**manifest, "prompts": {}}), encoding="utf-8")
    changed = quest(*repeat)
    assert (changed.exit_code, "earlier.json: prompts" in changed.stderr) == (1, True)
    settled = quest(*repeat, "--max-hops", 1)
    assert "--manifest settles --max-hops: leave them out" in settled.stderr

    run = tmp_path / "run.jsonl"
    judged = {}
    for one in read(tmp_path / "out", "judgements.jsonl"):
        judged.setdefault(one["query_id"], []).append(one["paper_id"])
    lines = [
        json.dumps({"id": id, "ranked": [*ids[:6], "none such"]}) for id, ids in judged.items()
    ]
    run.write_text("\n".join(lines), encoding="utf-8")
    asked = tmp_path / "questions.jsonl"
    asked.write_bytes((tmp_path / "out" / "questions.jsonl").read_bytes())
    done = quest("judge", asked, run, "--min-answers", 1, "--overwrite", "--quiet",
                 url=server.base_url)  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "one judge alone" in done.stderr
    assert len(read(tmp_path / "out", "judgements.jsonl")) == 24
    for one in read(tmp_path / "out", "records.jsonl"):
        assert one["left_out"] == {"unknown": ["none such"]}


def test_without_a_model_it_says_what_is_needed(quest, deepera_lab, topics, tmp_path):
    nowhere = deepera_lab("bench", "quest", "build", topics, "-o", tmp_path / "out")
    assert "--library must name a base of papers, or --source services" in nowhere.stderr
    done = quest("build", topics)
    assert done.exit_code == 2
    assert "a chat model is needed: give --model" in done.stderr
    assert "all it can do is the prefilter" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_dry_run_estimates_calls_tokens_and_cost_and_needs_no_model(quest, topics, tmp_path):
    args = ("build", topics, "--dry-run", "--judge-model", "a,b,c")
    prices = ("--input-price", 1, "--output-price", 2)
    found = json.loads(quest(*args, *prices, "--json").stdout)
    assert (found["topics"], found["questions"]) == (5, 20)
    assert [*found["steps"]] == [
        "questions", "review", "rewrite", "grade", "adjudicate", "filter",
    ]  # fmt: skip
    assert found["steps"]["grade"] >= 3 * found["pairs"] / 10
    cost = (found["input_tokens"] + 2 * found["output_tokens"]) / 1e6
    assert found["cost"] == pytest.approx(cost)
    assert "20 questions, about" in quest(*args).stdout
    asked = tmp_path / "asked.jsonl"
    asked.write_text('{"id": "1", "query": "Papers on kelp"}', encoding="utf-8")
    given = json.loads(quest("build", asked, "--questions", "--dry-run", "--json").stdout)
    assert [*given["steps"]] == ["rewrite", "grade", "filter"]
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_no_manifest_is_named(quest, topics, tmp_path):
    (tmp_path / "earlier.json").write_text('{"model": {"model": "m"}}', encoding="utf-8")
    done = quest("build", topics, "--manifest", tmp_path / "earlier.json")
    assert done.exit_code == 2
    assert (
        "earlier.json is no manifest of `deepera-lab bench quest`: KeyError('plan')" in done.stderr
    )


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("build", "none.txt"), "no such file: 'none.txt'"),
        (("build", "TOPICS", "--judge-model", "a@b"), "NAME or NAME@URL, got 'a@b'"),
        (("build", "TOPICS", "--max-hops", 3), "max_hops must be one of 0, 1, 2, got 3"),
        (("build", "TOPICS", "--judge-model", "a,a"), "'a' twice"),
        (("judge", "TOPICS", "TOPICS"), "record 1: not JSON"),
        (("build", "TOPICS", "--source", "pubmet"), "'pubmet'"),
    ],
)
def test_bad_input_is_one_line_that_names_it(quest, server, topics, args, problem):
    given = [topics if one == "TOPICS" else one for one in args]
    done = quest(*given, url=server.base_url)
    assert done.exit_code == 2
    assert problem in done.stderr


def test_a_service_of_literature_that_is_out_of_credits_leaves_the_bases_and_is_named(
    quest, server, topics, tmp_path, monkeypatch
):
    with Literature() as services:
        services.faults["openalex"] = "hours"
        monkeypatch.setenv("DEEPERA_OPENALEX_URL", services.url("openalex"))
        done = quest("build", topics, "--limit", 1, "--source", "openalex", "--quiet", *FEW,
                     url=server.base_url)  # fmt: skip
    assert done.exit_code == 1
    assert "calls failed: 11 of openalex; run it again with --overwrite" in done.stderr
    for one in read(tmp_path / "out", "records.jsonl"):
        assert one["sources"]["openalex"] == {"rate_limited": 11}
        assert one["answers"]


def test_a_spent_budget_says_how_to_go_on(quest, server, topics):
    args = ("build", topics, "--limit", 1, "--judge-model", "spent", "--max-calls", 3, *FEW)
    done = quest(*args, "--quiet", url=server.base_url)
    assert done.exit_code == 1
    assert "budget reached: 3 calls; what was answered is kept, run it again" in done.stderr


@pytest.mark.slow
def test_a_killed_build_repeats_only_the_calls_that_were_in_flight(planted, base, topics, tmp_path):
    panel = Panel(planted)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    def start(server, out):
        command = (
            "bench", "quest", "build", topics, "--library", base, "--out", out, "--limit", 1,
            "--model", "writer", "--base-url", server.base_url, "--judge-model", "one,two",
            "--max-concurrency", AT_ONCE, *FEW,
        )  # fmt: skip
        words = [sys.executable, "-m", "deepera_graph.lab", *map(str, command)]
        return subprocess.Popen(words, env=environment)

    with ChatServer(panel, latency=0.1) as server:
        killed = start(server, tmp_path / "out")
        deadline = time.monotonic() + 120
        while server.answered < 12:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        killed.kill()
        killed.wait()
        assert not (tmp_path / "out" / "manifest.json").exists()
        n_before = server.calls
        assert start(server, tmp_path / "out").wait() == 0
        n_all = server.calls
        pairs = [one.pairs for one in panel.models.values()]
        n_twice = sum(n - 1 for one in pairs for n in one.values())
        assert start(server, tmp_path / "whole").wait() == 0
        n_whole = server.calls - n_all
    assert n_before < n_whole <= n_all <= n_whole + AT_ONCE
    assert n_twice <= AT_ONCE * 10  # a call has ten papers
    for one in (tmp_path / "whole").glob("*.json*"):
        assert one.read_bytes() == (tmp_path / "out" / one.name).read_bytes()
