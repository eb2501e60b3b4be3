"""The form of a verdict: short where a passage fails; that of before is read, too."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph.chat.models import request_body
from deepera_graph.chat.parsing import UnusableReplyError, parse_reply
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.prompt import (
    FusedGroupReply,
    FusedMemberReply,
    FusedReply,
    GroupReply,
    MemberReply,
    VerdictReply,
    read_verdicts,
)
from support.moss import MossModel, bed, flat, kind_of, kinds, made, run, summary, verdict
from support.openai_server import ChatServer

pytestmark = pytest.mark.full

BEDS = [bed(number) for number in range(5)]
FOUND = {"evidence": [2], "direction": "supports", "summary": "Moss grew by 10 mm."}
WHOLE = {"reason": "bed 0", "score": 0.9, "finding": FOUND}
IDS = st.integers(1, 9)
WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), max_size=20)
FINDINGS = st.fixed_dictionaries(
    {
        "evidence": st.lists(st.integers(1, 9), max_size=3),
        "direction": st.sampled_from(["supports", "none", "moss faster"]),
        "summary": WORDS,
    }
)
LOW, HIGH = (st.floats(0, 0.5, exclude_max=True), st.floats(0.5, 1))
SHORT = st.fixed_dictionaries({"id": IDS, "score": LOW})
REASONED = st.fixed_dictionaries(
    {"id": IDS, "reason": WORDS, "score": LOW}, optional={"finding": st.none() | FINDINGS}
)
LONG = st.fixed_dictionaries({"id": IDS, "reason": WORDS, "score": HIGH, "finding": FINDINGS})


def properties(kind):
    """The fields of a kind's JSON schema, and which of them a reply must have."""
    schema = request_body("json_schema", kind)["response_format"]["json_schema"]["schema"]
    return schema["properties"], schema["required"]


@settings(max_examples=150, deadline=None)
@given(SHORT | REASONED | LONG)
def test_what_is_written_is_read_again(said):
    one = FusedMemberReply.model_validate(said)
    assert one.score == said["score"]
    assert one.finding == (said.get("finding") and type(one.finding)(**said["finding"]))
    for written in (one.model_dump_json(exclude_unset=True), one.model_dump_json()):
        assert parse_reply(written, FusedMemberReply) == one
        [read] = read_verdicts([{**json.loads(written), "id": 1}], 1, FusedMemberReply, "")
        assert read == one.model_copy(update={"id": 1})


@settings(max_examples=150, deadline=None)
@given(LONG | REASONED.filter(lambda said: said.get("finding")))
def test_a_verdict_in_the_form_of_before_says_the_same(said):
    assert FusedMemberReply.model_validate(flat(said)) == FusedMemberReply.model_validate(said)
    alone = {name: value for name, value in said.items() if name != "id"}
    assert parse_reply(json.dumps(flat(alone)), FusedReply) == FusedReply.model_validate(alone)


@pytest.mark.parametrize(("kind", "fields"), [(VerdictReply, []), (FusedReply, ["summary"])])
def test_alone_a_passage_that_fails_has_no_finding(kind, fields):
    found, required = properties(kind)
    assert list(found) == required == ["reason", "score", "finding"]
    whole, none = found["finding"]["anyOf"]
    assert none == {"type": "null"}
    assert list(whole["properties"]) == whole["required"] == ["evidence", "direction", *fields]
    assert not whole["additionalProperties"]
    assert "$ref" not in json.dumps(found)


@pytest.mark.parametrize(("kind", "fields"), [(GroupReply, []), (FusedGroupReply, ["summary"])])
def test_in_a_group_a_passage_that_fails_has_number_and_score_alone(kind, fields):
    found, _ = properties(kind)
    short, whole = found["verdicts"]["items"]["anyOf"]
    assert list(short["properties"]) == short["required"] == ["id", "score"]
    assert list(whole["properties"]) == whole["required"] == ["id", "reason", "score", "finding"]
    assert not short["additionalProperties"]
    assert not whole["additionalProperties"]
    finding, none = whole["properties"]["finding"]["anyOf"]
    assert (list(finding["properties"]), none["type"]) == (
        ["evidence", "direction", *fields],
        "null",
    )


