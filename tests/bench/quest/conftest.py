"""A planted world of papers as a base, and builds over it with scripted models."""

import json

import pytest

from bench.quest.scripted import Planted, Scripted
from deepera_graph.lab.quest.builder import build_quest
from deepera_graph.lab.quest.records import Topic
from deepera_graph.lab.settings import QuestPlan
from deepera_graph.papers import PaperBase
from papers.planted import FIELDS, plain
from papers.world import write_lines

TOPICS = tuple(Topic(id=f"t{number}", name=name) for number, name in enumerate(FIELDS))


@pytest.fixture(scope="session")
def planted():
    return Planted(100)


@pytest.fixture(scope="session")
def base(planted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("quest")
    source = write_lines(folder / "planted.jsonl.gz", plain(planted.papers))
    with PaperBase.build(folder / "planted.papers", source) as made:
        yield made


@pytest.fixture
def build(planted, base, tmp_path):
    """Build in a folder; by default one topic, one exact judge and no prefilter by meaning."""

    def made(out=tmp_path / "out", *, topics=TOPICS[:1], judges=None, writer=None, **given):
        names = (
            "plan", "overwrite", "budget", "sources", "questions_at_once", "calls_at_once",
            "adjudicator",
        )  # fmt: skip
        more = {name: given.pop(name) for name in names if name in given}
        settings = {"prefilter": "words", "min_answers": 1, "group": 20, **given}
        more.setdefault("plan", QuestPlan(**settings))
        return build_quest(
            topics,
            out,
            sources=more.pop("sources", base),
            model=writer or Scripted(model_name="writer", planted=planted),
            judges=judges or (),
            embeddings=None,
            **more,
        )

    return made


def read(folder, name):
    return [json.loads(one) for one in (folder / name).read_text(encoding="utf-8").splitlines()]
