"""Neighbourhood-aware retrieval as a baseline."""

import pytest

from bench.study_lakes import column, lab
from deepera_graph import EvidenceReranker, SettingsError
from deepera_graph.calibration.instance import Context, Dataset, Instance
from deepera_graph.lab.rankers.base import FirstStage, candidates_of
from deepera_graph.lab.rankers.named import asks_a_model, make_ranker
from deepera_graph.lab.rankers.retrieval import Nar
from deepera_graph.lab.studies.rerank.main_table import study_main_table
from deepera_graph.testing import answer_in_json
from support.openai_server import ChatServer
from support.scripted import Script

pytestmark = pytest.mark.full

TEXTS = [
    "Liming of lakes is debated by anglers.",
    "The heron Falun nests beside lake Varda.",
    *[f"The market of town {number} sells rope and paint." for number in range(8)],
    "Lake Varda had its herons counted, and Falun raised four chicks.",
]
ANSWER = len(TEXTS)
SCORES = {"Falun raised": 0.95, "heron Falun": 0.7}


def instance():
    contexts = tuple(
        Context(id=f"c{place}", text=text, is_golden=place == ANSWER)
        for place, text in enumerate(TEXTS, start=1)
    )
    return Instance(id="q", question="How did the herons breed?", contexts=contexts)


def nar(scores=SCORES, **options):
    script = Script(scores, default=0.1)
    reranker = EvidenceReranker(script.backend({"kind": "test"}))
    return Nar(reranker, **{"budget": 5, "batch_size": 2, "n_neighbours": 2, **options}), script


def rank(ranker):
    one = instance()
    return [id for id, _ in ranker.rank(one.question, candidates_of(one))]


def test_a_neighbour_of_what_is_good_is_found_at_the_end_of_the_first_stage():
    ranker, script = nar()
    assert rank(ranker)[:2] == [str(ANSWER), "2"]
    assert len(script.judged) == 5


def test_what_the_budget_does_not_reach_keeps_its_order_behind():
    ranker, _ = nar(budget=2)
    order = rank(ranker)
    assert order[0] == "2"
    assert order[2:] == [str(place) for place in range(3, ANSWER + 1)]


def test_a_passage_that_could_not_be_judged_is_last_and_counted():
    ranker, _ = nar({"debated": ValueError("no reply"), **SCORES})
    assert rank(ranker)[-1] == "1"
    assert ranker.problems.n_failed == 1


def test_it_stands_in_the_main_table():
    ranker, _ = nar()
    data = Dataset("herons", lambda: [instance()])
    grid = study_main_table(lab([FirstStage(), ranker], [data])).grids[0]
    assert column(grid, "ranker") == ["first stage", "NAR scripted"]
    assert column(grid, "HitRate@1") == [0, 1]


def test_a_chat_model_is_asked_within_the_budget_of_passages():
    with ChatServer(lambda request: answer_in_json(SCORES, request.system, request.user)) as server:
        name = f"nar:tiny@{server.base_url}"
        assert asks_a_model(name)
        ranker = make_ranker(name)
        (ranking,) = ranker.rank_many([(instance().question, candidates_of(instance()))])
    assert ranking[0][0] == str(ANSWER)
    assert ranker.usage.calls == len(server.requests)
    assert len(server.requests) == 1 + len(TEXTS)  # the intent once; 11 passages are below 15
    assert len(ranker.runs(2)) == 2


def test_a_judge_whose_scores_depend_on_the_batch_is_refused():
    with pytest.raises(SettingsError, match="cannot score batches of adaptive retrieval"):
        make_ranker("nar:local")


def test_one_passage_needs_no_graph():
    ranker, _ = nar()
    assert ranker.rank("How?", candidates_of(instance())[:1]) == [("1", -1.0)]
