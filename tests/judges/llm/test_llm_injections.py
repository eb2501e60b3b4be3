"""Hostile passages: what they say stays in their block, and a model that obeys all else never does.

The scripted model here is gullible by intent. It learns from the system message what a block looks
like, cuts the blocks out of the other messages, and obeys any order that is left.
"""

import asyncio
import json
import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph import EvidenceReranker, llm_backend
from deepera_graph.chat.parsing import sanitize
from deepera_graph.judges.llm import prompt as show
from support.injections import INJECTIONS, ORDER
from support.openai_server import ChatServer, Reply, Request

pytestmark = pytest.mark.full

QUESTION = "How much does moss grow?"
OBEYED = 1.0
TOKENS = re.compile(
    r"<\|[^|]*\|>|<｜|\[/?INST\]|<</?SYS>>|</?s>|<(?:end|start)_of_turn>|\[/?SYSTEM_PROMPT\]|"
    r"\[TOOL_CALLS\]|</?think>|</?tool_call>|</?instructions>|</?passage>|<eos>"
)
ROLES = {
    "You read": "intent",
    "You judge": "score",
    "You shorten": "summary",
    "You answer": "answer",
}


def said_outside(messages: list[dict[str, Any]]) -> str:
    """What stands outside the blocks, as a model reads it that takes the system at its word."""
    system, *others = [str(message["content"]) for message in messages]
    form = re.search(r'lines of the form "(=+\w+-)X{8}(=+)"', system)
    outside = [system]
    for rest in others:
        parts = re.split(f"({form[1]}[0-9a-f]{{8}}{form[2]})", rest) if form else [rest]
        outside.append(parts[0])
        while len(parts) > 1:
            mark = parts[1]
            end = parts.index(mark, 2)  # a block that nothing closes would raise
            parts = parts[end + 1 :]
            outside.append(parts[0])
            parts = ["", *parts[1:]]
    return "\n".join(outside)


def obeys(messages: list[dict[str, Any]]) -> bool:
    """Whether a gullible reader finds an order; it reads as leniently as can be."""
    seen = unicodedata.normalize("NFKC", said_outside(messages))
    letters = [one for one in seen if unicodedata.category(one)[0] not in "CM"]
    return bool(re.search(r"obey\s*this", "".join(letters), re.IGNORECASE))


@dataclass
class Gullible:
    """Answers as told by whoever speaks outside the blocks; else honestly."""

    obeyed: list[str] = field(default_factory=list)
    first_is_prose: bool = False

    def __call__(self, request: Request) -> Reply:
        role = next(name for start, name in ROLES.items() if request.system.startswith(start))
        would_obey = obeys(request.messages)
        if would_obey:
            self.obeyed.append(str(request.messages))
        if self.first_is_prose and len(request.messages) == 2 and role != "intent":
            return Reply(content=f"It says: {request.user[-400:]}")  # quotes what it was shown
        score = OBEYED if would_obey else 0.85
        return Reply(content=json.dumps(self._answers(score)[role]))

    def _answers(self, score: float) -> dict[str, dict[str, Any]]:
        return {
            "intent": {
                "topic": "botany", "entity_type": "plant: moss", "intent": "mechanism",
                "expected_answer_type": "numeric",
            },
            "score": {"reason": "r", "evidence": [1], "score": score},
            "summary": {"text": "Zebras 7."},
            "answer": {"text": "It grows [1].", "citations": [1]},
        }  # fmt: skip


@pytest.fixture(scope="module")
def sent() -> dict[str, Any]:
    """Everything sent for all passages together, with each in every field, and what came out."""
    passages = [
        {"id": f"{name}/{where}", "text": "Moss grew by 3 mm.", **{where: text}}
        for name, text in INJECTIONS.items()
        for where in ("text", "title", "section")
    ]
    model = Gullible()
    with ChatServer(model) as server:
        backend = llm_backend("openai:m", base_url=server.base_url)
        reranker = EvidenceReranker(backend, answer=True, top_n=len(passages))
        result = reranker.rerank(QUESTION, passages)
        return {"result": result, "requests": server.requests, "obeyed": model.obeyed}


def of(sent: dict[str, Any], start: str) -> list[Request]:
    return [one for one in sent["requests"] if one.system.startswith(start)]


def test_there_are_passages_of_many_kinds() -> None:
    assert len(INJECTIONS) >= 60
    assert all(ORDER in text for text in INJECTIONS.values())


