"""The calibrated threshold, among the other settings and in a rerank."""

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph import EvidenceReranker, Settings
from deepera_graph.errors import SettingsError
from deepera_graph.settings.thresholds import (
    UNREACHABLE,
    Calibrated,
    Curve,
    Quantile,
    calibration_differences,
    judge_identity,
    threshold_from_plain,
    threshold_to_plain,
)
from support.scripted import Script

pytestmark = pytest.mark.full

STAIRS = Curve(
    method="isotonic",
    x=(0.2, 0.4, 0.6, 0.8),
    y=(0.1, 0.5, 0.5, 0.9),
    judge={"backend": "scripted"},
    n_questions=7,
)
PASSAGES = ["Tea one [0.35].", "Tea two [0.45].", "Tea three [0.85].", "Tea four [1.00]."]
SCORES = {"[0.35]": 0.35, "[0.45]": 0.45, "[0.85]": 0.85, "[1.00]": 1.0}


def kept_by(threshold):
    reranker = EvidenceReranker(Script(SCORES).backend(), threshold=threshold)
    result = reranker.rerank("Does tea lower glucose?", PASSAGES)
    return result, sorted(passage.score for passage in result.kept)


@given(st.floats(0, 1), st.lists(st.floats(0, 1)))
def test_the_cut_parts_the_scores_as_the_probabilities_do(probability, scores):
    cut = Calibrated(curve=STAIRS, probability=probability).cut(scores, "other")
    for score in scores:
        assert (score >= cut) == (STAIRS.probability(score) >= probability)


def test_a_whole_plateau_is_kept_or_none_of_it():
    assert Calibrated(curve=STAIRS, probability=0.5).cut([], "other") == pytest.approx(0.4)
    assert Calibrated(curve=STAIRS, probability=0.501).cut([], "other") > 0.6


def test_a_rerank_keeps_what_is_probable_enough():
    assert kept_by(Calibrated(curve=STAIRS, probability=0.5))[1] == [0.45, 0.85, 1.0]


def test_an_unreachable_probability_keeps_nothing_and_stays_json():
    result, kept = kept_by(Calibrated(curve=STAIRS, probability=0.95))
    assert kept == []
    assert result.outcome == "no_evidence"
    assert result.threshold == UNREACHABLE
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["threshold"] > 1


def test_the_manifest_names_the_curve():
    result, _ = kept_by(Calibrated(curve=STAIRS))
    curve = result.manifest["settings"]["threshold"]["curve"]
    assert (curve["method"], curve["n_questions"]) == ("isotonic", 7)
    assert curve["judge"] == {"backend": "scripted"}


def test_settings_survive_json():
    settings = Settings(threshold=Calibrated(curve=STAIRS, probability=0.7))
    assert Settings.of(json.loads(json.dumps(settings.to_dict()))) == settings


def test_plain_data_holds_only_json_values():
    plain = threshold_to_plain(Calibrated(curve=STAIRS))
    assert json.loads(json.dumps(plain)) == plain
    assert threshold_from_plain(plain) == Calibrated(curve=STAIRS)


def test_a_reranker_with_a_curve_can_be_changed():
    reranker = EvidenceReranker("local", threshold=Calibrated(curve=STAIRS))
    assert reranker.with_settings(top_n=3).settings.threshold == Calibrated(curve=STAIRS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"curve": STAIRS, "probability": 1.5}, "got 1.5", id="probability"),
        pytest.param({"curve": "curve.json"}, "curve must be a Curve, got 'curve.json'", id="path"),
        pytest.param({"curve": {"format": 2}}, "format must be 1, got 2", id="format"),
    ],
)
def test_a_bad_rule_is_refused(options, message):
    with pytest.raises(SettingsError, match=message):
        Calibrated(**options)


def test_another_judge_is_warned_of(caplog):
    about = {"model": "maker:m1", "prompts": "abc"}
    rule = Calibrated(curve=Curve(method="platt", judge=judge_identity("llm", about)))
    with caplog.at_level(logging.WARNING, "deepera_graph.settings.thresholds"):
        found = calibration_differences(rule, "llm", {**about, "prompts": "def"})
    assert found == ["prompts was 'abc' when the curve was fitted, now it is 'def'"]
    assert found[0] in caplog.text


@pytest.mark.parametrize("threshold", [0.8, Quantile(), Calibrated(curve=STAIRS)])
def test_the_same_judge_is_not_warned_of(threshold, caplog):
    assert calibration_differences(threshold, "scripted", {}) == []
    assert caplog.text == ""


def test_a_reranker_warns_when_its_judge_is_another(caplog):
    rule = Calibrated(curve=STAIRS)
    EvidenceReranker(Script(SCORES).backend(), threshold=rule)
    assert caplog.text == ""
    EvidenceReranker("local", threshold=rule)
    assert "backend was 'scripted' when the curve was fitted, now it is 'local'" in caplog.text


def test_the_manifest_says_how_the_judge_differs():
    result, _ = kept_by(Calibrated(curve=STAIRS))
    assert result.manifest["calibration"] == {"differences": []}
    other = EvidenceReranker("local", threshold=Calibrated(curve=STAIRS))
    manifest = other.rerank("Does tea lower glucose?", PASSAGES).manifest
    assert len(manifest["calibration"]["differences"]) == 3
