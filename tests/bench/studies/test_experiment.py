"""Any systems on any questions by any measures, as one call."""

import json

import pytest

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.studies.experiment import About, Resampling, experiment
from deepera_graph.lab.studies.run import describe_versions, write_study

QUESTIONS = {f"q{n}": f"golden-{n}" for n in range(40)}
EARLIER = {key: [golden if n % 2 else "other"] for n, (key, golden) in enumerate(QUESTIONS.items())}


def hit(golden, found):
    return float(golden in found[:1])


def found_share(golden, found):
    return float(golden in found)


def never(question):
    return ["other", question]


MEASURES = {"hit@1": hit, "found": found_share}


def run(systems, **changes):
    return experiment(systems, QUESTIONS, MEASURES, **changes)


def rows_of(result):
    return {row[0]: row for row in result.grids[0].rows}


def test_a_function_and_earlier_results_are_measured_alike():
    rows = rows_of(run({"earlier": EARLIER, "never": never}))
    assert [one.mean for one in rows["earlier"][1:3]] == [0.5, 0.5]
    assert [one.mean for one in rows["never"][1:3]] == [0.0, 1.0]
    assert rows["earlier"][3] is None  # nobody waited for it
    assert rows["never"][3] >= 0


def test_the_others_are_compared_with_the_baseline_question_by_question():
    [grid] = run({"earlier": EARLIER, "never": never}, baseline="never").grids[1:]
    found = {row[:2]: row[2:] for row in grid.rows}
    difference, p = found["earlier", "hit@1"]
    assert difference.mean == pytest.approx(0.5)
    assert 0.3 < difference.low < 0.5 < difference.high < 0.7
    assert p < 0.001
    assert found["earlier", "found"][0].mean == pytest.approx(-0.5)


def test_the_same_seed_gives_the_same_figures():
    first, second = (
        run({"a": EARLIER}, resampling=Resampling(n_resamples=50, seed=seed)).grids[0].rows[0][1]
        for seed in (3, 3)
    )
    other = run({"a": EARLIER}, resampling=Resampling(n_resamples=50, seed=4)).grids[0].rows[0][1]
    assert first == second
    assert (other.mean, other != first) == (first.mean, True)


def test_one_system_has_nothing_to_be_compared_with():
    assert [one.name for one in run({"earlier": EARLIER}).grids] == ["systems"]


def test_what_comes_out_is_written_as_any_study_is(tmp_path):
    about = About("own", "Two systems of my own", "Whether the first is right.")
    result = run({"earlier": EARLIER, "never": never})
    write_study(about, result, describe_versions("numpy"), tmp_path)
    assert (tmp_path / "own.md").read_text("utf-8").startswith("# Two systems of my own\n")
    assert "never,found," in (tmp_path / "differences.csv").read_text("utf-8")
    assert json.loads((tmp_path / "manifest.json").read_bytes())["experiment"] == "own"


@pytest.mark.parametrize(
    ("systems", "changes", "error", "said"),
    [
        ({}, {}, SettingsError, "at least one system"),
        ({"a": EARLIER}, {"baseline": "b"}, SettingsError, "baseline must be one of a, got 'b'"),
        ({"a": {"q0": []}}, {}, InputError, "'a' has nothing for 39 of 40 questions, e.g. 'q1'"),
    ],
)
def test_what_cannot_be_measured_is_named(systems, changes, error, said):
    with pytest.raises(error, match=said):
        run(systems, **changes)


def test_no_question_is_an_error():
    with pytest.raises(InputError, match="no questions"):
        experiment({"a": {}}, {}, MEASURES)