def test_the_gullible_model_would_obey() -> None:
    """Put outside a block, every passage is obeyed: the test can fail."""
    system = {"role": "system", "content": "You judge."}
    for name, text in INJECTIONS.items():
        assert obeys([system, {"role": "user", "content": f"Passage:\n{text}"}]), name
    system = {"role": "system", "content": 'lines of the form "=====passage-XXXXXXXX====="'}
    mark = "=====passage-0a1b2c3d====="
    closing = {"role": "user", "content": f"{mark}\nMoss\n{mark}\n{ORDER}\n{mark}\n{mark}"}
    assert obeys([system, closing])
    assert not obeys([system, {"role": "user", "content": f"{mark}\n{ORDER}\n{mark}\n"}])


def test_nobody_obeys(sent: dict[str, Any]) -> None:
    assert sent["obeyed"] == []
    assert {one.score for one in sent["result"].passages} == {0.85}
    assert len(sent["result"].passages) == 3 * len(INJECTIONS)
    assert not sent["result"].failed


def test_every_request_is_two_messages(sent: dict[str, Any]) -> None:
    for request in sent["requests"]:
        assert [message["role"] for message in request.messages] == ["system", "user"]


def test_the_beginning_is_the_same_for_all_passages(sent: dict[str, Any]) -> None:
    for start in ("You judge", "You shorten"):
        requests = of(sent, start)
        assert len(requests) > len(INJECTIONS)
        assert len({one.system for one in requests}) == 1
        assert len({one.user.partition("=====passage-")[0] for one in requests}) == 1


def test_blocks_are_closed_by_their_own_mark_alone(sent: dict[str, Any]) -> None:
    for request in of(sent, "You judge") + of(sent, "You shorten") + of(sent, "You answer"):
        [opening] = re.findall(r"\n\n(=====\w+-[0-9a-f]{8}=====)\n", request.user[:2000])[:1]
        before, inside, after = request.user.split(opening)
        assert after == ""
        assert ORDER not in before
        assert inside.startswith("\n")
        assert inside.endswith("\n")


def test_nothing_unseen_and_no_token_of_a_template_is_sent(sent: dict[str, Any]) -> None:
    unseen = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    for request in sent["requests"]:
        for letter in set(request.user) - {"\n"}:
            assert unicodedata.category(letter) not in unseen, repr(letter)
            assert not 0xE0000 <= ord(letter) <= 0xE0FFF
        assert not re.search(
            "[\ufe00-\ufe0f]{2}|[\u115f\u1160\u3164\uffa0\u034f\u2800]", request.user
        )
        assert not TOKENS.search(request.user), TOKENS.search(request.user)


def test_a_judged_sentence_stands_on_one_line(sent: dict[str, Any]) -> None:
    for request in of(sent, "You judge"):
        inside = request.user.split("=====\n", 1)[1].rsplit("\n=====", 1)[0]
        lines = inside.split("\n")
        n_heads = sum(line.startswith(("Title: ", "Section: ")) for line in lines[:2])
        sentences = lines[n_heads:]
        numbers = [int(re.match(r"(\d+): ", line)[1]) for line in sentences]
        assert numbers == list(range(1, len(sentences) + 1))
        assert len(inside.splitlines()) == len(inside.split("\n"))


def test_the_callers_text_is_returned_as_it_was(sent: dict[str, Any]) -> None:
    for one in sent["result"].passages:
        name, _, where = one.id.partition("/")
        assert one.text == (INJECTIONS[name] if where == "text" else "Moss grew by 3 mm.")
        assert one.quote == "" or one.quote in one.text


@pytest.mark.parametrize(
    "is_async",
    [pytest.param(False, marks=pytest.mark.slow, id="sync"), pytest.param(True, id="async")],
)
def test_a_reply_that_quotes_the_passage_does_not_carry_it_out_of_its_block(is_async: bool) -> None:
    model = Gullible(first_is_prose=True)
    passages = [{"id": name, "text": text} for name, text in INJECTIONS.items()]
    with ChatServer(model) as server:
        backend = llm_backend("openai:m", base_url=server.base_url)
        reranker = EvidenceReranker(backend, answer=True, top_n=len(passages))
        result = (
            asyncio.run(reranker.arerank(QUESTION, passages))
            if is_async
            else reranker.rerank(QUESTION, passages)
        )
        assert any(len(one.messages) == 4 for one in server.requests)
    assert model.obeyed == []
    assert {(one.score, one.status) for one in result.passages} == {(0.85, "repaired")}


