"""Structured answers: ask, read, ask once more with what was wrong, or ask in another way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from deepera_graph.chat.client import NOT_SUPPORTED, ChatModel, Method
from deepera_graph.chat.parsing import EmptyAnswerError, UnusableReplyError, parse
from deepera_graph.chat.retry import Reply
from deepera_graph.chat.sanitize import one_line
from deepera_graph.chat.schema import Filled
from deepera_graph.errors import AnswerError, CallError, RoleError
from deepera_graph.usage import Usage

FilledT = TypeVar("FilledT", bound=Filled)
_NOT_SHOWN = "(a reply that could not be used)"  # its words may be those of a hostile passage


class RefusedError(AnswerError):
    """The model, or a filter of its provider, refused to answer."""


class CutOffError(UnusableReplyError):
    """The reply ended at the limit of its tokens."""


@dataclass(frozen=True, slots=True)
class Filling(Generic[FilledT]):
    """A usable answer, what it cost, and what was wrong with the first reply, if it took two."""

    answer: FilledT
    usage: Usage
    problem: str = ""

    @property
    def repaired(self) -> bool:
        """Whether it took a second question."""
        return bool(self.problem)


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
        AnswerError: Both replies were unusable, or the model refused; carries what they cost. If
            the last was cut off, a `CutOffError` is its cause.
        CallError: The server could not be reached or refused; carries what was spent.
        BudgetError: The budget allows no further call; carries what was spent.
    """
    spent, method = Usage(), model.ladder.method
    first_error: RoleError | None = None
    while True:
        try:
            filling = await _ask(model, method, messages, kind, config)
        except RoleError as error:
            spent += error.usage
            is_doubted = _may_be_the_method(error)
            first_error = (first_error if is_doubted else None) or error
            below = model.ladder.below(method) if is_doubted else None
            if below is None:
                if isinstance(error, AnswerError) and not is_doubted:
                    model.ladder.reached(method)
                first_error.usage = spent
                raise first_error from first_error.__cause__
            method = below
        else:
            model.ladder.worked(method)
            return replace(filling, usage=spent + filling.usage)


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
        return Filling(_read(first, kind, messages), first.usage)
    except RefusedError as error:
        error.usage = first.usage
        raise
    except UnusableReplyError as error:
        error.usage = first.usage
        if isinstance(error, EmptyAnswerError) and model.ladder.below(method):
            raise
        problem = error.told
    again = [*messages, AIMessage(_NOT_SHOWN), HumanMessage(_ask_again(problem))]
    try:
        second = await model.call(method, again, kind, config)
    except RoleError as error:
        error.usage = first.usage + error.usage
        raise
    spent = first.usage + second.usage + Usage(reasked_calls=1)
    try:
        return Filling(_read(second, kind, messages), spent, problem)
    except AnswerError as error:
        raise AnswerError(f"{error} (asked twice)", usage=spent) from error


def _read(reply: Reply, kind: type[FilledT], messages: Sequence[BaseMessage]) -> FilledT:
    if reply.refusal:
        raise RefusedError(f"the model refused: {one_line(reply.refusal):.200}")
    try:
        return parse(reply.text, kind, "\n".join(message.text for message in messages))
    except UnusableReplyError as error:
        if not reply.cut_off:
            raise
        limit = "the reply was cut off at its limit of tokens"
        raise CutOffError(f"{limit}: {error}", told=limit) from error


def _may_be_the_method(error: RoleError) -> bool:
    if isinstance(error, CallError):
        return error.status in NOT_SUPPORTED
    return isinstance(error, EmptyAnswerError)


def _ask_again(problem: str) -> str:
    return (
        f"That reply cannot be used: {problem}. Give the answer to the same task again, as one "
        "JSON object with exactly the fields asked for, and nothing else."
    )
