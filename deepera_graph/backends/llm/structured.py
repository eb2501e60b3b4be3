"""Structured answers: ask, read, ask once more with what was wrong, or ask in another way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from deepera_graph.backends.llm.answers import Filled
from deepera_graph.backends.llm.methods import NOT_SUPPORTED, Method
from deepera_graph.backends.llm.model import ChatModel
from deepera_graph.backends.llm.parsing import EmptyAnswerError, parse
from deepera_graph.errors import AnswerError, CallError
from deepera_graph.usage import Usage

FilledT = TypeVar("FilledT", bound=Filled)


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
    """Have a model fill in one kind of answer.

    An unusable reply is asked again once, with what was wrong. Where the server turns out not to
    support a method of asking, the next one is tried, and stays: see `Ladder`.

    Raises:
        AnswerError: Both replies were unusable, or the model refused; carries what they cost.
        CallError: The server could not be reached or refused; carries what was spent.
    """
    spent, first_error = Usage(), None
    method: Method | None = model.ladder.method
    while method is not None:
        try:
            filling = await _ask(model, method, messages, kind, config)
        except (CallError, EmptyAnswerError) as error:
            spent += error.usage
            first_error = first_error or error
            method = model.ladder.below(method) if _may_be_the_method(error) else None
        else:
            model.ladder.worked(method)
            return replace(filling, usage=spent + filling.usage)
    assert first_error is not None
    first_error.usage = spent
    raise first_error


async def _ask(
    model: ChatModel,
    method: Method,
    messages: Sequence[BaseMessage],
    kind: type[FilledT],
    config: RunnableConfig | None,
) -> Filling[FilledT]:
    """Ask in one way, twice if the first reply is unusable."""
    first = await model.call(method, messages, kind, config)
    try:
        return Filling(_read(first.text, first.refusal, kind), first.usage, repaired=False)
    except AnswerError as error:
        error.usage = first.usage
        if first.refusal or (isinstance(error, EmptyAnswerError) and model.ladder.below(method)):
            raise
        problem = str(error)
    again = [*messages, AIMessage(first.text or "(nothing)"), HumanMessage(_ask_again(problem))]
    try:
        second = await model.call(method, again, kind, config)
    except CallError as error:
        error.usage = first.usage + error.usage
        raise
    spent = first.usage + second.usage + Usage(reasked_calls=1)
    try:
        return Filling(_read(second.text, second.refusal, kind), spent, repaired=True)
    except AnswerError as error:
        raise AnswerError(f"{error} (asked twice)", usage=spent) from error


def _read(text: str, refusal: str, kind: type[FilledT]) -> FilledT:
    if refusal:
        raise AnswerError(f"the model refused: {refusal:.200}")
    return parse(text, kind)


def _may_be_the_method(error: CallError | EmptyAnswerError) -> bool:
    return isinstance(error, EmptyAnswerError) or error.status in NOT_SUPPORTED


def _ask_again(problem: str) -> str:
    return (
        f"That reply cannot be used: {problem}. Give the answer to the same task again, as one "
        "JSON object with exactly the fields asked for, and nothing else."
    )
