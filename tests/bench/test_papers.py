"""Comparisons of searches for papers, against counts by hand."""

import csv
from dataclasses import replace

import pytest

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.bench.report import render_page
from deepera_graph.lab.studies.papers.figures import (
    budget_curves,
    trace_answers,
    trace_calls,
    write_provenance,
)
from deepera_graph.lab.studies.papers.runs import Call, PaperQuery, QueryRun
from deepera_graph.lab.studies.papers.scores import PaperBench, SystemScores, find_zero_recall
from deepera_graph.lab.studies.papers.study import (
    PAPERS,
    describe_setup,
    study_all,
    study_systems,
)
from deepera_graph.lab.studies.run import write_study
from deepera_graph.lab.tables import format_csv

pytestmark = pytest.mark.full


def query(name, *gold, intent="method", **more):
    return PaperQuery(id=name, text=f"papers like {name}", intent=intent, gold={*gold}, **more)


QUERIES = (
    query("q1", "a", "b", "c", "d"),
    query("q2", "e", "f", violating=frozenset({"v", "w"})),
    query("q3", "g", intent="scope"),
)
CALLS = (
    Call(id="S1", tool="search", asked="papers", found=("a", "x")),
    Call(id="E1", tool="references", asked="a", found=("x", "y")),
    Call(id="E2", tool="citations", asked="x", found=("b", "a", "c"), problem="slow"),
)
AGENT = {
    "q1": QueryRun(ranked=("x", "b", "a"), calls=CALLS, rounds=2, tokens=300, seconds=1.5),
    "q2": QueryRun(ranked=("v", "e"), calls=(), rounds=0),
    "q3": QueryRun(error="the planner did not answer"),
    "q9": QueryRun(ranked=("a",)),
}
PLAIN = {"q1": QueryRun(ranked=("a", "b")), "q2": QueryRun(ranked=("e", "f", "v"))}


@pytest.fixture
def bench():
    return PaperBench(queries=QUERIES, n_resamples=50)


@pytest.fixture
def result(bench):
    return study_systems(bench, {"agent": AGENT, "plain": PLAIN})


def rows(result, name, *, n_keys=1):
    """A table by its first cells; of an interval the mean."""
    grid = next(one for one in result.grids if one.name == name)
    plain = [[getattr(cell, "mean", cell) for cell in row] for row in grid.rows]
    heads = [one.name for one in grid.columns]
    return {
        row[0] if n_keys == 1 else tuple(row[:n_keys]): dict(
            zip(heads[n_keys:], row[n_keys:], strict=True)
        )
        for row in plain
    }


def test_a_failed_or_missing_query_counts_0(result):
    table = rows(result, "systems")
    assert table["agent"]["R@25"] == pytest.approx((2 / 4 + 1 / 2 + 0) / 3)
    assert table["agent"]["R@All"] == pytest.approx((3 / 4 + 1 / 2 + 0) / 3)
    assert table["agent"]["R@returned"] == pytest.approx((2 / 4 + 1 / 2 + 0) / 3)
    assert table["agent"]["P@50"] == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
    assert table["plain"]["R@100"] == pytest.approx((2 / 4 + 1 + 0) / 3)
    assert table["plain"]["queries that count 0"] == 1


def test_failures_are_named(result):
    assert rows(result, "failures", n_keys=2) == {
        ("agent", "q3"): {"why": "the planner did not answer"},
        ("plain", "q3"): {"why": "missing from the run"},
    }
    assert result.findings[0] == (
        "agent: 1 of 3 queries count 0, as they failed or are missing: q3."
    )
    assert "1 lines of its run are of other queries, and were left out: q9." in result.findings[1]


def test_intents_count_alike_in_the_second_average(result):
    assert rows(result, "systems-by-intent")["plain"]["R@100"] == pytest.approx(
        ((0.5 + 1) / 2 + 0) / 2
    )


