"""`deepera index --neighbours` and `deepera ask --adaptive`."""

import json

import pytest

from deepera_graph.multihop.passages.graph import NeighbourGraph

pytestmark = pytest.mark.full

# The first search finds the first alone; the second is near it, the third near the second.
CHAIN = [
    {"id": "trial", "text": "Green tea lowered fasting glucose, says the Orsay cohort."},
    {"id": "cohort", "text": "The Orsay cohort was led by Ines Marrow of Tolvan."},
    {"id": "marrow", "text": "Ines Marrow of Tolvan was paid by a maker of drinks."},
    {"id": "kelp", "text": "Kelp forests recovered after otters returned."},
    {"id": "cathode", "text": "The coated cathode kept its capacity."},
]
QUESTION = "Does green tea lower glucose?"


@pytest.fixture
def source(questions):
    return questions(*CHAIN, name="papers.jsonl")


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def index(deepera, source, store):
    def run(*args, given=source):
        result = deepera("index", given, "-l", "papers", "--path", store, *args)
        assert result.exit_code == 0, result.output
        return result

    return run


@pytest.fixture
def found(deepera, store):
    def run(*args):
        result = deepera(
            "ask", QUESTION, "-l", "papers", "--path", store, "--backend", "rules", "--json", *args
        )
        assert result.exit_code == 0, result.output
        passages = json.loads(result.stdout)["ranking"]
        return {one["id"]: one["metadata"] for one in passages}

    return run


def graph(store):
    return NeighbourGraph.load(store / "neighbours" / "papers")


def test_neighbours_are_kept_beside_the_collection(index, store):
    said = index("--neighbours", 2).stdout
    assert said == (
        "5 passages indexed in 'papers' (sparse); it holds 5 now; 2 neighbours of each by meaning\n"
    )
    assert (len(graph(store)), graph(store).k) == (5, 2)
    again = json.loads(index("--json").stdout)
    assert again["neighbours"] == {"k": 2, "by": "meaning", "passages": 5}


def test_a_collection_without_neighbours_stays_without(index, store):
    assert "neighbours" not in json.loads(index("--json").stdout)
    assert not (store / "neighbours").exists()


def test_neighbours_are_brought_up_to_date_when_passages_are_added(index, store, questions):
    index("--neighbours", 2)
    more = questions({"id": "maker", "text": "The maker of drinks sells tea."}, name="more.jsonl")
    index(given=more)
    assert "maker" in graph(store)
    assert len(graph(store)) == 6
    index("--neighbours", 3)
    assert graph(store).k == 3
    index("--neighbours", 3, "--neighbours-by", "words")
    assert graph(store).kind == "words"
    index()
    assert graph(store).kind == "words"


def test_how_neighbours_are_found_goes_with_finding_them(deepera, source, store):
    result = deepera("index", source, "-l", "papers", "--path", store, "--neighbours-by", "words")
    assert result.exit_code == 2
    assert "--neighbours-by goes with --neighbours" in result.stderr


def test_passages_of_a_small_collection_get_all_the_neighbours_there_are(index, store, found):
    result = index("--neighbours", 16)
    note = "'papers' has 5 passages, so each gets 4 neighbours, not 16; give --neighbours 16 again"
    assert f"note: {note} when there are more\n" in result.stderr
    assert graph(store).k == 4
    assert found("--adaptive")
    assert index("--neighbours", 16, "-q").stderr == ""


def test_a_single_passage_has_no_neighbours_and_that_is_said(index, store, questions):
    result = index("--neighbours", 16, given=questions(CHAIN[0], name="one.jsonl"))
    assert "'papers' has 1 passage, so it has no neighbours to find" in result.stderr
    assert not (store / "neighbours").exists()


def test_an_adaptive_search_finds_what_no_search_for_the_question_does(index, found):
    index("--neighbours", 2)
    assert set(found()) == {"trial"}
    reached = found("--adaptive")
    assert {"trial", "cohort", "marrow"} <= set(reached)
    assert reached["trial"]["iteration"] == 0
    assert reached["cohort"]["via"] == "trial"
    assert reached["cohort"]["iteration"] % 2 == 1


def test_what_is_explored_is_limited(index, found, monkeypatch):
    index("--neighbours", 2)
    monkeypatch.setenv("DEEPERA_EXPLORE", "2")
    assert len(found("--adaptive")) == 2


def test_a_collection_without_neighbours_says_how_to_get_them(index, deepera, store):
    index()
    result = deepera("ask", QUESTION, "-l", "papers", "--path", store, "--adaptive")
    assert result.exit_code != 0
    assert "'papers' has no neighbours yet: deepera index SOURCE" in result.stderr


@pytest.mark.parametrize("args", [(), ("--embeddings", "local")])
def test_a_file_is_searched_adaptively_without_a_collection(deepera, source, args):
    result = deepera("ask", QUESTION, source, "--adaptive", "--backend", "rules", "--json", *args)
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)["ranking"]) == 5


def test_neighbours_go_where_their_collection_goes(index, deepera, store):
    index("--neighbours", 2)
    assert deepera("collections", "rename", "papers", "old", "--path", store).exit_code == 0
    assert [one.name for one in (store / "neighbours").iterdir()] == ["old"]
    assert deepera("collections", "delete", "old", "--yes", "--path", store).exit_code == 0
    assert [*(store / "neighbours").iterdir()] == []
