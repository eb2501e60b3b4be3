"""The curve: scores to probabilities and back, on paper and from disk."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.errors import SettingsError
from deepera_graph.settings.thresholds import Curve, judge_identity

STAIRS = Curve(method="isotonic", x=(0.2, 0.4, 0.6, 0.8), y=(0.1, 0.5, 0.5, 0.9))
LOGISTIC = Curve(method="platt", a=10.0, b=-5.0)
shares = st.floats(0, 1)


@st.composite
def curves(draw):
    if draw(st.booleans()):
        a, b = draw(st.floats(0, 1000)), draw(st.floats(-1000, 1000))
        return Curve(method="platt", a=a, b=b)
    x = sorted(draw(st.sets(shares, min_size=1, max_size=8)))
    y = sorted(draw(st.lists(shares, min_size=len(x), max_size=len(x))))
    return Curve(method="isotonic", x=tuple(x), y=tuple(y))


@pytest.mark.parametrize(
    ("score", "probability"),
    [
        pytest.param(0.0, 0.1, id="before-the-first-knot"),
        pytest.param(0.2, 0.1, id="on-a-knot"),
        pytest.param(0.3, 0.3, id="between-knots"),
        pytest.param(0.5, 0.5, id="on-a-plateau"),
        pytest.param(0.7, 0.7, id="on-the-last-slope"),
        pytest.param(1.0, 0.9, id="after-the-last-knot"),
    ],
)
def test_an_isotonic_curve_is_straight_between_knots(score, probability):
    assert STAIRS.probability(score) == pytest.approx(probability)


def test_a_platt_curve_is_logistic():
    assert LOGISTIC.probability(0.5) == 0.5
    assert LOGISTIC.probability(0.7) == pytest.approx(1 / (1 + math.exp(-2)))


def test_a_steep_platt_curve_does_not_overflow():
    steep = Curve(method="platt", a=1e6, b=-1e6)
    assert steep.probability(0.0) == pytest.approx(0.0)
    assert steep.probability(1.0) == 0.5


@pytest.mark.parametrize(
    ("probability", "score"),
    [
        pytest.param(0.05, 0.0, id="every-score-has-it"),
        pytest.param(0.3, 0.3, id="on-a-slope"),
        pytest.param(0.5, 0.4, id="start-of-the-plateau"),
        pytest.param(0.9, 0.8, id="the-highest-there-is"),
        pytest.param(0.91, None, id="unreachable"),
    ],
)
def test_the_lowest_score_of_a_probability(probability, score):
    assert STAIRS.lowest_score(probability) == (score if score is None else pytest.approx(score))


@pytest.mark.full
@given(curves(), shares, shares)
def test_a_higher_score_is_never_less_probable(curve, one, other):
    low, high = sorted((one, other))
    assert curve.probability(low) <= curve.probability(high) + 1e-15


@pytest.mark.full
@given(curves(), shares)
def test_probabilities_are_in_range(curve, score):
    assert 0 <= curve.probability(score) <= 1


@pytest.mark.full
@given(curves(), shares)
def test_the_lowest_score_is_exact(curve, probability):
    lowest = curve.lowest_score(probability)
    if lowest is None:
        assert curve.probability(1.0) < probability
        return
    assert curve.probability(lowest) >= probability
    assert lowest == 0 or curve.probability(math.nextafter(lowest, 0)) < probability


@pytest.mark.full
@given(curves())
def test_a_curve_survives_json_exactly(curve):
    assert Curve.from_dict(json.loads(json.dumps(curve.to_dict()))) == curve


def test_a_curve_survives_a_file_and_replaces_the_old_one(tmp_path):
    path = tmp_path / "curve.json"
    LOGISTIC.save(path)
    STAIRS.save(path)
    assert Curve.load(path) == STAIRS
    assert [one.name for one in tmp_path.iterdir()] == ["curve.json"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"method": "spline"}, "'isotonic', 'platt', got 'spline'", id="method"),
        pytest.param({"method": "isotonic"}, "at least one of each, got 0, 0", id="no-knots"),
        pytest.param({"method": "isotonic", "x": [0.1], "y": [0.1, 0.2]}, "1, 2", id="ragged"),
        pytest.param({"method": "isotonic", "x": [0.2, 0.2], "y": [0, 1]}, "x must rise", id="x"),
        pytest.param({"method": "isotonic", "x": [0.1, 0.2], "y": [1, 0]}, "not fall", id="falls"),
        pytest.param({"method": "isotonic", "x": [0.1], "y": [1.5]}, r"\[0, 1\]", id="range"),
        pytest.param({"method": "isotonic", "x": ["a"], "y": [0]}, "numbers, got 'a'", id="text"),
        pytest.param({"method": "isotonic", "x": 3, "y": [0]}, "numbers, got 3", id="no-list"),
        pytest.param({"method": "platt", "a": -1.0}, ">= 0, got -1.0", id="falling-slope"),
        pytest.param({"method": "platt", "a": math.nan}, "finite, got nan", id="nan"),
        pytest.param({"method": "platt", "judge": "me"}, "object, got 'me'", id="judge"),
    ],
)
def test_a_bad_curve_is_refused(fields, message):
    with pytest.raises(SettingsError, match=message):
        Curve(**fields)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "is not JSON", id="broken"),
        pytest.param("[1]", "holds no curve", id="a-list"),
        pytest.param('{"format": 9}', "format must be 1, got 9", id="format"),
        pytest.param('{"format": 1, "method": "platt", "c": 1}', "not a curve", id="unknown-field"),
    ],
)
def test_a_file_without_a_curve_is_named(tmp_path, text, message):
    path = tmp_path / "curve.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=rf"curve\.json.*{message}"):
        Curve.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"none\.json' cannot be read"):
        Curve.load(tmp_path / "none.json")


def test_a_curve_that_cannot_be_written_says_so(tmp_path):
    with pytest.raises(SettingsError, match="cannot be written"):
        STAIRS.save(tmp_path / "nowhere" / "curve.json")


MODEL = {"model": "maker:m1", "prompts": "abc"}


@pytest.mark.parametrize(
    ("name", "about", "n_differences"),
    [
        pytest.param("llm", MODEL, 0, id="the-same"),
        pytest.param("llm", {**MODEL, "note": "new words"}, 0, id="a-note"),
        pytest.param("llm", {**MODEL, "model": "maker:m2"}, 1, id="another-model"),
        pytest.param("llm", {**MODEL, "prompts": "def"}, 1, id="other-prompts"),
        pytest.param("llm", {"model": "maker:m1"}, 1, id="prompts-not-known"),
        pytest.param("local", {"judge": "rules"}, 4, id="another-backend"),
    ],
)
def test_differences_are_named_one_by_one(name, about, n_differences):
    curve = Curve(method="platt", judge=judge_identity("llm", MODEL))
    assert len(curve.differences(name, about)) == n_differences


def test_a_difference_says_before_and_now():
    curve = Curve(method="platt", judge=judge_identity("llm", MODEL))
    (difference,) = curve.differences("llm", {**MODEL, "model": "maker:m2"})
    assert difference == "model was 'maker:m1' when the curve was fitted, now it is 'maker:m2'"


def test_a_curve_of_nobody_fits_nobody():
    assert LOGISTIC.differences("llm", MODEL) == [
        "the curve does not say which judge it was fitted for"
    ]


def test_who_summarizes_is_no_part_of_the_judge():
    def mixed(summarizer):
        return {
            "roles": {
                "judge": {"backend": "llm", **MODEL},
                "summarizer": {"backend": "llm", "model": summarizer},
            }
        }

    identity = judge_identity("llm", mixed("maker:small"))
    assert identity == judge_identity("llm+local", mixed("maker:large"))
    assert identity["roles.judge.model"] == "maker:m1"


def test_a_manifest_names_the_same_judge_as_its_backend():
    settings = {"threshold": {"kind": "calibrated", "curve": {"judge": {"model": "old"}}}}
    manifest = {"backend": "llm", **MODEL, "settings": settings, "versions": {"python": "3"}}
    assert judge_identity("llm", manifest) == judge_identity("llm", MODEL)
