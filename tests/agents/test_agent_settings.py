"""The settings of all agents are checked, read and written down in one way."""

import json
from dataclasses import fields

import pytest

from deepera_graph.bioasq.settings import (
    SearchKwargs,
    SearchSettings,
    TypedKwargs,
    TypedSettings,
)
from deepera_graph.errors import SettingsError
from deepera_graph.multihop.settings import MultiHopKwargs, MultiHopSettings
from deepera_graph.papers.agent.settings import PaperSearchKwargs, PaperSearchSettings
from deepera_graph.settings import Settings, SettingsKwargs
from deepera_graph.settings.budget import Budget

TYPED = {
    Settings: SettingsKwargs,
    MultiHopSettings: MultiHopKwargs,
    PaperSearchSettings: PaperSearchKwargs,
    SearchSettings: SearchKwargs,
    TypedSettings: TypedKwargs,
}
WHOLE = [
    pytest.param(kind, one.name, id=f"{kind.__name__}.{one.name}")
    for kind in TYPED
    for one in fields(kind)
    if type(one.default) is int
]


@pytest.mark.parametrize("kind", TYPED)
def test_the_keyword_arguments_of_an_agent_are_its_settings(kind):
    assert [*TYPED[kind].__annotations__] == [one.name for one in fields(kind)]


@pytest.mark.parametrize("kind", TYPED)
def test_settings_are_read_from_what_they_write(kind):
    made = kind(budget={"max_calls": 3}, max_concurrency=2)
    assert made.budget == Budget(max_calls=3)
    plain = made.to_dict()
    assert [*plain] == [one.name for one in fields(kind)]
    assert json.loads(json.dumps(plain)) == plain
    again = kind.of(plain)
    assert again.to_dict() == plain
    assert kind.of(again) is again
    assert kind.of() == kind()


@pytest.mark.parametrize("kind", TYPED)
@pytest.mark.parametrize(
    "read", [lambda kind, given: kind(**given), lambda kind, given: kind.of(given)]
)
def test_an_unknown_setting_is_named_with_the_one_that_is_near(kind, read):
    with pytest.raises(SettingsError, match=r"unknown setting 'budgets'; did you mean 'budget'\?"):
        read(kind, {"budgets": 3})
    with pytest.raises(SettingsError, match=r"unknown setting 'zzz'; settings are .*budget"):
        read(kind, {"zzz": 3})


@pytest.mark.parametrize("kind", TYPED)
def test_settings_are_given_by_name_alone(kind):
    with pytest.raises(SettingsError, match=f"settings must be a {kind.__name__} or its fields"):
        kind.of(3)


@pytest.mark.parametrize("value", [-1, 1.5, True, "3", None])
@pytest.mark.parametrize(("kind", "name"), WHOLE)
def test_a_number_out_of_range_is_named(kind, name, value):
    with pytest.raises(SettingsError, match=f"{name} must be a whole number >= "):
        kind(**{name: value})
