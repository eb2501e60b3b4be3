"""Queries and runs of searches for papers: read, made, continued."""

import json
from threading import Barrier

import pytest

from deepera_graph.errors import InputError, SettingsError, StoreError
from deepera_graph.lab.studies.papers.runs import (
    PaperQuery,
    QueryRun,
    find_system,
    read_queries,
    read_run,
    run_system,
)
from deepera_graph.papers import PaperBase, Scope
from support.planted_papers import write_world


def write_lines(path, *lines):
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    return path


def asked(name="q1", **more):
    return PaperQuery(id=name, text=f"about {name}", intent="any", gold=frozenset({"a"}), **more)


QUERIES = tuple(asked(f"q{n}") for n in range(1, 5))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A base of planted papers, and its file of queries."""
    folder = tmp_path_factory.mktemp("planted")
    papers, queries = write_world(folder)
    with PaperBase.build(folder / "planted.papers", papers) as base:
        yield base, queries


def test_ids_are_compared_in_one_form(tmp_path):
    gold = ["arXiv:2002.03740v2", "https://doi.org/10.1000/ABC"]
    line = {"id": "q", "query": "x", "gold": gold, "exclude": ["2101.00001v1"]}
    (query,) = read_queries(write_lines(tmp_path / "q.jsonl", line))
    assert query.gold == {"2002.03740", "10.1000/abc"}
    assert query.hidden == ("2101.00001",)
    ranked = ["2002.03740v1", "2002.03740", ["10.1000/abc", 0.4], {"id": "z"}]
    run = read_run(write_lines(tmp_path / "r.jsonl", {"id": "q", "ranked": ranked}))
    assert run["q"].ranked == ("2002.03740", "10.1000/abc", "z")


def test_calls_without_ids_are_numbered_by_kind(tmp_path):
    calls = [{"tool": one, "found": ["a"]} for one in ("search", "references", "search")]
    line = {"id": "q", "ranked": [], "calls": calls, "rounds": 2, "kept": []}
    run = read_run(write_lines(tmp_path / "r.jsonl", line))["q"]
    assert [one.id for one in run.calls] == ["S1", "E1", "S2"]
    assert run.kept == ()
    assert run.observed == ("a",)
    assert read_run(write_lines(tmp_path / "s.jsonl", {"id": "q", **run.to_dict()}))["q"] == run


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"id": "q", "query": "x", "gold": []}, "'gold' must name at least one paper"),
        ({"id": "q", "query": " ", "gold": ["a"]}, "'query' must be a text, got ' '"),
        ({"id": "q", "query": "x", "gold": "a"}, "'gold' must be a list of ids, got 'a'"),
        ({"id": "q", "query": "x", "gold": [3]}, "got 3 in it"),
        ({"id": "q", "query": "x", "gold": ["a"], "violating": ["a"]}, "'a' is in 'gold' and in"),
        ({"id": "q", "query": "x", "gold": ["a"], "constraints": 3}, "'constraints': .*, got 3"),
    ],
)
def test_bad_queries_are_named(tmp_path, line, message):
    with pytest.raises(InputError, match=f"record 1: .*{message}"):
        read_queries(write_lines(tmp_path / "q.jsonl", line))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"id": "q"}], "record 1: there must be 'ranked'"),
        ([{"id": "q", "ranked": []}] * 2, "record 2: the id 'q' comes twice"),
        (
            [{"id": "q", "ranked": [], "rounds": -1}],
            "'rounds': .* equal to 0, got -1",
        ),
        ([{"id": "q", "ranked": [], "calls": [3]}], "'calls': .*, got 3"),
        ([{"id": "q", "ranked": [], "calls": {}}], "'calls': .* tuple"),
    ],
)
def test_bad_runs_are_named(tmp_path, lines, message):
    with pytest.raises(InputError, match=message):
        read_run(write_lines(tmp_path / "r.jsonl", *lines))


def test_a_run_of_trec_is_read_by_its_scores(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text("q Q0 arXiv:2101.00001v2 1 0.5 x\nq Q0 b 2 0.9 x\n", encoding="utf-8")
    assert read_run(path) == {"q": QueryRun(ranked=("b", "2101.00001"))}


def test_limits_are_given_as_far_as_is_asked():
    limits = {"year_from": 2019, "not_venue": ["X"], "venue": "Y", "exclude": ["moss"]}
    query = asked(constraints=limits, hidden=("h",))
    assert query.scope("none") == Scope(hide=("h",))
    assert query.scope() == Scope(hide=("h",), year_from=2019)
    assert query.scope("all") == Scope(
        hide=("h",), year_from=2019, venues=("Y",), not_venues=("X",)
    )


def test_a_search_of_a_base_hides_what_is_hidden(world):
    base, path = world
    query = read_queries(path)[0]
    found = find_system(base, "sparse", depth=20)(query)
    assert 0 < len(found.ranked) <= 20
    assert [one.id for one in found.calls] == ["S1"]
    hidden = PaperQuery(
        id="h", text=query.text, intent="any", gold=query.gold, hidden=found.ranked[:1]
    )
    assert found.ranked[0] not in find_system(base, "sparse")(hidden).ranked


def test_a_query_without_a_word_is_told_from_one_that_finds_nothing(world):
    system = find_system(world[0], "sparse")
    for text, problem in (("of the", "the query has no word to search for"), ("zeppelins", "")):
        found = system(PaperQuery(id="w", text=text, intent="any", gold=frozenset({"a"})))
        assert found.ranked == ()
        assert [one.problem for one in found.calls] == [problem]


@pytest.mark.parametrize(
    ("name", "message"), [("spares", "did you mean"), ("dense", "has no vectors")]
)
def test_systems_that_cannot_run_are_told(world, name, message):
    with pytest.raises(SettingsError, match=message):
        find_system(world[0], name)


def test_a_query_that_fails_is_kept_with_its_reason():
    def system(query):
        if query.id == "q2":
            raise StoreError("the disk is gone")
        return QueryRun(ranked=("a",))

    run = run_system(system, QUERIES)
    assert run["q2"] == QueryRun(error="the disk is gone")
    assert run["q3"].ranked == ("a",)
    assert [*run] == ["q1", "q2", "q3", "q4"]


def test_queries_are_asked_at_the_same_time_and_kept_in_their_order():
    together = Barrier(len(QUERIES), timeout=20)

    def system(query):
        together.wait()  # raises unless all are in flight
        return QueryRun(ranked=(query.id,))

    done = []
    run = run_system(system, QUERIES, at_once=len(QUERIES), on_progress=done.append)
    assert [(name, one.ranked) for name, one in run.items()] == [
        (one.id, (one.id,)) for one in QUERIES
    ]
    assert done == [1, 2, 3, 4]


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    path, seen = tmp_path / "run.jsonl", []

    def system(query):
        seen.append(query.id)
        if query.id == "q3" and len(seen) == 3:
            raise KeyboardInterrupt
        if query.id == "q2" and len(seen) == 2:
            raise StoreError("busy")
        return QueryRun(ranked=("a", query.id), seconds=0.5)

    with pytest.raises(KeyboardInterrupt):
        run_system(system, QUERIES, path=path, about={"system": "x"})
    with path.open("ab") as file:
        file.write(b'{"id": "q4", "ran')  # torn
    run = run_system(system, QUERIES, path=path, about={"system": "x"}, resume=True)
    assert seen == ["q1", "q2", "q3", "q2", "q3", "q4"]  # what failed is asked again
    assert read_run(path) == run
    whole = run_system(
        lambda one: QueryRun(ranked=("a", one.id), seconds=0.5),
        QUERIES,
        path=tmp_path / "whole.jsonl",
        about={"system": "x"},
    )
    assert whole == run


def test_a_run_of_something_else_is_not_continued(tmp_path):
    path = tmp_path / "run.jsonl"
    run_system(lambda one: QueryRun(), QUERIES, path=path, about={"depth": 10})
    with pytest.raises(SettingsError, match="depth was 10 and is 20"):
        run_system(lambda one: QueryRun(), QUERIES, path=path, about={"depth": 20}, resume=True)
