"""Structured replies: ask, read, ask once more with what was wrong, or try another output mode."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from deepera_graph.chat.client import UNSUPPORTED, ChatModel, OutputMode
from deepera_graph.chat.parsing import (
    EmptyAnswerError,
    ReplyT,
    UnusableReplyError,
    parse_reply,
    sanitize_line,
)
from deepera_graph.chat.retry import RawReply
from deepera_graph.errors import AnswerError, CallError, RoleError
from deepera_graph.usage import Usage

_NOT_SHOWN = "(a reply that could not be used)"  # its words may be those of a hostile passage


class RefusedError(AnswerError):
    """The model, or a filter of its provider, refused to answer."""


class CutOffError(UnusableReplyError):
    """The reply ended at the limit of its tokens."""


@dataclass(frozen=True, slots=True)
class UsableReply(Generic[ReplyT]):
    """A usable answer, what it cost, and what was wrong with the first reply, if it took two."""

    answer: ReplyT
    usage: Usage
    problem: str = ""

    @property
    def repaired(self) -> bool:
        """Whether it took a second question."""
        return bool(self.problem)


async def request_reply(
    model: ChatModel,
    messages: Sequence[BaseMessage],
    kind: type[ReplyT],
    config: RunnableConfig | None = None,
) -> UsableReply[ReplyT]:
    """Have a model give one kind of answer.

    An unusable reply is asked again once, with what was wrong. Where the server turns out not to
    support an output mode, the next one is tried, and stays: see `OutputModes`. An `AnswerError`
    (cause: a `CutOffError`, if the last reply was cut off), `CallError` or `BudgetError` carries
    what was spent.
    """
    modes = model.output_modes
    spent, mode, n_broken = Usage(), modes.current, 0
    first_error: RoleError | None = None
    while True:
        try:
            usable = await _ask(model, mode, messages, kind, config, n_broken=n_broken)
        except RoleError as error:
            spent += error.usage
            may_be_the_mode = (
                error.status in UNSUPPORTED
                if isinstance(error, CallError)
                else isinstance(error, EmptyAnswerError)
            )
            first_error = (first_error if may_be_the_mode else None) or error
            broken = isinstance(error, CallError) and error.status == 500
            n_broken += error.usage.failed_calls if broken else 0
            fallback = modes.fallback_from(mode, broken=broken) if may_be_the_mode else None
            if fallback is None:
                if isinstance(error, AnswerError) and not may_be_the_mode:
                    modes.note_reply(mode)
                first_error.usage = spent
                raise first_error from first_error.__cause__
            mode = fallback
        else:
            modes.note_success(mode)
            return replace(usable, usage=spent + usable.usage)


async def _ask(
    model: ChatModel,
    mode: OutputMode,
    messages: Sequence[BaseMessage],
    kind: type[ReplyT],
    config: RunnableConfig | None,
    *,
    n_broken: int,
) -> UsableReply[ReplyT]:
    """Ask in one mode, twice if the first reply is unusable."""
    first = await model.call(mode, messages, kind, config, n_broken)
    try:
        return UsableReply(_read(first, kind, messages), first.usage)
    except RefusedError as error:
        error.usage = first.usage
        raise
    except UnusableReplyError as error:
        error.usage = first.usage
        if isinstance(error, EmptyAnswerError) and model.output_modes.fallback_from(mode):
            raise
        problem = error.repair_note
    again = HumanMessage(
        f"That reply cannot be used: {problem}. Give the answer to the same task again, as one "
        "JSON object with exactly the fields asked for, and nothing else."
    )
    try:
        second = await model.call(mode, [*messages, AIMessage(_NOT_SHOWN), again], kind, config)
    except RoleError as error:
        error.usage = first.usage + error.usage
        raise
    spent = first.usage + second.usage + Usage(reasked_calls=1)
    try:
        return UsableReply(_read(second, kind, messages), spent, problem)
    except AnswerError as error:
        raise AnswerError(f"{error} (asked twice)", usage=spent) from error


def _read(reply: RawReply, kind: type[ReplyT], messages: Sequence[BaseMessage]) -> ReplyT:
    if reply.refusal:
        raise RefusedError(f"the model refused: {sanitize_line(reply.refusal):.200}")
    try:
        return parse_reply(reply.text, kind, "\n".join(message.text for message in messages))
    except UnusableReplyError as error:
        if not reply.cut_off:
            raise
        limit = "the reply was cut off at its limit of tokens"
        raise CutOffError(f"{limit}: {error}", repair_note=limit) from error
