"""The map of studies: every one drawn once, where its numbers put it, and no text as markup."""

import math
import re
from pathlib import Path
from threading import Event
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from deepera_graph import EvidenceReranker, EvidenceTabulator, export_result, export_table
from deepera_graph.errors import InputError
from deepera_graph.evidence.table.map import (
    DESIGNS,
    LEFT,
    RIGHT,
    list_effects,
    make_axis,
    read_effect,
    size_height,
)
from deepera_graph.evidence.table.rows import StudyRow, TableCell
from deepera_graph.evidence.table.svg import WIDTH, cut, wrap
from deepera_graph.evidence.table.table import EvidenceTable
from deepera_graph.evidence.table.writing import result_studies
from deepera_graph.schema import Direction
from support.page_judge import scripted_backend

QUESTION = "Does tea keep people awake?"
SVG = "{http://www.w3.org/2000/svg}"


def study(says="supports", *, name="Lee and Roy", year="2019", band="evidence", status="", **cells):
    """A row, of which *cells* have values."""
    made = {
        column: TableCell(value=value, words=value, passage="a", by="rules")
        for column, value in cells.items()
    }
    return StudyRow(
        source=f"{name}. Tea. {year}", name=name, link="", year=year, status=status, band=band,
        score=0.9, says=says, quote="", cells={"n": made.get("n", TableCell())}, more=made,
    )  # fmt: skip


def effect(value, low, high, measure="odds ratio", **more):
    return study(effect=value, interval=f"{low} to {high}", measure=measure, **more)


def table(*rows, question=QUESTION):
    return EvidenceTable(question=question, columns=("n",), rows=rows, judge="local")


def draw(*rows, question=QUESTION):
    return ElementTree.fromstring(export_table(table(*rows, question=question), "svg"))


def studies(root, figure=0):
    """What is drawn of studies in the figure of a number, by their numbers."""
    bodies = [one for one in root.iter(f"{SVG}g") if "transform" in one.attrib]
    tops = [one for one in bodies if any("data-study" in inner.attrib for inner in one.iter())]
    found = [one for one in tops[figure].iter() if "data-study" in one.attrib]
    return {int(one.attrib["data-study"]): one for one in found}


def number(node, name):
    return float(node.attrib[name])


def test_an_effect_stands_where_the_logarithm_of_its_ratio_puts_it():
    root = draw(effect("0.5", "0.25", "1"), effect("2", "1", "4"))
    first, second = studies(root, 1).values()
    # The axis is 130 wide, from log 0.25 to log 4 with 6 % of that beyond either end: a factor of
    # 2, log 2 / (log 16 * 1.12) of it, is 130 / 4.48 = 29.02; 1 is in its middle, at 132 + 65.
    step = 130 / 4.48
    line, low, high = first.iter(f"{SVG}line")
    assert number(line, "x1") == pytest.approx(197 - 2 * step, abs=0.01)
    assert number(line, "x2") == pytest.approx(197, abs=0.01)
    assert (number(low, "x1"), number(high, "x1")) == (number(line, "x1"), number(line, "x2"))
    [square] = second.iter(f"{SVG}rect")
    assert number(square, "x") + 4.5 == pytest.approx(197 + step, abs=0.01)


def test_a_difference_stands_on_a_linear_axis():
    rows = [effect("-2", "-4", "0", "MD", unit="mm"), effect("1", "-1", "4", "WMD", unit="mm")]
    first, second = studies(draw(*rows), 1).values()
    # From -4 to 4, with 0.48 beyond either end: 130 / 8.96 a millimetre, and 0 at 197.
    for node, at in ((first, -2), (second, 1)):
        [square] = node.iter(f"{SVG}rect")
        assert number(square, "x") + 4.5 == pytest.approx(197 + at * 130 / 8.96, abs=0.01)


@pytest.mark.full
@given(
    st.lists(
        st.tuples(st.floats(0.01, 100), st.floats(1, 50), st.floats(1, 50)), min_size=1, max_size=8
    )
)
def test_the_axis_holds_every_interval_and_no_effect(given_):
    rows = [
        effect(f"{value:.6f}", f"{value / down:.6f}", f"{value * up:.6f}")
        for value, down, up in given_
    ]
    effects = list_effects(rows)
    assert len(effects) == len(rows)
    place, ticks = make_axis(effects)
    ends = [place(end) for one in effects for end in (one.low, one.value, one.high)]
    assert all(LEFT <= one <= RIGHT for one in (place(1.0), *ends, *map(place, ticks)))
    assert len(ticks) <= 5
    for one in effects:
        assert place(one.low) <= place(one.value) <= place(one.high)