def test_the_process_is_counted_where_it_is_told(result):
    table = rows(result, "process")
    agent = table["agent"]
    assert (agent["rounds"], agent["search calls"], agent["expand calls"]) == (1, 0.5, 1)
    assert (agent["tool calls"], agent["failed calls"]) == (1.5, 0.5)
    assert agent["observed"] == pytest.approx((5 + 2 + 0) / 3)
    assert agent["planner tokens"] == 300
    assert agent["seconds"] == 1.5
    # the mean of 0.5 x 100 / 5, 0.5 x 100 / 2 and 0, not the ratio of the means
    assert agent["R@100 per 100 observed"] == pytest.approx((10 + 25 + 0) / 3)
    assert agent["the same of the means"] == pytest.approx((0.5 + 0.5) / 3 * 100 / (7 / 3))
    assert table["plain"]["tool calls"] is None


def test_differences_are_of_the_same_queries(result):
    table = rows(result, "differences", n_keys=2)
    assert table["plain", "R@100"]["difference"] == pytest.approx((0 + 0.5 + 0) / 3)
    assert list(table) == [("plain", one) for one in ("R@100", "R@All", "nDCG@50")]


def test_answer_sizes_are_buckets_that_can_be_set():
    bench = PaperBench(queries=QUERIES, n_resamples=5, buckets=(1, 3))
    table = rows(study_systems(bench, {"plain": PLAIN}), "answer-sizes", n_keys=2)
    assert {name: row["queries"] for name, row in table.items()} == {
        ("1-2", "plain"): 2,
        ("3+", "plain"): 1,
    }
    assert table["1-2", "plain"]["R@100"] == 0.5


def test_the_spread_counts_queries_with_none_and_with_all(result):
    table = rows(result, "distribution", n_keys=2)
    assert table["all", "plain"]["with none"] == pytest.approx(1 / 3)
    assert table["all", "plain"]["median"] == 0.5
    assert table["method", "agent"]["with all"] == 0


def test_queries_without_an_answer_by_anyone_are_listed(result):
    table = rows(result, "zero-recall")
    assert table["scope"]["without an answer"] == 1
    assert table["all"]["share"] == pytest.approx(1 / 3)
    assert list(rows(result, "zero-recall-queries")) == ["q3"]


def test_the_common_zero_recall_set_of_the_paper():
    sizes = {"comparison": 7, "scope": 6, "setting": 5, "method": 2}
    intents = [one for name, n in sizes.items() for one in [name] * n]
    queries = [query(f"z{n}", f"g{n}", intent=one) for n, one in enumerate(intents)]
    queries += [query(f"f{n}", f"h{n}") for n in range(1091)]
    found = {f"f{n}": QueryRun(ranked=(f"h{n}",)) for n in range(1091)}
    seen = {f"z{n}": QueryRun(ranked=("x", "y")) for n in range(20)}
    bench = PaperBench(queries=tuple(queries), n_resamples=1)
    system = SystemScores.of("agent", {**found, **seen}, bench)
    zero = find_zero_recall(bench, [system])
    assert len(zero) == 20
    assert f"{100 * len(zero) / len(queries):.2f}" == "1.80"
    assert {n: sum(queries[z].intent == n for z in zero) for n in sizes} == sizes


def test_every_answer_has_the_call_that_brought_it():
    found = {one.paper: one for one in trace_answers(QUERIES[0], AGENT["q1"])}
    assert list(found) == ["a", "b", "c", "d"]
    assert [one.call.id if one.call else None for one in found.values()] == ["S1", "E2", "E2", None]
    assert [one.number for one in found.values()] == [1, 3, 3, None]
    assert [one.rank for one in found.values()] == [3, 2, None, None]


def test_calls_that_raise_recall_are_told_apart():
    gains = trace_calls(QUERIES[0], AGENT["q1"])
    assert [(one.call.id, one.new, one.recall) for one in gains] == [
        ("S1", ("a",), 0.25),
        ("E2", ("b", "c"), 0.75),
    ]


def test_tables_show_calls_and_what_kinds_are_worth(result):
    calls = rows(result, "calls", n_keys=3)
    assert list(calls) == [("q1", "agent", "S1"), ("q1", "agent", "E2")]
    assert calls["q1", "agent", "E2"]["new answers"] == 2
    sources = rows(result, "sources", n_keys=2)
    assert sources["agent", "references"]["answers brought first"] == 0
    assert sources["agent", "citations"]["share of all answers"] == pytest.approx(2 / 7)


