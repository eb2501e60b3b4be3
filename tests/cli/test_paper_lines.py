"""A paper in one line."""

import pytest

from deepera_graph.cli.papers import describe_line
from deepera_graph.papers import Paper


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_line_of_a_paper_is_no_wider_than_the_terminal(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    paper = Paper(
        id="doi:10.1000/wax", title="Wax coating of apples " * 9, venue="Fruit", year=2019
    )
    line = f"   1  {describe_line(paper)}"
    assert width - 6 < len(line) <= width
    assert line.endswith("… (Fruit, 2019)")


def test_a_short_title_is_shown_whole(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert describe_line(Paper(id="a", title="Wax")) == "a  Wax"


def test_a_long_venue_gives_way_so_that_the_line_fits(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    paper = Paper(
        id="10.9999/bjes.2009.692", title="Fall prevention with vitamin D", year=2009,
        venue="British Journal of Evidence Synthesis",
    )  # fmt: skip
    line = f"   2  {describe_line(paper)}"
    assert len(line) <= 80
    assert line.endswith("…, 2009)")
