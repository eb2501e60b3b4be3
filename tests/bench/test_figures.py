import pytest

from bench.lakes import make_dataset, make_judged
from deepera_graph.calibration.instance import MetricError
from deepera_graph.lab.bench.figures import (
    BarFigure,
    CurveFigure,
    CurvePoints,
    RankFigure,
    RankMap,
    figure_bytes,
    rank_cells,
    rank_shares,
    short_label,
)
from deepera_graph.lab.rankers.base import FirstStage
from deepera_graph.lab.studies.base import StudyRunner
from deepera_graph.lab.tables import MetricEstimate


def shares():
    judged = [
        make_judged("axb", "a", parents={"x": "a"}),
        make_judged("xab", "a", parents={"x": "a"}),
        make_judged("b", "a", n=3),
        make_judged("ab", "a"),
    ]
    return rank_shares(judged, n_ranks=3)


def test_shares_count_questions_rank_by_rank():
    found = shares()
    assert list(found.golden) == [0.5, 0.25, 0]
    assert list(found.distractor) == [0.25, 0.25, 0]
    assert list(found.other) == [0.25, 0.25, 0.5]


@pytest.mark.parametrize(("judged", "n_ranks"), [([], 3), ([make_judged("a", "a")], 0)])
def test_shares_of_nothing_are_refused(judged, n_ranks):
    with pytest.raises(MetricError, match="shares need a ranking and a rank"):
        rank_shares(judged, n_ranks)


def test_rankings_come_with_their_labels():
    data = make_dataset(3, golden=(2,), distractors=(1,))
    (run,) = StudyRunner([FirstStage()], [data]).runs()
    judged = [one.judged for one in run.questions]
    assert list(rank_shares(judged, 2).golden) == [0, 1]
    assert list(rank_shares(judged, 2).distractor) == [1, 0]


@pytest.mark.full
@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_the_same_shares_give_the_same_bytes(suffix):
    panels = {"first stage": shares(), "BM25": shares()}
    figure = RankFigure(name="ranks", title="", panels=panels)
    first, second = (figure_bytes(figure.draw(), f".{suffix}") for _ in range(2))
    assert first == second


@pytest.mark.full
def test_a_figure_carries_no_date():
    drawn = RankFigure(name="ranks", title="", panels={"first stage": shares()}).draw()
    text = figure_bytes(drawn, ".svg").decode()
    assert "date" not in text
    assert "share of questions" in text


def curve_figure():
    points = CurvePoints([1, 2], [10, 20], [5, 15], [15, 25], dashed=True)
    return CurveFigure(
        name="c", title="t", x_label="n", y_label="percent", panels={"lakes": {"kept": points}}
    )


def bar_figure():
    bars = {
        "trout": {"BM25": MetricEstimate(10, 5, 15, 0), "random": MetricEstimate(50, 40, 60, 0)}
    }
    return BarFigure(name="b", title="t", x_label="percent", panels={"lakes": bars})


def map_figure():
    cells = rank_cells([make_judged("axb", "a", parents={"x": "a"})], n_ranks=4)
    return RankMap(name="m", title="t", panels={"BM25": {"lakes": cells}})


@pytest.mark.full
@pytest.mark.parametrize("make", [curve_figure, bar_figure, map_figure])
def test_every_figure_is_drawn_to_the_same_bytes(make):
    assert figure_bytes(make().draw(), ".svg") == figure_bytes(make().draw(), ".svg")


def test_the_map_shows_the_golden_passage_of_hard_questions_last():
    judged = [
        make_judged("xab", "a", parents={"x": "a"}),
        make_judged("ab", "a"),
        make_judged("bx", "a", n=3, parents={"x": "a"}),
    ]
    assert rank_cells(judged, n_ranks=3).tolist() == [[3, 1, 0], [2, 3, 1], [1, 2, 0]]


@pytest.mark.full
def test_names_in_a_figure_are_short_and_no_formula():
    assert short_label("a $x$ lake") == r"a \$x\$ lake"
    assert short_label("deep " * 20) == "deep deep deep deep deep deep d…"
    panels = {"$" * 99: {"long name " * 20: {"$\\frac{": MetricEstimate(1, 0, 2, 0)}}}
    drawn = BarFigure(name="b", title="t", x_label="x", panels=panels).draw()
    assert b"<svg" in figure_bytes(drawn, ".svg")


def test_a_figure_of_another_kind_is_refused():
    with pytest.raises(ValueError, match=r"a figure is one of .*, got '\.gif'"):
        figure_bytes(curve_figure().draw(), ".gif")
