"""What `--threshold` and `--on-error` take."""

import json

import pytest

from cli.conftest import TEA, line
from deepera_graph.cli.shared.values import read_threshold
from deepera_graph.errors import SettingsError
from deepera_graph.settings.thresholds import Gap, PerIntent, Quantile


@pytest.mark.parametrize(
    ("text", "threshold"),
    [
        ("0.8", 0.8),
        ("1", 1.0),
        ("gap", Gap()),
        ("gap:0.3", Gap(floor=0.3)),
        ("quantile:0.2", Quantile(share=0.2)),
        ("quantile:0.2:0.4", Quantile(share=0.2, floor=0.4)),
        ("mechanism=0.7", PerIntent(values={"mechanism": 0.7})),
        (
            "mechanism=0.7, causal inference=0.9,default=0.6",
            PerIntent(values={"mechanism": 0.7, "causal inference": 0.9}, default=0.6),
        ),
    ],
)
def test_a_threshold_is_read_as_it_is_written(text, threshold):
    assert read_threshold(text) == threshold


@pytest.mark.parametrize(
    "text", ["", "high", "0,8", "gap:", "gap:x", "gap:0.1:0.2", "quantile", "quantile:0.1:0.2:0.3"]
)
def test_another_text_is_refused_and_the_forms_are_told(text):
    with pytest.raises(SettingsError, match="--threshold must be a number from 0 to 1, gap"):
        read_threshold(text)


@pytest.mark.parametrize("text", ["quantile:1.5", "gap:-1", "mechanism=2", "guesswork=0.5"])
def test_a_number_out_of_range_or_an_unknown_kind_is_named(text):
    with pytest.raises(SettingsError, match=r"1\.5|-1|2|guesswork"):
        read_threshold(text)


def ranked(deepera, path, backend, *options):
    result = deepera("rerank", path, "--backend", backend, "--quiet", *options)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_rule_draws_the_line(deepera, questions):
    asked = ranked(deepera, questions(line("q1")), TEA, "--threshold", "gap:0.2")
    assert asked["threshold"] == 0.93
    assert [one["id"] for one in asked["ranking"] if one["kept"]] == ["b"]


def test_a_dropped_failure_is_listed_apart_with_its_cause(deepera, questions):
    cracked = "support.scripted:cracked_tea_backend"
    options = ("--on-error", "drop", "--max-failed-share", "0.5")
    asked = ranked(deepera, questions(line("q1")), cracked, *options)
    assert [one["id"] for one in asked["ranking"]] == ["b", "a"]
    [left] = asked["left_out"]
    assert (left["id"], left["rank"], left["score"], left["status"]) == ("c", 0, None, "failed")
    assert "out of order" in left["reason"]
