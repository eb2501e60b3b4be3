"""The key of a judgement: the same for the same, another for anything else."""

import os
import subprocess
import sys
from collections import OrderedDict
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.agents.cached import cache_key
from deepera_graph.errors import SettingsError

TASK = {"question": "Does λ rise?", "intent": {"topic": "physics"}, "text": "It rose by 0.1."}
FINGERPRINT = {"model": "m", "temperature": 0.1, "stop": None, "seed": 7, "stream": False}
KEY = "a8acbd79ac0cf1bace7af8e10a87c0ed0927ad903bfde4ea5536323342870a3d"

characters = st.characters(codec=None)
names = st.text(characters, max_size=5)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(characters)
)
finite = scalars.filter(lambda value: not isinstance(value, float) or abs(value) != float("inf"))
values = st.recursive(
    finite,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(names, values, max_size=3)


def reordered(value):
    if isinstance(value, dict):
        return {key: reordered(item) for key, item in reversed(value.items())}
    return [reordered(item) for item in value] if isinstance(value, list) else value


def exact(value):
    """A form in which only equal JSON values are equal: 1, 1.0, True and -0.0 differ."""
    if isinstance(value, dict):
        return ("object", frozenset((key, exact(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("array", tuple(exact(item) for item in value))
    return (type(value).__name__, repr(value))


@pytest.mark.full
@given(objects, objects)
def test_the_order_of_keys_does_not_matter(task, fingerprint):
    assert cache_key("judge", task, fingerprint) == cache_key(
        "judge", reordered(task), reordered(fingerprint)
    )


@pytest.mark.full
@given(objects, objects)
def test_different_values_have_different_keys(one, other):
    same = cache_key("judge", one, {}) == cache_key("judge", other, {})
    assert same == (exact(one) == exact(other))


@pytest.mark.full
@given(objects, objects)
def test_task_and_fingerprint_are_not_confused(task, fingerprint):
    same = cache_key("judge", task, fingerprint) == cache_key("judge", fingerprint, task)
    assert same == (exact(task) == exact(fingerprint))


def test_the_key_of_an_example_never_changes():
    assert cache_key("judge", TASK, FINGERPRINT) == KEY


@pytest.mark.full
def test_the_key_is_the_same_in_another_process_with_another_hash_seed():
    program = (
        "from deepera_graph.agents.cached import cache_key\n"
        f"print(cache_key('judge', {TASK!r}, {FINGERPRINT!r}))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == KEY


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(1, 1.0, id="integer-float"),
        pytest.param(1, True, id="integer-bool"),
        pytest.param(0.0, -0.0, id="signed-zero"),
        pytest.param(0.1, 0.1 + 2**-56, id="last-bit-of-a-float"),
        pytest.param("", None, id="empty-none"),
        pytest.param("1", 1, id="text-number"),
        pytest.param("é", "e\u0301", id="composed-decomposed"),
        pytest.param("ﬁ", "fi", id="ligature"),
        pytest.param("a b", "a  b", id="white-space"),
        pytest.param("\U0001f9ea", "\ud83e\uddea", id="character-surrogate-pair"),
        pytest.param(["a", "b"], ["a,b"], id="list-text"),
        pytest.param(["a", "b"], ["b", "a"], id="order-of-a-list"),
    ],
)
def test_values_that_look_alike_are_told_apart(one, other):
    assert cache_key("judge", {"v": one}, {}) != cache_key("judge", {"v": other}, {})


@pytest.mark.parametrize(
    "same",
    [
        pytest.param(OrderedDict(a=[1, 2]), id="ordered"),
        pytest.param(MappingProxyType({"a": [1, 2]}), id="proxy"),
        pytest.param({"a": (1, 2)}, id="tuple"),
    ],
)
def test_any_mapping_counts_as_an_object_and_a_tuple_as_a_list(same):
    assert cache_key("judge", same, {}) == cache_key("judge", {"a": [1, 2]}, {})


def test_the_role_is_part_of_the_key():
    assert cache_key("judge", TASK, {}) != cache_key("summarizer", TASK, {})


def nested():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        pytest.param({"a": {1}}, r"fingerprint\.a must be a JSON value, got set", id="set"),
        pytest.param({"a": [b"x"]}, r"fingerprint\.a\[0\] must be a JSON value, got bytes", id="b"),
        pytest.param({"a": object()}, "got object", id="object"),
        pytest.param({"a": float("nan")}, "finite number, got nan", id="nan"),
        pytest.param({"a": float("-inf")}, "finite number, got -inf", id="inf"),
        pytest.param({"a": {1: "x"}}, r"keys of .*fingerprint\.a must be text, got 1", id="key"),
        pytest.param({"a": {None: "x"}}, "must be text, got None", id="none-key"),
        pytest.param({"a": nested()}, "nested too deep", id="endless"),
    ],
)
def test_what_json_cannot_say_is_refused(bad, message):
    with pytest.raises(SettingsError, match=message):
        cache_key("judge", TASK, bad)


def test_a_refused_value_is_not_shown():
    class Secret:
        def __repr__(self):
            return "sk-123"

    with pytest.raises(SettingsError) as caught:
        cache_key("judge", TASK, {"api_key": Secret()})
    assert "sk-123" not in str(caught.value)
