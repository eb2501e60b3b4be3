import pytest

from bench.lakes import make_dataset, make_judged
from deepera_graph.bench.errors import MetricError
from deepera_graph.bench.figures.rank_figure import draw_ranks
from deepera_graph.bench.figures.rank_shares import rank_shares
from deepera_graph.bench.rankers.order import FirstStage
from deepera_graph.bench.run import judged_rankings


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
    judged = judged_rankings(FirstStage(), make_dataset(3, golden=(2,), distractors=(1,)))
    assert list(rank_shares(judged, 2).golden) == [0, 1]
    assert list(rank_shares(judged, 2).distractor) == [1, 0]


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_the_same_shares_give_the_same_bytes(tmp_path, suffix):
    for name in ("one", "two"):
        draw_ranks({"first stage": shares(), "BM25": shares()}, tmp_path / f"{name}.{suffix}")
    first = (tmp_path / f"one.{suffix}").read_bytes()
    assert first == (tmp_path / f"two.{suffix}").read_bytes()


def test_a_figure_carries_no_date(tmp_path):
    draw_ranks({"first stage": shares()}, tmp_path / "ranks.svg")
    text = (tmp_path / "ranks.svg").read_text()
    assert "date" not in text
    assert "share of questions" in text


@pytest.mark.parametrize(("panels", "name"), [({}, "a.svg"), ({"x": None}, "a.gif")])
def test_figures_that_cannot_be_drawn_are_refused(tmp_path, panels, name):
    with pytest.raises(ValueError, match="a figure needs a panel and one of"):
        draw_ranks(panels, tmp_path / name)
