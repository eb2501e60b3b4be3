import pytest
from pydantic import ValidationError

from bench.lakes import make_instance
from deepera_graph.calibration.instance import Context, Dataset, DatasetError, Instance


def plain(**changes):
    return {"id": "q", "question": "Why?", "contexts": [{"id": "a", "text": "So.",
            "is_golden": True}], **changes}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"question": " "}, "must not be blank", id="blank-question"),
        pytest.param({"contexts": []}, "at least 1 item", id="no-candidates"),
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


NONE = Instance.model_validate(plain(id="none", contexts=[{"id": "a", "text": "x"}]))


def test_nothing_may_answer_some_questions_of_a_set_but_not_all():
    some = [NONE, Instance.model_validate(plain())]
    assert [one.has_golden for one in Dataset("some", lambda: some)] == [False, True]
    with pytest.raises(DatasetError, match="data set 'none': no question has a golden passage"):
        list(Dataset("none", lambda: [NONE]).first(1))
    assert [*Dataset("none", lambda: [NONE], needs_golden=False).first(1)] == [NONE]


def ranked(*ranks):
    return [
        {"id": f"c{place}", "text": "x", "is_golden": place == 0, "first_stage_rank": rank}
        for place, rank in enumerate(ranks)
    ]


def test_passages_come_in_the_order_of_their_first_stage_ranks():
    made = Instance.model_validate(plain(contexts=ranked(7, 1, 3)))
    assert [one.id for one in made.contexts] == ["c1", "c2", "c0"]
    unranked = Instance.model_validate(plain(contexts=ranked(None, None)))
    assert [one.id for one in unranked.contexts] == ["c0", "c1"]


def test_a_written_distractor_has_no_rank_and_keeps_its_place():
    written = {"id": "w", "text": "y", "is_distractor": True}
    made = Instance.model_validate(plain(contexts=[*ranked(2, 1)[:1], written, *ranked(2, 1)[1:]]))
    assert [one.id for one in made.contexts] == ["c1", "w", "c0"]


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ((2, 1, 2), "passages 'c0' and 'c2' both have first_stage_rank 2"),
        ((1, None), "passage 'c1' has no first_stage_rank, but others have one"),
        ((0, 1), "greater than or equal to 1"),
    ],
)
def test_first_stage_ranks_that_are_no_order_are_refused(ranks, message):
    with pytest.raises(ValidationError, match=message):
        Instance.model_validate(plain(contexts=ranked(*ranks)))


def test_blank_passages_are_refused():
    with pytest.raises(ValidationError, match="must not be blank"):
        Context(id="a", text="\n")


def test_unknown_keys_are_ignored():
    assert Instance.model_validate(plain(extra=1)).id == "q"


def test_instances_survive_json():
    one = make_instance(distractors=(4,))
    assert Instance.model_validate_json(one.model_dump_json(exclude_defaults=True)) == one