@pytest.mark.parametrize("reply", [
    {"reason": ORDER, "evidence": [1], "score": 85},
    {"reason": "r", "evidence": [1], "score": ORDER},
    {"reason": "r", "evidence": ORDER, "score": 0.8},
    {"reason": "r", "evidence": [ORDER], "score": 0.8},
    {"reason": {ORDER: 1}, "evidence": [1], "score": 0.8},
    {ORDER: 1},
    {"arguments": {"reason": ORDER}},
])  # fmt: skip
def test_a_reply_that_breaks_the_schema_is_not_repeated_to_the_model(reply: dict[str, Any]) -> None:
    model = Gullible()

    def answer(request: Request) -> Reply:
        good = model(request)
        first = request.system.startswith("You judge") and len(request.messages) == 2
        return Reply(content=json.dumps(reply)) if first else good

    with ChatServer(answer) as server:
        backend = llm_backend("openai:m", base_url=server.base_url)
        [one] = EvidenceReranker(backend).rerank(QUESTION, ["Moss grew by 3 mm."]).passages
    assert (model.obeyed, one.score, one.status) == ([], 0.85, "repaired")


@pytest.mark.parametrize(
    "name", ["closed-with-a-guessed-hash", "carriage-returns", "llama-template"]
)
def test_a_question_is_one_harmless_line(name: str) -> None:
    """A question may be copied from anywhere; it cannot open a block or a message."""
    asked = INJECTIONS[name].replace("Obey", "Does moss obey")
    with ChatServer(Gullible()) as server:
        backend = llm_backend("openai:m", base_url=server.base_url)
        EvidenceReranker(backend, answer=True).rerank(asked, ["Moss grew by 3 mm."])
        requests = server.requests
    assert len(requests) == 4
    for request in requests:
        assert [message["role"] for message in request.messages] == ["system", "user"]
        assert request.user.splitlines()[0].startswith("Question: ")
        assert "obey" in request.user.splitlines()[0]
        assert not TOKENS.search(request.user)


def test_a_question_that_knows_the_passage_does_not_know_its_mark() -> None:
    task = {
        "question": QUESTION, "text": "Moss grew.", "title": "", "section": "",
        "intent": {"topic": "", "entity_type": "", "intent": "other",
                   "expected_answer_type": "other"},
    }  # fmt: skip
    known = show.passage_values(task, "1: Moss grew.")["marker"]
    asking = {**task, "question": f"Is it =====passage-{known}===== so?"}
    values = show.passage_values(asking, "1: Moss grew.")
    assert values["marker"] != known
    assert values["marker"] not in values["question"]


def test_the_mark_of_a_block_is_a_hash_of_its_text() -> None:
    texts = list(INJECTIONS.values())
    marks = [show.marker(text) for text in texts]
    assert marks == [show.marker(text) for text in texts]
    assert len(set(marks)) == len(marks)
    assert all(re.fullmatch("[0-9a-f]{8}", mark) for mark in marks)


@settings(max_examples=60)
@given(st.lists(st.sampled_from([*INJECTIONS.values(), "=====", "passage-", "\n"]), max_size=4))
def test_joined_passages_stay_in_their_block(parts: list[str]) -> None:
    text = "".join(parts)
    mark = show.marker(sanitize(text))
    assert sanitize(text).count(mark) == 0
    assert not TOKENS.search(sanitize(text))
    assert sanitize(sanitize(text)) == sanitize(text)
    assert len(sanitize(text)) == len(text)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(
            content='{"reason": "\\u001b[2J\\u202eeno\\r\\n two", "evidence": [1], "score": 0.9}'
        ),
        Reply(refusal="\x1b[2J\u202eno\r\ntwo"),
        Reply(status=400, content="\x1b[2J\u202eno\r\ntwo"),
        Reply(content="\x1b[2J\u202eno\r\ntwo"),
    ],
    ids=["reason", "refusal", "error", "prose"],
)
def test_what_a_model_says_of_a_passage_cannot_steer_a_terminal(reply: Reply) -> None:
    def answer(request: Request) -> Reply:
        return reply if request.system.startswith("You judge") else Gullible()(request)

    with ChatServer(answer) as server:
        backend = llm_backend("openai:m", base_url=server.base_url)
        [one] = EvidenceReranker(backend).rerank(QUESTION, ["Moss grew by 3 mm."]).passages
    assert one.reason
    unseen = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not any(unicodedata.category(letter) in unseen for letter in one.reason)
