"""What makes two runs differ."""

from dataclasses import replace

import pytest

from deepera_graph import EvidenceReranker
from deepera_graph.agents.journal import find_differences
from deepera_graph.errors import SettingsError
from deepera_graph.jobs.files import describe_run
from support.scripted import Script


def identity(spec=None, about=None, **settings):
    backend = Script({}).backend(spec or {"kind": "llm", "model": "any"})
    return describe_run(EvidenceReranker(replace(backend, about=about or {}), **settings))


def test_a_run_does_not_differ_from_itself():
    assert find_differences(identity(), identity()) == []


@pytest.mark.parametrize(
    ("now", "named"),
    [
        ({"about": {"model": "b"}}, "model was 'a' and is 'b'"),
        ({"threshold": 0.5}, "settings.threshold was 0.8 and is 0.5"),
        ({"spec": {"kind": "llm", "model": "c"}}, "spec.model was 'any' and is 'c'"),
        ({"spec": {"kind": "llm"}}, "spec.model was 'any' and is not set"),
    ],
)
def test_what_changes_a_judgement_is_named(now, named):
    before = identity(about={"model": "a"})
    assert find_differences(before, identity(**{"about": {"model": "a"}, **now})) == [named]


def test_every_difference_is_named_and_none_at_length():
    found = find_differences(identity(), identity(about={"model": "m" * 1000}, top_n=3))
    assert [one.split()[0] for one in found] == ["model", "settings.top_n"]
    assert max(map(len, found)) < 120


@pytest.mark.parametrize(
    "now",
    [
        {"budget": {"max_calls": 3}},
        {"max_concurrency": 2},
        {"spec": {"kind": "llm", "model": "any", "api_key_env": "OTHER"}},
        {"spec": {"kind": "llm", "model": "any", "limits": {"requests_per_minute": 3}}},
        {"spec": {"kind": "llm", "model": "any", "retry": {"timeout": 300}}},
    ],
)
def test_what_changes_no_judgement_makes_no_difference(now):
    assert find_differences(identity(), identity(**now)) == []


def test_another_version_of_this_package_differs_and_of_others_does_not():
    now = identity()
    before = {**now, "versions": dict.fromkeys(now["versions"], "0")}
    (only,) = find_differences(before, now)
    assert only.startswith("versions.deepera-graph was '0' and is ")


def test_a_url_is_kept_without_its_secrets():
    url = "https://me:verysecret@host:8000/v1?key=verysecret"
    spec = identity({"kind": "llm", "model": "any", "base_url": url})["spec"]
    assert spec["base_url"] == "https://host:8000/v1"


def test_live_objects_cannot_be_told_apart():
    with pytest.raises(SettingsError, match="live objects"):
        describe_run(EvidenceReranker(Script({}).backend()))
