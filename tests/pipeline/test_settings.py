"""Settings are checked when they are made."""

import json
import pickle
import re
from dataclasses import FrozenInstanceError

import pytest

from deepera_graph import EvidenceReranker, Gap, PerIntent, Quantile, Settings, SettingsError
from deepera_graph.testing import scripted_backend

BAD = [
    ("threshold", 1.2),
    ("threshold", -0.1),
    ("threshold", float("nan")),
    ("threshold", "0.8"),
    ("threshold", True),
    ("threshold", {"kind": "lucky"}),
    ("threshold", {"kind": ["gap"]}),
    ("threshold", {"kind": "gap", "flor": 0.5}),
    ("threshold", {"kind": "per_intent", "values": {"guesswork": 0.5}}),
    ("threshold", {"kind": "per_intent", "values": [0.5]}),
    ("top_n", 0),
    ("top_n", 2.0),
    ("top_n", True),
    ("order", "random"),
    ("content", "whole"),
    ("on_empty", None),
    ("on_error", "ignore"),
    ("max_concurrency", 0),
    ("max_concurrency", "16"),
    ("max_failed_share", 1.01),
    ("max_failed_share", None),
    ("max_passage_chars", 199),
    ("answer", "yes"),
    ("answer", None),
]


def test_the_defaults_are_those_of_the_paper():
    settings = Settings()
    assert (settings.threshold, settings.top_n, settings.order) == (None, 10, "score")
    assert (settings.content, settings.on_empty, settings.on_error) == (
        "both", "empty", "keep_last",
    )  # fmt: skip
    assert settings.max_concurrency == 16


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_value_out_of_range_is_named(name, value):
    with pytest.raises(SettingsError) as caught:
        Settings.of({name: value})
    shown = value.get("kind") if isinstance(value, dict) else value
    if shown in ("per_intent", "gap"):
        shown = "guesswork" if "guesswork" in str(value) else None
    assert shown is None or repr(shown) in str(caught.value)


@pytest.mark.parametrize(("name", "value"), BAD[:2] + BAD[11:13])
def test_the_front_door_checks_too(name, value):
    with pytest.raises(SettingsError, match=f"{name} must be .*{value}"):
        EvidenceReranker(scripted_backend({}), **{name: value})


def test_a_settings_error_is_a_value_error():
    with pytest.raises(ValueError, match="top_n"):
        Settings(top_n=-1)


def test_an_unknown_setting_is_named_with_the_known_ones():
    with pytest.raises(SettingsError, match=r"unknown setting 'treshold'.*threshold"):
        Settings.of({"treshold": 0.8})


@pytest.mark.parametrize("name", ["treshold", "Threshold", "thresholds"])
def test_a_misspelt_setting_is_told_the_right_name(name):
    for make in (Settings, lambda **given: EvidenceReranker(scripted_backend({}), **given)):
        with pytest.raises(SettingsError, match=f"'{name}'; did you mean 'threshold'\\?$"):
            make(**{name: 0.5})
    with pytest.raises(SettingsError, match=r"'cash'; did you mean 'cache'\?$"):
        EvidenceReranker(scripted_backend({}), cash=None)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("threshold", 80, "must be in [0, 1], got 80; did you mean 0.8?"),
        ("threshold", 75.0, "must be in [0, 1], got 75.0; did you mean 0.75?"),
        ("threshold", 1.2, "must be in [0, 1], got 1.2"),
        ("threshold", "0.5", "must be a number in [0, 1], got the text '0.5'"),
        ("max_failed_share", 20, "must be in [0, 1], got 20; did you mean 0.2?"),
        ("top_n", "5", "must be a whole number >= 1, got the text '5'"),
    ],
)
def test_a_percentage_or_a_number_in_quotation_marks_is_named(name, value, message):
    with pytest.raises(SettingsError, match=f"^{re.escape(f'{name} {message}')}$"):
        Settings(**{name: value})


def test_settings_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Settings().top_n = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    "threshold",
    [0.5, 1, 0, Quantile(share=0.2), Gap(floor=0.4), PerIntent(values={"mechanism": 0.6})],
)
def test_settings_survive_json_and_pickle(threshold):
    settings = Settings(threshold=threshold, top_n=3, on_empty="top1", answer=True)
    assert Settings.of(json.loads(json.dumps(settings.to_dict()))) == settings
    assert pickle.loads(pickle.dumps(settings)) == settings


@pytest.mark.parametrize("value", [0, 1])
def test_the_ends_of_the_range_are_in_it(value):
    settings = Settings(threshold=value, max_failed_share=value)
    assert settings.threshold == float(value)
    assert type(settings.threshold) is float
