"""The construction over the planted world of the shared data: 300 papers, 2 000 citations."""

import sys
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from bench.quest.conftest import read
from bench.quest.scripted import Scripted
from deepera_graph.lab.quest.builder import answer_quest
from deepera_graph.lab.quest.records import QuestQuestion
from deepera_graph.lab.settings import QuestPlan
from deepera_graph.papers import PaperBase
from support.bioasq import SHARED

FOLDER = SHARED / "data" / "papers"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.exists(), reason="needs the shared data"),
]


def load_truth():
    spec = spec_from_file_location("make_planted", FOLDER / "make_planted.py")
    module, before = module_from_spec(spec), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module.truth


class SharedWorld:
    """The planted world as scripted models see it."""

    def __init__(self):
        folder = FOLDER / "planted"
        self.papers, self.queries = read(folder, "papers.jsonl"), read(folder, "queries.jsonl")
        self._attributes = {one["id"]: one for one in read(folder, "attributes.jsonl")}
        self._by_text = {one["abstract"]: one for one in self.papers}
        self._by_text |= {(one["abstract"], one["title"]): one for one in self.papers}
        self.by_query = {one["query"]: one for one in self.queries}
        self._truth = load_truth()

    def grade(self, query, paper):
        return self._truth(self._attributes[paper["id"]], self.by_query[query]["condition"])

    def shown(self, block):
        from bench.quest.scripted import _PAPER

        return {
            int(number): self._by_text[abstract, title]
            for number, title, _, _, abstract in _PAPER.findall(block)
        }


class Reader(Scripted):
    """A scripted model of that world, which has rewrites of its own."""

    planted: object

    def _rewrite(self, text):
        query = self.block_of(text).partition(": ")[2].partition("\n")[0]
        queries = self.planted.by_query[query]["rewrites"]
        kinds = ("method", "task", "broader", "narrower", "terms")
        return {kind: queries[2 * at : 2 * at + 2] for at, kind in enumerate(kinds)}


@pytest.mark.parametrize("prefilter", ["local", "words"])
def test_planted_answers_of_the_shared_world_are_found_and_nothing_else(tmp_path, prefilter):
    world = SharedWorld()
    questions = [
        QuestQuestion(id=one["id"], query=one["query"], intent=one["intent"])
        for one in world.queries
    ]
    with PaperBase.build(tmp_path / "shared.papers", FOLDER / "planted" / "papers.jsonl") as base:
        result = answer_quest(
            questions,
            tmp_path / "out",
            sources=base,
            model=Reader(model_name="writer", planted=world),
            judges=[
                Reader(model_name=f"judge-{one}", planted=world, accuracy=0.95) for one in "abc"
            ],
            adjudicator=Reader(model_name="adjudicator", planted=world, accuracy=0.95),
            plan=QuestPlan(prefilter=prefilter, min_answers=1),
        )
    wanted = {(one["id"], id) for one in world.queries for id in one["gold"]}
    kept = read(result.folder, "queries.jsonl")
    found = {(one["id"], id) for one in kept for id in one["gold"]}
    assert len(wanted & found) / len(wanted) >= 0.95
    assert len(wanted & found) / len(found) >= 0.95
