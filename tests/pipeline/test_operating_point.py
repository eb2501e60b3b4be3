"""Where evidence begins, if the settings do not say: each judge has its own point."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from deepera_graph import (
    EvidenceReranker,
    Settings,
    SettingsError,
    build_graph,
    cascade_backend,
    llm_backend,
    local_backend,
    screened_backend,
)
from deepera_graph.agents.journal import find_differences
from deepera_graph.jobs.files import describe_run
from deepera_graph.judges.base import as_judge
from deepera_graph.judges.trained.backend import Weights
from deepera_graph.testing import ScriptedChat, ScriptedRole, judged, scripted_backend
from support.list_judges import ListJudge, list_backend, run


class Lenient(ListJudge):
    operating_point = 0.3


def lenient_backend(score=0.4):
    judge = Lenient(lambda batch: [judged(score, quote="one") for _ in batch["windows"]])
    return replace(list_backend(), judge=judge)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_score_is_held_against_the_point_of_the_judge(is_async):
    found = run(lenient_backend(), is_async=is_async)
    assert (found.outcome, found.threshold) == ("ok", 0.3)
    assert run(lenient_backend(0.2), is_async=is_async).outcome == "no_evidence"


def test_a_threshold_that_is_given_counts_more():
    found = run(lenient_backend(), threshold=0.5)
    assert (found.outcome, found.threshold) == ("no_evidence", 0.5)


@pytest.mark.parametrize(
    "backend",
    [scripted_backend({}), llm_backend(ScriptedChat(scores={})), local_backend("rules")],
    ids=["a role", "chat model", "rules"],
)
def test_a_judge_that_names_no_point_has_that_of_the_paper(backend):
    assert EvidenceReranker(backend).effective_settings.threshold == 0.8


def test_a_judge_of_single_passages_may_have_a_point_too():
    role = ScriptedRole(lambda task: judged(0.4))
    role.operating_point = 0.35
    assert run(replace(scripted_backend({}), judge=role)).threshold == 0.35


@pytest.mark.parametrize("join", [cascade_backend, screened_backend])
def test_the_judge_with_the_last_word_names_the_point(join):
    strict = scripted_backend({})
    assert run(join(lenient_backend(), strict), []).threshold == 0.8
    assert run(join(strict, lenient_backend()), []).threshold == 0.3


def test_the_settings_stay_as_given_and_the_manifest_says_what_counted():
    reranker = EvidenceReranker(lenient_backend())
    assert (reranker.settings.threshold, reranker.effective_settings.threshold) == (None, 0.3)
    result = reranker.rerank("Which?", ["one"])
    assert result.manifest["settings"]["threshold"] == 0.3
    assert "at threshold 0.3" in result._repr_html_()
    [selected] = [e for e in reranker.stream("Which?", ["one"]) if e["event"] == "selected"]
    assert selected["threshold"] == 0.3


def test_other_settings_leave_the_point_to_the_judge():
    reranker = EvidenceReranker(lenient_backend()).with_settings(top_n=1)
    assert reranker.effective_settings.threshold == 0.3
    assert reranker.with_settings(threshold=0.6).effective_settings.threshold == 0.6
    back = reranker.with_settings(threshold=0.6).with_settings(threshold=None)
    assert back.effective_settings.threshold == 0.3


def test_the_bare_graph_goes_by_the_point_of_the_judge_too():
    graph = build_graph(lenient_backend())
    state = graph.invoke({"question": "Which?", "passages": ["one"]})
    assert (state["threshold"], len(state["documents"])) == (0.3, 1)


@pytest.mark.parametrize("point", [80, -0.1, None, "0.5"])
def test_a_point_that_is_no_share_is_refused_at_once(point):
    backend = lenient_backend()
    backend.judge.operating_point = point
    with pytest.raises(SettingsError, match="operating_point of the judge must be "):
        EvidenceReranker(backend)


def test_early_stopping_is_sure_above_the_point_of_the_judge():
    for score, n_left in ((0.39, 0), (0.41, 2)):
        found = run(lenient_backend(score), stop_after=1, round_size=1)
        assert len(found.not_needed) == n_left


def test_a_run_is_continued_by_what_counted_not_by_what_was_given():
    rules = {"backend": {"kind": "local", "judge": "rules"}}
    default = EvidenceReranker.from_dict({**rules, "settings": {}})
    same = EvidenceReranker.from_dict({**rules, "settings": {"threshold": 0.8}})
    other = EvidenceReranker.from_dict({**rules, "settings": {"threshold": 0.5}})
    assert find_differences(describe_run(default), describe_run(same)) == []
    assert find_differences(describe_run(default), describe_run(other)) == [
        "settings.threshold was 0.8 and is 0.5"
    ]


def test_none_survives_being_written_down():
    plain = json.loads(json.dumps(Settings().to_dict()))
    assert plain["threshold"] is None
    assert Settings.of(plain) == Settings()


def test_the_trained_judge_has_the_point_of_its_weights(tmp_path):
    (tmp_path / "head.json").write_text('{"operating_point": 0.42}', encoding="utf-8")
    assert Weights(str(tmp_path)).operating_point() == 0.42
    (tmp_path / "head.json").write_text("{torn", encoding="utf-8")
    assert Weights(str(tmp_path)).operating_point() == 0.8
    assert as_judge(local_backend().judge).operating_point == Weights().operating_point()


def test_points_are_read_off_megabytes_of_weights_once_until_these_change(tmp_path, monkeypatch):
    head, read, opened = tmp_path / "head.json", Path.read_bytes, []
    monkeypatch.setattr(Path, "read_bytes", lambda path: opened.append(path) or read(path))
    for point, n_read in [(0.42, 1), (0.4, 2)]:
        head.write_text(f'{{"operating_point": {point}}}', encoding="utf-8")
        for _ in range(3):
            assert Weights(str(tmp_path)).operating_point() == point
        assert opened == [head] * n_read
