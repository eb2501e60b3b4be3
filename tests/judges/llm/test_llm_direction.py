"""A chat model says which way evidence points; a word that says nothing costs no judgement."""

import json

import pytest

from deepera_graph import EvidenceReranker, llm_backend
from deepera_graph.chat.parsing import JudgementReply, json_schema
from deepera_graph.judges.llm import prompt as show
from support.openai_server import ChatServer
from support.scripted import answer_in_json

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
        ({"direction": "it depends"}, "no direction: 'it depends'"),
        ({"direction": ["supports", 1]}, "no direction: ['supports', 1]"),
    ],
    ids=["missing", "null", "none", "other", "list"],
)
def test_a_missing_or_wrong_word_is_none_and_fails_nothing(mode, said, note):
    result, requests = served(mode, said, content="passage")
    assert {(one.status, one.score, one.direction) for one in result.kept} == {
        ("scored", 0.9, None)
    }
    assert {one.reason for one in result.kept} == {"; ".join(filter(None, ("r", note)))}
    assert len(requests) == (2 if mode == "grouped" else 3)  # nothing is asked again


def test_the_schema_asks_for_one_of_the_words():
    schema = json_schema(JudgementReply)
    assert [*schema["properties"]] == ["reason", "evidence", "score", "direction"]
    assert schema["required"] == [*schema["properties"]]
    assert schema["properties"]["direction"]["enum"] == [
        "supports", "contradicts", "no_difference", "mixed", "unclear", "none",
    ]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_every_prompt_names_the_words_that_its_schema_takes(mode):
    _, requests = served(mode, {}, content="passage")
    system = next(one.system for one in requests if one.system.startswith("You judge"))
    for word in json_schema(JudgementReply)["properties"]["direction"]["enum"]:
        assert json.dumps(word) in system


def test_the_answerer_is_told_the_directions():
    result, requests = served("separate", {"direction": "contradicts"}, answer=True)
    assert result.answer is not None
    assert "[1] (direction: contradicts) " in requests[-1].user
    item = {"text": "t", "summary": "", "quote": "", "title": "T", "section": ""}
    assert show.evidence_block([item]) == "[1] T: t"
