"""A benchmark of searches for papers, from topics to graded papers, over a planted world."""

import asyncio

import pytest
from pydantic import Field

from bench.quest.conftest import TOPICS, read
from bench.quest.scripted import Scripted
from deepera_graph import Budget
from deepera_graph.errors import BudgetError, SettingsError, StoreError
from deepera_graph.lab.construction import Construction
from deepera_graph.lab.quest.builder import answer_quest, judge_quest
from deepera_graph.lab.quest.questions import read_questions
from deepera_graph.lab.quest.records import QuestQuestion
from deepera_graph.lab.quest.sources import BaseSource
from deepera_graph.lab.settings import QuestPlan
from deepera_graph.lab.studies.papers.runs import read_queries
from deepera_graph.papers import PaperBase

pytestmark = pytest.mark.full


def test_planted_answers_are_found_and_nothing_else(build, planted):
    """Three judges of accuracy .95, and an adjudicator of the same."""
    *judges, adjudicator = (
        Scripted(model_name=one, planted=planted, accuracy=0.95) for one in ("a", "b", "c", "d")
    )
    result = build(topics=TOPICS[:3], judges=judges, adjudicator=adjudicator)
    three = [planted.questions[one.name] for one in TOPICS[:3]]
    asked = [text for four in three for text, _ in four.values()]
    wanted = {(text, id) for text in asked for id in planted.answers(text)}
    kept = read(result.folder, "queries.jsonl")
    found = {(one["query"], id) for one in kept for id in one["gold"]}
    assert result.failed == {}
    assert {one["query"] for one in kept} == {text for text, _ in wanted}
    assert result.manifest["pairs"]["adjudicated"] > 0
    assert len(wanted & found) / len(wanted) >= 0.95
    assert len(wanted & found) / len(found) >= 0.95


def test_the_files_are_those_that_others_read(build, planted):
    result = build()
    papers = {one["id"] for one in read(result.folder, "papers.jsonl")}
    questions = {one["id"]: one for one in read(result.folder, "questions.jsonl")}
    for one in read(result.folder, "judgements.jsonl"):
        assert one["query_id"] in questions
        assert one["paper_id"] in papers
        assert one["grade"] == one["grades"]["writer"]
        assert one["evidence"] or one["grade"] < 2
        assert one["adjudicated"] is False
    assert [one.id for one in read_questions(result.folder / "questions.jsonl")] == [*questions]
    queries = read_queries(result.folder / "queries.jsonl")
    assert {one.intent for one in queries} == {"method", "setting", "comparison", "scope"}
    assert [one.violating != frozenset() for one in queries] == [
        one.intent == "scope" for one in queries
    ]
    with PaperBase.build(result.folder / "own.papers", result.folder / "papers.jsonl") as own:
        assert own.describe()["papers"] == len(papers)


@pytest.mark.parametrize(
    ("settings", "stop", "scored"),
    [({}, "no_seed", None), ({"max_answers": 2}, "max_answers", None),
     ({"max_scored": 7}, "max_scored", 7)],
)  # fmt: skip
def test_a_question_ends_by_one_of_three_rules_which_its_record_names(
    build, settings, stop, scored
):
    result = build(**settings)
    records = read(result.folder, "records.jsonl")
    assert {one["stop"] for one in records} == {stop}
    assert result.manifest["stops"] == {stop: len(records)}
    if scored:
        assert {one["scored"] for one in records} == {scored}
    if stop == "max_answers":
        assert all(one["hops"] == [] for one in records)


def test_ten_rewrites_of_five_kinds_and_the_question_are_searched(build):
    record = read(build().folder, "records.jsonl")[0]
    kinds = [one["kind"] for one in record["calls"] if one["tool"] == "search"]
    assert kinds == ["question"] + [
        kind for kind in ("method", "task", "broader", "narrower", "terms") for _ in range(2)
    ]
    assert max(one["found"] for one in record["calls"] if one["tool"] == "search") == 10


def test_the_same_manifest_gives_the_same_bytes_whoever_is_first(build, tmp_path):
    few = {"max_scored": 40}
    one = build(tmp_path / "one", calls_at_once=1, questions_at_once=1, **few)
    other = build(tmp_path / "other", calls_at_once=16, questions_at_once=4, **few)
    again = build(tmp_path / "one", overwrite=True, **few)
    assert again.n_sent == 0
    for file in one.folder.glob("*.json*"):
        assert file.read_bytes() == (other.folder / file.name).read_bytes(), file.name
        assert again.manifest == other.manifest


def test_a_run_that_was_cut_off_goes_on_and_judges_no_pair_twice(build, planted, tmp_path):
    judges = [Scripted(model_name=f"judge-{one}", planted=planted) for one in "ab"]
    writer = Scripted(model_name="writer", planted=planted)
    cut_off = 0
    few = {"max_scored": 30, "group": 10, "max_hops": 1}
    for n_calls in (9, 21):
        with pytest.raises(BudgetError):
            build(judges=judges, writer=writer, budget=Budget(max_calls=n_calls), **few)
        assert not (tmp_path / "out" / "manifest.json").exists()
        cut_off += sum(judges[0].pairs.values())
    result = build(judges=judges, writer=writer, **few)
    whole = build(tmp_path / "whole", **few)
    assert cut_off
    for one in judges:
        assert set(one.pairs.values()) == {1}
    scored = whole.manifest["pairs"]["scored"]
    assert result.manifest["pairs"]["scored"] == scored == sum(judges[0].pairs.values())