@pytest.mark.parametrize(("low", "high"), [("0.97", "1.02"), ("0.92", "0.99"), ("1.01", "1.4")])
def test_a_narrow_axis_has_more_than_one_tick(low, high):
    place, ticks = make_axis(list_effects([effect(low, low, high), effect(high, low, high)]))
    assert len({round(place(one)) for one in ticks}) > 1
    assert any(abs(one - 1) < 1e-9 for one in ticks)


def test_a_tick_near_the_end_of_all_intervals_is_on_the_axis():
    _, ticks = make_axis(list_effects([effect("0.68", "0.52", "0.88"), effect("1", "0.9", "1.3")]))
    assert ticks[0] == pytest.approx(0.5)


def test_the_name_of_a_study_ends_before_the_axis():
    [one, _] = studies(
        draw(*[effect("0.7", "0.5", "0.9", name="W. M. Kwame-Hammond et al.")] * 2), 1
    ).values()
    name = one.find(f"{SVG}text").text
    assert name.endswith("… 2019")
    assert len(name) * 0.62 * 11 < LEFT


ODD = st.text(max_size=40) | st.sampled_from(['<script>alert("x")</script>', "&amp; ]]>", "a\0b"])
ROWS = st.builds(
    study,
    st.sampled_from([*Direction.__args__, ""]),
    name=ODD,
    year=st.sampled_from(["", "1998", "2020"]),
    band=st.sampled_from(["evidence", "possible"]),
    status=st.sampled_from(["", "retracted", "preprint"]),
    n=st.sampled_from(["", "0", "12", "1,200", "1200 adults", "99999999"]) | ODD,
    design=st.sampled_from(["", "cohort", "randomised trial", "meta-analysis"]) | ODD,
    effect=st.sampled_from(["", "0.7", "1.2", "4%"]),
    interval=st.sampled_from(["", "0.5 to 1.4", "0.5–1.4", "-3 to 9%"]),
    measure=st.sampled_from(["", "odds ratio", "aHR", "MD", "change"]),
    unit=ODD,
)


@pytest.mark.full
@settings(deadline=None, max_examples=30)
@given(st.lists(ROWS, min_size=1, max_size=20), ODD)
def test_every_study_is_drawn_once_within_the_figure_and_no_text_is_markup(rows, question):
    rows = [study("supports"), *rows]
    root = draw(*rows, question=question)
    drawn = [one.attrib["data-study"] for one in root.iter() if "data-study" in one.attrib]
    harvest = drawn[: len(rows)]
    assert sorted(map(int, harvest)) == list(range(1, len(rows) + 1))
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= {
        "svg", "title", "desc", "style", "g", "rect", "circle", "line", "text",
    }  # fmt: skip
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    for x, y in points(root, 0.0):
        assert left <= x <= left + width
        assert top <= y <= top + height
    export_table(table(*rows, question=question), "html")


def points(node, down):
    """The corners of all shapes, and where texts begin."""
    moved = re.fullmatch(r"translate\(0 (.+)\)", node.attrib.get("transform", ""))
    down += float(moved[1]) if moved else 0
    have = {name: float(value) for name, value in node.attrib.items() if name in NUMBERS}
    for x, y in (("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")):
        if x in have:
            radius = have.get("r", 0)
            yield have[x] - radius, have[y] - radius + down
            yield (
                have[x] + radius + have.get("width", 0),
                have[y] + radius + have.get("height", 0) + down,
            )
    for child in node:
        yield from points(child, down)


