"""A chat model says which way evidence points; a word that says nothing costs no judgement."""

import json
from typing import get_args

import pytest

from deepera_graph import EvidenceReranker, RerankResult, llm_backend
from deepera_graph.chat.parsing import json_schema
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.judging import read_position
from deepera_graph.judges.llm.prompt import JudgementReply
from deepera_graph.schema import LONGEST_POSITION, Direction, read_direction
from deepera_graph.testing import answer_in_json
from deepera_graph.text.questions import count_positions, describe_directions
from support.openai_server import ChatServer

pytestmark = pytest.mark.full

TEXTS = ["Tea lowered it.", "Tea raised it."]
MODES = ("separate", "fused", "grouped")


def served(mode, said, **settings):
    """The result of a server whose verdicts have some more fields, and its requests."""

    def verdict(**more):
        return {"reason": "r", "evidence": [1], "score": 0.9, **said, "summary": "", **more}

    def reply(request):
        if request.system.startswith("You answer"):
            return {"text": "It does [1].", "citations": [1]}
        if not request.system.startswith("You judge"):
            return answer_in_json({}, request.system, request.user)
        if "several passages" in request.system:
            return {"verdicts": [verdict(id=number) for number in (1, 2)]}
        return verdict()

    with ChatServer(reply) as server:
        backend = llm_backend("openai:any", base_url=server.base_url, mode=mode)
        result = EvidenceReranker(backend, **settings).rerank("Does tea lower it?", TEXTS)
        return result, server.requests


@pytest.mark.parametrize("mode", MODES)
def test_a_chat_model_gives_a_direction_in_every_mode(mode):
    result, _ = served(mode, {"direction": "no_difference"}, content="passage")
    assert [one.direction for one in result.kept] == ["no_difference"] * 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("said", "note"),
    [
        ({}, ""),
        ({"direction": None}, ""),
        ({"direction": "none"}, ""),
        ({"direction": ["supports", 1]}, "no direction: ['supports', 1]"),
    ],
    ids=["missing", "null", "none", "list"],
)
def test_a_missing_or_wrong_word_is_none_and_fails_nothing(mode, said, note):
    result, requests = served(mode, said, content="passage")
    assert {(one.status, one.score, one.direction) for one in result.kept} == {
        ("scored", 0.9, None)
    }
    assert {one.reason for one in result.kept} == {"; ".join(filter(None, ("r", note)))}
    assert len(requests) == (2 if mode == "grouped" else 3)  # nothing is asked again


def test_the_schema_asks_for_a_direction_or_a_position_in_one_short_field():
    schema = json_schema(JudgementReply)
    assert [*schema["properties"]] == ["reason", "evidence", "score", "direction"]
    assert schema["required"] == [*schema["properties"]]
    assert schema["properties"]["direction"] == {
        "type": "string", "maxLength": LONGEST_POSITION,
        "description": "What it says to the question: a direction, a position, or none.",
    }  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_every_prompt_has_the_rules_of_direction_and_position(mode):
    _, requests = served(mode, {}, content="passage")
    system = next(one.system for one in requests if one.system.startswith("You judge"))
    for word in (*get_args(Direction), "none"):
        assert json.dumps(word) in system
    assert 'such as "kinesin-3 faster"' in system  # the position, to a question of another kind
    assert 'is "none" below 0.5' in system  # asked only of what may pass
    assert "is not named" in system
    assert "at most 0.7" in system
    assert "equal benefit with more harm" in system
    assert '"Asked for" and "Form" say what an answer is' in system  # the intent is used
    assert mode == "separate" or "(at most 6 words, 40 characters)" in system


@pytest.mark.parametrize("mode", MODES)
def test_positions_are_kept_with_the_passages_and_grouped_in_the_result(mode):
    result, requests = served(mode, {"direction": "Kinesin-3  faster."}, answer=True)
    assert [(one.direction, one.position) for one in result.kept] == [
        (None, "Kinesin-3 faster")
    ] * 2
    assert result.positions == {"Kinesin-3 faster": 2}
    assert "[1] (position: Kinesin-3 faster) " in requests[-1].user
    assert RerankResult.from_json(result.to_json()).positions == result.positions
    assert result.to_documents()[0].metadata["deepera"]["position"] == "Kinesin-3 faster"


@pytest.mark.parametrize("said", ["Supports the claim.", "supports this hypothesis", "support it"])
def test_a_direction_that_names_the_claim_is_no_position(said):
    assert (read_direction(said), *read_position(said)) == ("supports", "", "")


def test_positions_of_the_same_words_are_one_and_the_most_frequent_comes_first():
    said = ["slower", "Faster kinesin-3", "", "kinesin-3 faster", "kinesin-1 faster"]
    counts = count_positions(said)
    assert counts == {"Faster kinesin-3": 2, "slower": 1, "kinesin-1 faster": 1}
    assert next(iter(counts)) == "Faster kinesin-3"
    assert describe_directions({"mixed": 1}, counts).startswith(
        "1 mixed, 2 say Faster kinesin-3, 1 says slower"
    )
    assert len(read_position("word " * 40)[0]) == LONGEST_POSITION
    assert [read_position(one)[0] for one in ("supports", "None", "n/a", 3, None)] == [""] * 5


def test_the_answerer_is_told_the_directions():
    result, requests = served("separate", {"direction": "contradicts"}, answer=True)
    assert result.answer is not None
    assert "[1] (direction: contradicts) " in requests[-1].user
    item = {"text": "t", "summary": "", "quote": "", "title": "T", "section": ""}
    assert show.evidence_block([item]) == "[1] T: t"
