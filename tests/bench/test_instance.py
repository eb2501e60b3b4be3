import pytest
from pydantic import ValidationError

from bench.lakes import make_instance
from deepera_graph.bench.data.instance import Context, Instance


def plain(**changes):
    return {"id": "q", "question": "Why?", "contexts": [{"id": "a", "text": "So.",
            "is_golden": True}], **changes}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"question": " "}, "must not be blank", id="blank-question"),
        pytest.param({"contexts": []}, "at least 1 item", id="no-candidates"),
        pytest.param({"contexts": [{"id": "a", "text": "x"}]}, "no passage is golden", id="none"),
        pytest.param(
            {"contexts": [{"id": "a", "text": "x", "is_golden": True}, {"id": "a", "text": "y"}]},
            "'a' is used twice",
            id="id-twice",
        ),
        pytest.param(
            {"contexts": [{"id": "a", "text": "x", "is_golden": True, "is_distractor": True}]},
            "golden and a distractor",
            id="two-labels",
        ),
        pytest.param(
            {"contexts": [{"id": "a", "text": "x", "is_golden": True, "parent_id": "b"}]},
            "'b' names no passage",
            id="unknown-parent",
        ),
        pytest.param({"golden_outside": {"a": 1}}, "'a' is used twice", id="inside-and-outside"),
        pytest.param({"golden_outside": {"b": 0}}, "grades must be >= 1", id="grade-0"),
    ],
)
def test_inconsistent_instances_are_refused(changes, message):
    with pytest.raises(ValidationError, match=message):
        Instance.model_validate(plain(**changes))


def test_golden_passages_may_all_be_outside_the_candidates():
    made = Instance.model_validate(
        plain(contexts=[{"id": "a", "text": "x"}], golden_outside={"b": 2})
    )
    assert made.golden_outside == {"b": 2}


def test_blank_passages_are_refused():
    with pytest.raises(ValidationError, match="must not be blank"):
        Context(id="a", text="\n")


def test_unknown_keys_are_ignored():
    assert Instance.model_validate(plain(extra=1)).id == "q"


def test_instances_survive_json():
    one = make_instance(distractors=(4,))
    assert Instance.model_validate_json(one.model_dump_json(exclude_defaults=True)) == one
