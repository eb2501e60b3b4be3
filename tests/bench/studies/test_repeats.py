"""Runs of what asks a chat model: rankers, generator and judge of answers."""

from itertools import count

import pytest

from bench.lakes import write_jsonl
from bench.study_lakes import answered, column, compare, lab, lakes
from deepera_graph.lab.asking import Chat
from deepera_graph.lab.metrics.answers import ChatGenerator, LfsJudge
from deepera_graph.lab.rankers.base import FirstStage
from deepera_graph.lab.rankers.llm import llm_pointwise
from deepera_graph.lab.rankers.named import make_ranker
from deepera_graph.lab.studies.base import StudyConfig
from deepera_graph.lab.studies.rerank.main_table import study_main_table
from deepera_graph.stores.judgements import JudgementCache
from support.openai_server import ChatServer

pytestmark = pytest.mark.full


@pytest.fixture
def server():
    """Every reply is another: a score, an answer, or a mark."""
    numbers = count()

    def reply(request):
        number = next(numbers)
        if "reference answer" in request.system:
            return {"reason": "r", "score": 1 + number % 5}
        if "You answer" in request.system:
            return {"answer": "two degrees warm, all of it"[: 5 + number % 20]}
        return {"reason": "r", "score": (number * 37 % 101) / 100}

    with ChatServer(reply) as running:
        yield running


def models(server, cache):
    def chat(name):
        return Chat.of(f"openai:{name}", base_url=server.base_url, cache=cache)

    return llm_pointwise(chat("ranker")), ChatGenerator(chat("writer")), LfsJudge(chat("marker"))


def study(server, cache, n_repeats=None, rankers=()):
    ranker, generator, judge = models(server, cache)
    data = answered(lakes(3), lambda one: "two degrees")
    setup = {"generator": generator, "answer_judge": judge, "n_repeats": n_repeats}
    return study_main_table(lab([*rankers, ranker], [data], **setup))


def test_repeats_ask_rankers_generator_and_judge_anew(server):
    cache = JudgementCache()
    found = study(server, cache, n_repeats=3)
    grid = found.grids[0]
    assert column(grid, "runs") == [3]
    names = [one.name for one in grid.columns]
    for name in ("F1", "LFS", "MRR"):
        assert grid.rows[0][names.index(name)].std > 0
    n_calls = len(server.requests)
    assert n_calls == 3 * (15 + 3 + 3)
    assert found.facts["answers"]["runs"] == 3
    again = study(server, cache, n_repeats=3).grids[0]
    assert repr(again.rows) == repr(grid.rows)  # with numbers that are none
    assert len(server.requests) == n_calls  # each run has answers of its own in the cache


def test_unless_asked_for_models_are_paid_for_once_and_the_study_says_so(server):
    found = study(server, JudgementCache())
    assert column(found.grids[0], "runs") == [1]
    assert len(server.requests) == 15 + 3 + 3
    assert any("--repeats 3" in one for one in found.findings)


def test_a_ranker_that_never_changes_is_answered_for_in_every_run(server):
    grid = study(server, JudgementCache(), n_repeats=2, rankers=[FirstStage()]).grids[0]
    assert column(grid, "runs") == [2, 2]
    names = [one.name for one in grid.columns]
    assert grid.rows[0][names.index("MRR")].std == 0
    assert grid.rows[0][names.index("LFS")].std > 0


def test_the_table_repeats_rankers_that_ask_a_model_too(server):
    ranker, *_ = models(server, JudgementCache())
    table = compare([ranker], [lakes(3)], StudyConfig(n_repeats=2, n_resamples=20))
    assert table.rows[0].n_repeats == 2
    assert len(server.requests) == 2 * 15
    once = compare([models(server, JudgementCache())[0]], [lakes(3)], StudyConfig(n_resamples=20))
    assert once.rows[0].n_repeats == 1


@pytest.mark.parametrize(
    ("name", "n_runs"),
    [("first-stage", 1), ("bm25", 1), ("random", 2), ("deepera:rules", 1)],
)
def test_only_what_may_differ_is_repeated(name, n_runs):
    assert len(make_ranker(name).runs(2)) == n_runs


def test_a_judge_of_its_own_answers_is_warned_of(server, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from deepera_graph.lab.cli.main import app

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data = write_jsonl(
        tmp_path / "lakes.jsonl",
        [{"id": "q", "question": "How warm?", "golden": ["a"], "answer": "two degrees",
          "passages": [{"id": "a", "text": "It was two degrees warm."}]}],
    )  # fmt: skip
    one = f"tiny@{server.base_url}"
    args = ["study", "main", str(data), "--rankers", "first-stage", "--resamples", "20"]
    models = ["--generator", one, "--answer-judge", one]
    said = CliRunner().invoke(app, [*args, *models, "--out", str(tmp_path / "out"), "-q"])
    assert said.exit_code == 0, said.output
    assert "tiny judges its own answers" in said.stderr
    assert "tiny judges its own answers" in (tmp_path / "out" / "main.md").read_text()
    assert '"judges_its_own_answers": true' in (tmp_path / "out" / "manifest.json").read_text()
    other = ["--generator", one, "--answer-judge", f"other@{server.base_url}"]
    assert "its own answers" not in CliRunner().invoke(app, [*args, *other, "-q"]).stderr
