"""Fitting: equal to the reference, blind to order, honest about too little."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from deepera_graph import packages
from deepera_graph.calibration.calibrate import fit_curve
from deepera_graph.errors import InputError, SettingsError

METHODS = ["isotonic", "platt"]
FEW = [0.1, 0.9] * 10
LABELS = [0, 1] * 10


@st.composite
def samples(draw):
    """Scores, rounded so that some are equal, and at least ten labels of each kind."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n = draw(st.integers(30, 200))
    scores = np.round(rng.random(n), draw(st.integers(1, 6)))
    labels = (rng.random(n) < draw(st.sampled_from([0.2, 0.5])) + 0.3 * scores).astype(int)
    labels[:10], labels[10:20] = 1, 0
    return scores.tolist(), labels.tolist()


@pytest.mark.full
@settings(max_examples=40, deadline=None)
@given(samples())
def test_isotonic_equals_the_reference_everywhere(sample):
    scores, labels = sample
    grid = np.linspace(0, 1, 301)
    reference = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(scores, labels)
    curve = fit_curve(scores, labels)
    ours = [curve.probability(float(score)) for score in grid]
    np.testing.assert_allclose(ours, reference.predict(grid), atol=1e-9)


@pytest.mark.full
@settings(max_examples=20, deadline=None)
@given(samples(), st.sampled_from(METHODS), st.randoms(use_true_random=False))
def test_the_order_of_passages_does_not_matter(sample, method, random):
    scores, labels = sample
    pairs = list(zip(scores, labels, strict=True))
    random.shuffle(pairs)
    shuffled = fit_curve(*map(list, zip(*pairs, strict=True)), method=method)
    straight = fit_curve(scores, labels, method=method)
    for score in np.linspace(0, 1, 50):
        assert shuffled.probability(score) == pytest.approx(straight.probability(score), abs=1e-6)


@pytest.mark.full
@settings(max_examples=20, deadline=None)
@given(samples(), st.sampled_from(METHODS))
def test_a_fitted_curve_is_right_on_average(sample, method):
    scores, labels = sample
    curve = fit_curve(scores, labels, method=method)
    mean = np.mean([curve.probability(score) for score in scores])
    slack = 0.0 if method == "isotonic" else 2 / len(labels)  # Platt's targets are smoothed
    assert mean == pytest.approx(np.mean(labels), abs=slack + 1e-6)


def test_a_hand_case():
    """Scores 0.2, 0.4, 0.6, ten each: shares 0.1, 0.5, 0.3; the last two are pooled to 0.4."""
    scores = [0.2] * 10 + [0.4] * 10 + [0.6] * 10
    labels = [1] + [0] * 9 + [1] * 5 + [0] * 5 + [1] * 4 + [0] * 6
    curve = fit_curve(scores, labels)
    assert curve.x == (0.2, 0.4, 0.6)
    assert curve.y == pytest.approx((0.1, 0.45, 0.45))
    assert curve.probability(0.3) == pytest.approx(0.275)


@pytest.mark.full
def test_platt_finds_what_was_planted():
    rng = np.random.default_rng(0)
    scores = rng.random(20_000)
    labels = (rng.random(20_000) < 1 / (1 + np.exp(-(8 * scores - 5)))).astype(int)
    curve = fit_curve(scores, labels, method="platt")
    assert (curve.a, curve.b) == (pytest.approx(8, rel=0.05), pytest.approx(-5, rel=0.05))


@pytest.mark.full
def test_platt_minimises_the_loss_of_its_targets():
    rng = np.random.default_rng(1)
    scores = rng.random(80)
    labels = (rng.random(80) < scores).astype(int)
    curve = fit_curve(scores, labels, method="platt")
    n = int(labels.sum())
    target = np.where(labels == 1, (n + 1) / (n + 2), 1 / (len(labels) - n + 2))
    error = np.array([curve.probability(score) for score in scores]) - target
    assert abs(error.sum()) < 1e-4
    assert abs((error * scores).sum()) < 1e-4


def test_platt_is_not_certain_of_separated_labels():
    curve = fit_curve(FEW, LABELS, method="platt")
    assert curve.probability(0.1) == pytest.approx(1 / 12, abs=1e-3)
    assert curve.probability(0.9) == pytest.approx(11 / 12, abs=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_scores_that_mislead_give_a_flat_curve(method):
    curve = fit_curve(FEW, LABELS[::-1], method=method)
    assert curve.probability(0.0) == curve.probability(1.0) == pytest.approx(0.5)


def test_close_scores_do_not_break_platt():
    curve = fit_curve([0.5 + score * 1e-6 for score in FEW], LABELS, method="platt")
    assert math.isfinite(curve.a)
    assert curve.probability(0.5 + 0.9e-6) == pytest.approx(11 / 12, abs=1e-3)


def test_the_curve_knows_what_it_was_fitted_on():
    curve = fit_curve(FEW, LABELS, judge={"backend": "llm"}, n_questions=4)
    assert (curve.n_passages, curve.n_questions, curve.judge) == (20, 4, {"backend": "llm"})
    assert curve.version


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        pytest.param([], [], "got 0 and 0", id="nothing"),
        pytest.param(FEW[:6], LABELS[:6], "at least 10 relevant.*got 3 and 3", id="tiny"),
        pytest.param(FEW, [1] * 20, "got 20 and 0", id="one-class"),
        pytest.param([0.5] * 20, LABELS, r"all 20 scores are 0\.5", id="one-score"),
        pytest.param([*FEW[:-1], 1.2], LABELS, r"in \[0, 1\], got 1\.2", id="score-range"),
        pytest.param([*FEW[:-1], math.nan], LABELS, "got nan", id="nan"),
        pytest.param(FEW, [*LABELS[:-1], 2], "0 or 1, 1 are not", id="label"),
        pytest.param(FEW, LABELS[:-1], "as many", id="ragged"),
    ],
)
def test_too_little_is_named_with_counts(scores, labels, message):
    with pytest.raises(InputError, match=message):
        fit_curve(scores, labels)


def test_an_unknown_method_is_refused():
    with pytest.raises(SettingsError, match="'isotonic', 'platt', got 'beta'"):
        fit_curve(FEW, LABELS, method="beta")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"pip install .*\[calibrate\]"):
        fit_curve(FEW, LABELS)