@pytest.mark.parametrize("mode", ["fused", "grouped"])
@pytest.mark.parametrize(
    ("threshold", "lines"),
    [
        (0.8, "Finding: from 0.5\nSummary: from 0.8\n"),
        (0.3, "Finding: from 0.3\nSummary: from 0.3\n"),
    ],
)
def test_a_finding_is_asked_for_from_the_middle_of_the_scale_or_what_may_be_kept(
    mode, threshold, lines
):
    with ChatServer(MossModel()) as server:
        run(made(server, mode, threshold=threshold), BEDS[:2])
        asked = [one for one in server.requests if kind_of(one) in {"alone", "group"}]
    assert all(lines in one.user for one in asked)
    assert all('the line "Finding" names' in one.system for one in asked)


@pytest.mark.parametrize("mode", ["fused", "grouped"])
@pytest.mark.parametrize("write", [flat, lambda said: said], ids=["before", "now"])
def test_both_forms_give_the_same_result(mode, write):
    model = MossModel(
        lambda said: [write(one) for one in said],
        alone=lambda n: write(verdict(n, with_summary=True)),
    )
    with ChatServer(model) as server:
        result = run(made(server, mode), BEDS)
        assert kinds(server) == ["intent", *(["group"] if mode == "grouped" else ["alone"] * 5)]
    assert [(one.id, one.quote, one.summary, one.direction) for one in result.kept] == [
        (str(n + 1), f"Its moss grew by {n + 10} mm.", summary(n), "supports") for n in (0, 3)
    ]


@pytest.mark.parametrize("said", [None, {}, [], "", "none", "null"], ids=repr)
def test_a_passage_without_a_finding_fails_by_its_score(said):
    one = VerdictReply.model_validate({"reason": "r", "score": 0.3, "finding": said})
    assert one.finding is None


@pytest.mark.parametrize("finding", [{}, {"finding": None}, {"finding": "none"}], ids=repr)
def test_from_the_middle_of_the_scale_on_a_verdict_needs_its_finding(finding):
    said = {"id": 1, "reason": "r", "score": 0.5, **finding}
    with pytest.raises(UnusableReplyError, match=r"finding: .*0\.5"):
        parse_reply(json.dumps(said), VerdictReply)
    [problem] = read_verdicts([said], 1, MemberReply, "")
    assert "finding" in problem
    [problem] = read_verdicts([{"id": 1, "score": 0.9, "finding": FOUND}], 1, MemberReply, "")
    assert "reason" in problem


def test_a_passage_whose_finding_is_left_out_is_asked_for_again_and_not_lost():
    bare = iter([{"reason": "r", "score": 0.9, "finding": None}])
    with ChatServer(MossModel(alone=lambda n: next(bare, None))) as server:
        [one] = run(made(server, "fused"), BEDS[:1]).kept
        assert (one.status, one.summary, kinds(server)) == (
            "repaired", summary(0), ["intent", "alone", "alone"],
        )  # fmt: skip
        assert "finding" in server.requests[-1].messages[-1]["content"]
    short = lambda said: [{"id": one["id"], "score": one["score"]} for one in said]  # noqa: E731
    with ChatServer(MossModel(short)) as server:
        result = run(made(server, "grouped"), BEDS)
        assert kinds(server) == ["intent", "group", "alone", "alone"]
    assert [(one.summary, one.status) for one in result.kept] == [
        (summary(n), "repaired") for n in (0, 3)
    ]


def test_a_passage_that_fails_without_a_reason_is_given_the_meaning_of_its_score():
    with ChatServer(MossModel()) as server:
        result = run(made(server, "grouped"), BEDS)
    assert [one.reason for one in result.passages if not one.kept] == [
        "shares the topic or the terms only"
    ] * 3
    assert show.describe_score(0.0) == "unrelated, or under other conditions"