class Meeting(Scripted):
    """A writer whose rewrites wait until four questions have come to them."""

    in_flight: int = 0
    most: int = 0
    met: asyncio.Event = Field(default_factory=asyncio.Event)

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        if "queries of each kind" not in str(messages[-1].content):
            return self._generate(messages)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        if self.most == 4:
            self.met.set()
        await asyncio.wait_for(self.met.wait(), 30)
        self.in_flight -= 1
        return self._generate(messages)


def test_four_questions_are_worked_on_at_once(build, planted):
    writer = Meeting(model_name="writer", planted=planted)
    build(topics=TOPICS[:2], writer=writer, max_hops=0, max_scored=5)
    assert writer.asked["rewrite"] == 8
    assert writer.most == 4


def test_a_finished_question_is_not_worked_on_again(build, planted, base, tmp_path):
    class Counting(BaseSource):
        asked = 0

        def search(self, query, k, scope):
            type(self).asked += 1
            return super().search(query, k, scope)

    source = Counting(base)
    build(sources=source, max_hops=0)
    n_asked = Counting.asked
    (tmp_path / "out" / "manifest.json").unlink()
    build(sources=source, max_hops=0)
    assert Counting.asked == n_asked
    (tmp_path / "out" / "manifest.json").unlink()
    with pytest.raises(SettingsError, match=r"cannot be continued: .*max_answers.*--overwrite"):
        build(sources=source, max_hops=0, max_answers=3)


def test_candidates_that_were_changed_are_not_taken_for_judged(planted, base, tmp_path):
    questions = [QuestQuestion(id="q", query=planted.questions[TOPICS[0].name]["method"][0])]
    ids = [one["id"] for one in planted.papers]

    def judge(n, **how):
        candidates = {"q": ids[:n]}
        made = judge_quest(
            questions,
            candidates,
            tmp_path / "out",
            sources=base,
            model=Scripted(model_name="writer", planted=planted),
            plan=QuestPlan(min_answers=1, max_answers=1, max_scored=1),
            embeddings=None,
            **how,
        )
        assert candidates == {"q": ids[:n]}
        return made

    few = judge(30)
    assert few.manifest["stops"] == {"all_judged": 1}
    assert few.manifest["pairs"]["scored"] == 30
    (tmp_path / "out" / "manifest.json").unlink()
    with pytest.raises(SettingsError, match=r"candidates was .*--overwrite"):
        judge(40)
    assert judge(40, overwrite=True).manifest["pairs"]["scored"] == 40


def test_a_second_process_in_one_folder_is_refused(build, tmp_path):
    with Construction(made := tmp_path / "out").open():
        with pytest.raises(SettingsError, match="another process builds in"):
            build(max_scored=5, max_hops=0)
        assert not (made / "manifest.json").exists()


def test_a_folder_that_cannot_be_written_is_named_and_nothing_is_asked_again(
    build, planted, tmp_path
):
    writer = Scripted(model_name="writer", planted=planted)
    in_the_way = tmp_path / "out" / "work" / "records.jsonl"
    in_the_way.mkdir(parents=True)
    with pytest.raises(StoreError, match=r"the folder '.*out' cannot be written: Is a directory"):
        build(writer=writer, max_scored=5, max_hops=0)
    assert not (tmp_path / "out" / "manifest.json").exists()
    in_the_way.rmdir()
    n_asked = writer.asked.total()
    assert build(writer=writer, max_scored=5, max_hops=0).n_sent == 0
    assert writer.asked.total() == n_asked


def test_a_base_that_was_changed_is_not_gone_on_with(build, base, tmp_path):
    class Described(BaseSource):
        n = 100

        def describe(self):
            return {"name": self.name, "papers": self.n}

    source = Described(base, "planted")
    build(sources=source, max_scored=5, max_hops=0)
    (tmp_path / "out" / "manifest.json").unlink()
    source.n = 101
    with pytest.raises(SettingsError, match=r"cannot be continued: sources.*100.*101"):
        build(sources=source, max_scored=5, max_hops=0)


def test_results_are_not_lost_by_accident(build, tmp_path):
    (tmp_path / "manifest.json").write_text("{}", encoding="utf-8")
    with pytest.raises(SettingsError, match="--overwrite"):
        build(tmp_path)


def test_given_questions_are_answered_as_those_that_are_written(build, planted, base, tmp_path):
    built = build(max_hops=0, max_scored=20)
    plan = QuestPlan.of(built.manifest["plan"])
    given = answer_quest(
        read_questions(built.folder / "questions.jsonl"),
        tmp_path / "given",
        sources=base,
        model=Scripted(model_name="writer", planted=planted),
        plan=plan,
        embeddings=None,
    )
    for name in ("judgements.jsonl", "queries.jsonl", "papers.jsonl", "records.jsonl"):
        assert (given.folder / name).read_bytes() == (built.folder / name).read_bytes()
    assert "questions" not in given.manifest["usage"]
