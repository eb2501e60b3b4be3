"""Structured answers: ask, parse, and ask once more with what was wrong."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from pydantic import ValidationError

from deepera_graph.backends.llm.answers import Filled
from deepera_graph.backends.llm.model import ChatModel
from deepera_graph.errors import AnswerError, CallError
from deepera_graph.usage import Usage

FilledT = TypeVar("FilledT", bound=Filled)
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Filling(Generic[FilledT]):
    """A usable answer, what it cost, and whether it took a second question."""

    answer: FilledT
    usage: Usage
    repaired: bool


async def fill(
    model: ChatModel,
    messages: Sequence[BaseMessage],
    kind: type[FilledT],
    config: RunnableConfig | None = None,
) -> Filling[FilledT]:
    """Have a model fill in one kind of answer; an unusable one is asked again, once.

    Raises:
        AnswerError: Both replies were unusable; carries what they cost.
        CallError: The server could not be reached or refused; carries what was spent before.
    """
    first = await model.call(messages, kind, config)
    try:
        return Filling(parse(first.text, kind), first.usage, repaired=False)
    except AnswerError as error:
        problem = str(error)
    again = [*messages, AIMessage(first.text), HumanMessage(_ask_again(problem))]
    try:
        second = await model.call(again, kind, config)
    except CallError as error:
        error.usage = first.usage + error.usage
        raise
    spent = first.usage + second.usage
    try:
        return Filling(parse(second.text, kind), spent, repaired=True)
    except AnswerError as error:
        raise AnswerError(f"{error} (asked twice)", usage=spent) from error


def parse(text: str, kind: type[FilledT]) -> FilledT:
    """Read one JSON object out of a reply: thinking, fences and prose around it are skipped.

    Values are taken as they are: a number out of range or on another scale is an error, never
    rescaled.

    Raises:
        AnswerError: There is no such object, or it breaks the schema.
    """
    said = _THINKING.sub("", text)
    if not said.strip():
        raise AnswerError("the reply is empty")
    found = _objects(said)
    if not found:
        raise AnswerError(f"the reply holds no JSON object: {said.strip()[:_SHOWN]!r}")
    try:
        return kind.model_validate(found[-1])
    except ValidationError as error:
        raise AnswerError(f"the reply breaks the schema: {_problems(error)}") from error


def _objects(text: str) -> list[dict[str, object]]:
    """All top-level JSON objects of a text, in order."""
    decoder = json.JSONDecoder()
    found: list[dict[str, object]] = []
    place = text.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except json.JSONDecodeError:
            end = place + 1
        else:
            found.append(value)
        place = text.find("{", end)
    return found


def _problems(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, one['loc'])) or 'answer'}: {one['msg']}, got {one['input']!r:.60}"
        for one in error.errors()
    )


def _ask_again(problem: str) -> str:
    return (
        f"That reply cannot be used: {problem}. Give the answer to the same task again, as one "
        "JSON object with exactly the fields asked for, and nothing else."
    )
