"""Presets: settings, and ways to ask a chat model, under one name."""

import re

import pytest

from deepera_graph import EvidenceReranker, Settings, SettingsError, preset
from deepera_graph.settings import PRESETS
from deepera_graph.testing import scripted_backend

NAMES = ("fast", "careful", "cheap")


@pytest.fixture
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecret")


def test_there_are_three_and_each_says_what_it_is_for():
    assert tuple(PRESETS) == NAMES
    assert all(preset(name).name == name and preset(name).about.endswith(".") for name in NAMES)


@pytest.mark.parametrize("name", ["quick", "", None, 3, ["fast"]])
def test_an_unknown_preset_is_named_with_the_known_ones(name):
    with pytest.raises(SettingsError, match="preset must be one of fast, careful, cheap, got"):
        preset(name)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"preset": "carefull"}, "did you mean 'careful'?"),
        ({"backend": "rule"}, "did you mean 'rules'?"),
        ({"backend": {"kind": "lokal"}}, "did you mean 'local'?"),
        ({"backend": "rules", "order": "scores"}, "did you mean 'score'?"),
        ({"backend": "rules", "on_error": "keep-last"}, "did you mean 'keep_last'?"),
    ],
)
def test_a_name_that_is_nearly_right_is_suggested(given, hint):
    with pytest.raises(SettingsError, match=re.escape(hint)):
        EvidenceReranker(**given)


def test_the_front_door_refuses_an_unknown_preset():
    with pytest.raises(SettingsError, match="got 'quick'"):
        EvidenceReranker(scripted_backend({}), preset="quick")


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_sets_what_it_says_and_nothing_else(name):
    reranker = EvidenceReranker(scripted_backend({}), preset=name)
    assert reranker.settings == Settings.of(preset(name).settings)


def test_an_explicit_setting_wins():
    reranker = EvidenceReranker(scripted_backend({}), preset="fast", content="summary", top_n=3)
    assert (reranker.settings.content, reranker.settings.top_n) == ("summary", 3)


@pytest.mark.usefixtures("_key")
@pytest.mark.parametrize(
    ("name", "how", "keep"),
    [("fast", {"mode": "fused"}, 30), ("cheap", {"mode": "grouped", "group_size": 10}, 20)],
)
def test_a_named_chat_model_reads_the_best_of_the_local_judge(name, how, keep):
    spec = EvidenceReranker("openai:some-model", preset=name).to_dict()["backend"]
    assert (spec["kind"], spec["keep"]) == ("cascade", keep)
    assert spec["llm"].items() >= how.items()


@pytest.mark.usefixtures("_key")
def test_a_careful_chat_model_reads_every_passage_in_a_call_of_its_own():
    plain = EvidenceReranker("openai:some-model").to_dict()["backend"]
    careful = EvidenceReranker("openai:some-model", preset="careful").to_dict()["backend"]
    assert careful == plain


def test_a_backend_that_was_made_stays_as_it_is():
    backend = scripted_backend({})
    assert EvidenceReranker(backend, preset="cheap").backend is backend


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_a_preset_leaves_the_local_judge_its_scores(name):
    passages = ["Wax kept apples firm by 25% (p < 0.001).", "Apples are waxed.", "Rain fell."]
    question = "Does wax keep apples firm?"
    plain = EvidenceReranker("local").rerank(question, passages)
    other = EvidenceReranker("local", preset=name).rerank(question, passages)
    assert [(one.id, one.score) for one in other.passages] == [
        (one.id, one.score) for one in plain.passages
    ]


def test_a_preset_cannot_be_changed():
    with pytest.raises(TypeError):
        PRESETS["mine"] = preset("fast")
    with pytest.raises(TypeError):
        preset("fast").settings["top_n"] = 3