NUMBERS = {"x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "width", "height"}


def test_height_goes_with_the_logarithm_of_size():
    steps = [size_height(10**n) for n in range(7)]
    assert steps[:6] == pytest.approx([5 + 7 * n for n in range(6)])
    assert steps[6] == steps[5]
    assert size_height(0) == steps[0]


def test_a_study_stands_in_the_column_of_its_direction():
    root = draw(
        study("contradicts", n="9"), study("supports", n="9"), study("no_difference", n="9")
    )
    places = {n: number(one.find(f"{SVG}rect"), "x") for n, one in studies(root).items()}
    third = WIDTH / 3
    assert {n: int(x // third) for n, x in places.items()} == {1: 0, 3: 1, 2: 2}


@pytest.mark.parametrize(
    ("design", "row"),
    [
        *((one, name) for name, designs in DESIGNS.items() for one in designs),
        ("Trial", "Trials"),
        ("pilot trial", "Trials"),
        ("double-blind trial", "Trials"),
        ("protocol of a trial", "Design not stated"),
        ("a story", "Design not stated"),
        ("", "Design not stated"),
    ],
)
def test_a_study_stands_in_the_row_of_its_design(design, row):
    said = [one.text for one in draw(study(design=design)).iter(f"{SVG}text")]
    assert [one for one in said if one in {*DESIGNS, "Design not stated"}] == [row]


def test_a_retracted_study_is_drawn_and_not_counted():
    text = export_table(table(study(n="9"), study(n="9", status="retracted")), "svg")
    assert len(studies(ElementTree.fromstring(text))) == 2
    assert "supports (1)" in text
    assert "1 supports, 1 retracted and not counted" in text


def test_possible_evidence_is_counted_apart():
    rows = [study(), study(band="possible"), study(band="possible", says="mixed")]
    text = export_table(table(*rows), "svg")
    assert (text.count(">supports (1)<"), text.count(">+ 1 possible<")) == (1, 2)
    assert "0 mixed or unclear and 1 possible, 1 supports and 1 possible." in text


def test_bands_status_and_unknown_sizes_differ_in_shape():
    rows = [study(n="9"), study(n="9", band="possible"), study(n="9", status="retracted"), study()]
    sure, possible, gone, unknown = (
        [part.tag.removeprefix(SVG) for part in one] + [one[1].attrib.get("stroke-dasharray")]
        for one in studies(draw(*rows)).values()
    )
    assert (sure[1], sure[-1], possible[-1], gone.count("line")) == ("rect", None, "3 2", 2)
    assert unknown[1] == "circle"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (effect("0.72", "0.58", "0.90"), "0.72 (0.58 to 0.90)"),
        (effect("-4.2 mm", "−6.1", "−2.3 mm", "Mean difference"), "−4.2 (−6.1 to −2.3)"),
        (study(effect="0.7", interval="95% CI 0.5–1.4", measure="aHR"), "0.7 (0.5 to 1.4)"),
        (effect("1,200", "1,100", "1,300", "MD"), "1200 (1100 to 1300)"),
        (effect("0.72", "0.80", "0.90"), None),
        (effect("0.72", "-0.1", "0.90"), None),
        (effect("4%", "1", "7%", "change"), None),
        (effect("3", "1", "7", "likelihood ratio"), None),
        (study(effect="0.7", measure="odds ratio"), None),
    ],
)
def test_an_effect_is_drawn_if_its_kind_is_known_and_its_interval_holds_it(row, said):
    found = read_effect(1, row)
    assert (found.said if found else None) == said


def test_effects_of_two_kinds_are_two_plots_and_one_alone_is_none():
    rows = [
        effect("0.7", "0.5", "1.4", measure) for measure in ("OR", "odds ratio", "HR", "aHR", "RR")
    ]
    titles = [one.text for one in draw(*rows).iter(f"{SVG}text") if "plot" in (one.text or "")]
    assert titles[1:] == ["Forest plot: odds ratio", "Forest plot: hazard ratio"]


def test_a_map_of_no_direction_says_what_it_needs():
    with pytest.raises(InputError, match=r"a map needs a question of yes or no.*What is tea"):
        export_table(table(study(""), question="What is tea?"), "svg")
    assert "<svg" not in export_table(table(study(""), question="What is tea?"), "html")


def test_a_map_of_no_study_says_why():
    empty = EvidenceTable(
        question=QUESTION, columns=("n",), rows=(), notes=("no study of 2 passages is evidence",)
    )
    assert "no study of 2 passages is evidence" in export_table(empty, "svg")


@pytest.mark.full
@pytest.mark.parametrize(("other", "has_map"), [("contradicts", True), ("", False)])
def test_a_result_of_two_directions_has_the_map_and_table_of_its_studies(other, has_map):
    passages = [
        Document(
            id=name,
            page_content=f"[0.9 {says}] Tea >was worse< (odds ratio 0.4, 95% CI 0.2 to 0.9).",
            metadata={"title": f"Tea {name}"},
        )
        for name, says in (("one", "supports"), ("two", other))
    ]
    reranker = EvidenceReranker(scripted_backend(Event()), content="passage", threshold=0.5)
    result = reranker.rerank(QUESTION, passages)
    tabulator = EvidenceTabulator(reranker)
    assert EvidenceTable.of_result(result).rows == tabulator.tabulate(QUESTION, passages).rows
    html = result_studies(result)
    assert (html.count("<svg"), html.count("<tr>")) == ((2, 3) if has_map else (0, 0))
    assert html in export_result(result, "html", studies=html)


@pytest.mark.full
def test_the_documentation_shows_the_map_that_is_drawn(tmp_path, monkeypatch):
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "evidence-tables.md").read_text(encoding="utf-8")
    [block] = [one for one in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if '"svg"' in one]
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "evidence-tables.md", "exec"), {})
    drawn = Path("map.svg").read_text(encoding="utf-8")
    assert (docs / "figures" / "study-map.svg").read_text(encoding="utf-8") == drawn


@given(st.text(max_size=60), st.floats(10, 400))
def test_a_text_is_cut_to_its_room_and_wrapped_within_it(said, room):
    most = max(1, math.floor(room / (13 * 0.53)))
    assert len(cut(said, room)) <= most
    assert all(len(line) <= most for line in wrap(said, room))
