"""Runs: what is read is what was written, and what is wrong is named."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph.bioasq.runs import (
    ScoredDocument,
    rank_scores,
    read_run,
    write_run,
)
from deepera_graph.errors import InputError

RUN = {
    "q1": [ScoredDocument("12", 3.5), ScoredDocument("7", 3.5), ScoredDocument("905", -1.0)],
    "q 2": [],
}


def test_a_run_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "run.jsonl"
    write_run(path, RUN)
    assert read_run(path) == RUN
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert json.loads(first) == {"id": "q1", "ranked": [["12", 3.5], ["7", 3.5], ["905", -1.0]]}


@pytest.mark.full
@settings(max_examples=25, deadline=None)
@given(
    run=st.dictionaries(
        st.text(min_size=1).filter(str.strip),
        st.lists(
            st.tuples(
                st.integers(1, 10**8).map(str), st.floats(allow_nan=False, allow_infinity=False)
            ),
            unique_by=lambda one: one[0],
        ).map(lambda pairs: [ScoredDocument(*one) for one in pairs]),
        max_size=4,
    )
)
def test_any_run_survives_its_file(tmp_path_factory, run):
    path = tmp_path_factory.mktemp("runs") / "run.jsonl"
    write_run(path, run)
    assert read_run(path) == run


def test_documents_are_known_by_their_pmid_however_they_are_spelled(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"id": "q", "ranked": [["https://pubmed.ncbi.nlm.nih.gov/12/", 1]]}\n')
    assert read_run(path) == {"q": [ScoredDocument("12", 1.0)]}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"id": "q", "ranked": [["1", 2], ["http://x/1", 1]]}', "'http://x/1' stands there twice"),
        ('{"id": "q", "ranked": [["1", NaN]]}', "NaN"),
        ('{"id": "q", "ranked": [["1", true]]}', "['1', True]"),
        ('{"id": "q", "ranked": [["1"]]}', "['1']"),
        ('{"id": "q", "ranked": [[1, 2]]}', "[1, 2]"),
        ('{"id": "q"}', "None"),
        ('{"id": 3, "ranked": []}', "3"),
        ('{"id": "q", "ranked": [}', "not JSON"),
        ('{"id": "old", "ranked": []}', "'old' stands there twice"),
    ],
)
def test_a_line_that_is_no_ranking_is_named(tmp_path, line, problem):
    path = tmp_path / "run.jsonl"
    path.write_text(f'{{"id": "old", "ranked": []}}\n{line}\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_run(path)
    assert problem in str(caught.value)
    assert f"{path}, line 2" in str(caught.value)


def test_a_trec_run_is_read_by_its_scores(tmp_path):
    path = tmp_path / "run.trec"
    path.write_text("q1 Q0 7 1 0.5 other\nq1 Q0 12 2 0.9 other\nq2 Q0 3 1 1 other\n")
    assert read_run(path) == {
        "q1": [ScoredDocument("12", 0.9), ScoredDocument("7", 0.5)],
        "q2": [ScoredDocument("3", 1.0)],
    }


def test_the_order_survives_a_trec_run_even_where_scores_tie(tmp_path):
    path = tmp_path / "run.trec"
    write_run(path, RUN)
    assert [one.pmid for one in read_run(path)["q1"]] == ["12", "7", "905"]
    scores = [one.score for one in read_run(path)["q1"]]
    assert len({*scores}) == 3


def test_an_empty_file_is_an_empty_run(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("")
    assert read_run(path) == {}


def test_scores_are_ranked_and_ties_stay_in_order():
    ranked = rank_scores({"a": 1.0, "b": 2.0, "c": 1.0})
    assert ranked == [("b", 2.0), ("a", 1.0), ("c", 1.0)]


def test_ids_of_another_corpus_are_left_as_they_are(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"id": "q", "ranked": [["scifact/12", 1], ["12", 0]]}\n')
    assert [one.pmid for one in read_run(path)["q"]] == ["scifact/12", "12"]