def test_provenance_has_a_line_an_answer(bench, tmp_path):
    write_provenance(tmp_path / "p.csv", bench, {"agent": AGENT})
    lines = [*csv.DictReader((tmp_path / "p.csv").read_text(encoding="utf-8").splitlines())]
    assert len(lines) == 7
    assert lines[1] == {
        "system": "agent", "query": "q1", "paper": "b", "call": "E2", "call number": "3",
        "tool": "citations", "asked": "x", "rank": "2",
    }  # fmt: skip
    assert lines[-1]["call"] == lines[-1]["rank"] == ""


def test_budget_curves_rise_with_calls(bench):
    systems = [SystemScores.of("agent", AGENT, bench), SystemScores.of("plain", PLAIN, bench)]
    curves = budget_curves(bench, systems)
    assert [*curves["R@All"]] == ["agent"]  # the other does not tell its calls
    every, top = curves["R@All"]["agent"], curves["R@50"]["agent"]
    assert every.x == [1, 2, 3]
    assert every.y == pytest.approx([100 * (one + 0.5) / 3 for one in (0.25, 0.25, 0.75)])
    assert top.y == pytest.approx([100 * (one + 0.5) / 3 for one in (0.25, 0.25, 0.5)])
    assert all(a <= b <= c for a, b, c in zip(every.low, every.y, every.high, strict=True))


def test_limits_are_measured_where_it_is_known_what_breaks_them(result):
    table = rows(result, "limits", n_keys=2)
    assert [*table] == [("method", "agent"), ("method", "plain")]
    assert table["method", "agent"]["first #gold that break one"] == 0.5
    assert table["method", "agent"]["AUC"] == pytest.approx((1 + 0.5) / 4)
    assert table["method", "plain"]["F1 of kept"] == pytest.approx(0.8)


def test_the_same_inputs_give_the_same_bytes(tmp_path):
    source = tmp_path / "queries.jsonl"
    source.write_text("{}\n", encoding="utf-8")
    for name in ("one", "two"):
        bench = PaperBench(queries=QUERIES, n_resamples=20)
        runs = {"agent": AGENT, "plain": PLAIN}
        result = study_all(bench, runs, accuracies=(1.0, 0.8))
        curves = [one for one in result.drawings if one.name == "budget"]
        few = replace(result, drawings=tuple(curves))  # to save time; each is drawn alike
        setup = describe_setup(source, bench, {}, runs, {})
        write_study(PAPERS, few, setup, tmp_path / name)
        write_provenance(tmp_path / name / "provenance.csv", bench, runs)
    files = sorted(one.name for one in (tmp_path / "one").iterdir())
    assert {"papers.md", "budget.svg", "judges.csv", "process.csv", "provenance.csv"} <= {*files}
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_page_has_all_figures_and_no_worst_questions(bench, result):
    page = render_page([(PAPERS, result)], None, {"a": 1}, about="3 queries, 2 systems.")
    assert "3 queries, 2 systems." in page
    assert "Worst questions" not in page
    assert page.count("<svg") == len(result.drawings) == 4


@pytest.mark.parametrize(
    ("runs", "options", "error", "message"),
    [
        ({}, {}, InputError, "no run"),
        ({"x": {"q9": QueryRun()}}, {}, InputError, "'x' has none of the 3 queries"),
        ({"x": PLAIN}, {"baseline": "y"}, SettingsError, "one of x, got 'y'"),
        ({"x": PLAIN}, {"shown": ("q7",)}, SettingsError, "unknown query 'q7'"),
        ({"x": PLAIN}, {"buckets": (5, 5)}, SettingsError, r"rising numbers from 1, got \(5, 5\)"),
    ],
)
def test_bad_settings_are_told(runs, options, error, message):
    with pytest.raises(error, match=message):
        study_systems(PaperBench(queries=QUERIES, n_resamples=2, **options), runs)


def test_tables_are_plain_csv(result):
    text = format_csv(next(one for one in result.grids if one.name == "failures"))
    assert text.splitlines()[0] == "system,query,why"
