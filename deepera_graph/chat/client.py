"""A chat model that gives answers of one kind: asked, read, asked once more with what was wrong.

Where its server does not know an output mode, another one is tried.
"""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor

from deepera_graph.chat.errors import reveals_secret, secrets_of, to_call_error
from deepera_graph.chat.models import (
    OPENAI_MODES,
    REFUSES_BOUNDS,
    OutputMode,
    find_address,
    find_name,
    has_fixed_temperature,
    has_only_sync_client,
    request_body,
    speaks_openai,
    with_own_client,
)
from deepera_graph.chat.parsing import (
    EmptyAnswerError,
    ReplyModel,
    ReplyT,
    UnusableReplyError,
    json_schema,
    parse_reply,
    sanitize_line,
)
from deepera_graph.chat.sending import (
    CircuitBreaker,
    RateLimits,
    Retrier,
    RetryPolicy,
    shared_limiter,
)
from deepera_graph.errors import AnswerError, CallError, RoleError
from deepera_graph.settings.budget import carried
from deepera_graph.usage import CHARS_PER_TOKEN, Usage

UNSUPPORTED = frozenset({400, 404, 422, 500, 501})  # how servers refuse a mode
_logger = logging.getLogger("deepera_graph.chat")
_uncounted: set[str] = set()  # models whose servers were said not to count tokens
_FILTERED = frozenset({"content_filter", "refusal", "safety"})  # OpenAI, Anthropic, Google
_CUT_OFF = frozenset({"length", "max_tokens"})
_SLOW = "a slow model needs a longer --call-timeout, in Python retry={'timeout': SECONDS}"
_IN_WORDS = "\n\nAnswer with one JSON object and nothing else. It must follow this JSON schema:\n"


class OutputModes:
    """The output mode in use: falls back when the first uses of a mode fail, and never returns.

    A mode that has given one usable answer is proven: what fails later is not its fault.
    """

    def __init__(self, modes: Sequence[OutputMode]) -> None:
        self.all = tuple(modes)  # those that may be tried, in this order
        self.current = self.all[0]  # the one to use now
        self._proven: set[OutputMode] = set()

    def fallback_from(self, mode: OutputMode, *, broken: bool = False) -> OutputMode | None:
        """Return what to try instead of an unproven mode, if anything is left."""
        # Where the server has *broken* down over two modes, that is plain text, which all know.
        place = self.all.index(mode) + 1
        if mode in self._proven or place == len(self.all):
            return None
        return self.all[-1 if broken and mode != self.current else place]

    def attempts_at_500(self, mode: OutputMode) -> int | None:
        """Return how often to ask when that fails with 500, by which some servers refuse a mode."""
        if mode in self._proven:
            return None
        return 2 if mode == self.current else 1

    def note_reply(self, mode: OutputMode) -> None:
        """Note words in reply, even unusable ones: the modes before gave none and are given up."""
        if self.current not in self._proven:
            self.current = max(self.current, mode, key=self.all.index)

    def note_success(self, mode: OutputMode) -> None:
        """Note a usable answer; the modes before an only now proven one are given up."""
        self.note_reply(mode)
        self._proven.add(mode)


class ChatModel:
    """Calls one chat model from the loop of the model calls.

    A model of OpenAI's kind gets a client of its own, unless the caller gave it one; its own
    retries are switched off, as ours count. The limits hold for all users of the same model.
    """

    def __init__(self, model: BaseChatModel, retry: RetryPolicy, limits: RateLimits) -> None:
        self.name = find_name(model)
        self._identity = f"{self.name} {find_address(model)}"
        self._limits = limits
        self._is_openai = speaks_openai(model)
        self._takes_bounds = not REFUSES_BOUNDS.search(find_address(model))
        self._sync_only = has_only_sync_client(model)
        self._secrets = secrets_of(model)
        self._timeout, self._retrier, self._breaker = (
            retry.timeout, Retrier(retry), CircuitBreaker(),
        )  # fmt: skip
        self.langchain = with_own_client(model)
        binds_tools = type(model).bind_tools is not BaseChatModel.bind_tools
        others: tuple[OutputMode, ...] = ("tools", "text") if binds_tools else ("text",)
        self.output_modes = OutputModes(OPENAI_MODES if self._is_openai else others)

    def with_temperature(self, temperature: float) -> Self:
        """Return the same model at another temperature; as it is, if it has none to set."""
        # Both share their limits, and what is known of the server.
        takes_one = "temperature" in type(self.langchain).model_fields
        if not takes_one or has_fixed_temperature(self.name):
            return self
        twin = copy(self)
        twin.langchain = self.langchain.model_copy(update={"temperature": temperature})
        return twin

    async def call(
        self,
        mode: OutputMode,
        messages: Sequence[BaseMessage],
        kind: type[ReplyModel],
        config: RunnableConfig | None,
        n_broken: int = 0,
    ) -> tuple[AIMessage, Usage]:
        """Ask once, in one mode, and return what was said and spent; what passes is tried again."""
        # *n_broken* calls for this reply have failed with 500 in other modes.
        self._breaker.check()
        shown = list(messages)
        if mode not in {"json_schema", "tools"}:
            in_words = f"{shown[0].content}{_IN_WORDS}{json.dumps(json_schema(kind))}"
            shown[0] = SystemMessage(in_words)
        tab, limiter = carried(config).tab, shared_limiter(self._identity, self._limits)
        n_characters = sum(len(str(message.content)) for message in shown)
        n_estimated = limiter.estimate_tokens(n_characters)
        try:
            message, used = await self._retrier.send(
                lambda: self._send(mode, shown, kind, config, n_characters),
                lambda: limiter.slot(n_estimated, tab),
                tab,
                attempts_at_500=self.output_modes.attempts_at_500(mode),
                n_broken=n_broken,
            )
        except CallError as error:
            self._breaker.note_given_up(error)
            raise
        limiter.settle(n_characters, n_estimated, used.input_tokens, used.output_tokens)
        return message, used

    async def _send(
        self,
        mode: OutputMode,
        messages: list[BaseMessage],
        kind: type[ReplyModel],
        config: RunnableConfig | None,
        n_characters: int,
    ) -> tuple[AIMessage, Usage]:
        """Send one call and wait as long as it may take; it is charged, however it ends."""
        # When the time of the run is up before that, the call is abandoned.
        tab = carried(config).tab
        usage, left = Usage(failed_calls=1), tab.meter.seconds_left
        try:
            async with asyncio.timeout(self._timeout if left is None else min(left, self._timeout)):
                message = await self._invoke(mode, messages, kind, config)
            usage = self._count(message, n_characters)
            self._breaker.note_answer()
        except TimeoutError as error:
            if left is not None and left <= self._timeout:
                raise tab.meter.abandoned(usage) from error
            late = f"no answer within {self._timeout:g} s; {_SLOW}"
            raise CallError(late, transport=True, usage=usage) from error
        except Exception as error:  # providers raise types of their own
            failed = to_call_error(error, self._secrets)
            self._breaker.note_failure(failed)
            if reveals_secret(error, self._secrets):
                raise failed from None
            raise failed from error
        finally:
            tab.end(usage)
        return message, usage

    def _count(self, message: AIMessage, n_characters: int) -> Usage:
        """Return the tokens of a call; say once of a server that it does not count them."""
        # They are estimated then. Every prompt has a token, and so has every reply that says
        # something.
        counted: Mapping[str, Any] = message.usage_metadata or {}
        said = f"{message.text}{''.join(json.dumps(one['args']) for one in message.tool_calls)}"
        tokens, lengths = [], (n_characters, len(said))
        for name, length in zip(("input_tokens", "output_tokens"), lengths, strict=True):
            n = counted.get(name)
            is_counted = isinstance(n, int) and (n > 0 or (n == 0 and not length))
            tokens.append(n if is_counted else None)
        if None in tokens and self._identity not in _uncounted:
            _uncounted.add(self._identity)
            _logger.warning(
                "the server of %s does not count tokens: they, and limits and costs by them, are "
                "estimated at %d characters a token",
                self.name,
                CHARS_PER_TOKEN,
            )
        estimated = (-(-length // CHARS_PER_TOKEN) for length in lengths)
        return Usage(1, *(b if a is None else a for a, b in zip(tokens, estimated, strict=True)))

    async def _invoke(
        self,
        mode: OutputMode,
        messages: list[BaseMessage],
        kind: type[ReplyModel],
        config: RunnableConfig | None,
    ) -> AIMessage:
        model = self.langchain
        if self._is_openai:
            body = {
                **(getattr(model, "extra_body", None) or {}),
                **request_body(mode, kind, bounded=self._takes_bounds),
            }
            options: dict[str, Any] = {"extra_body": body} if body else {}
            if self._sync_only:
                return await run_in_executor(None, model.invoke, messages, config, **options)
            return await model.ainvoke(messages, config, **options)
        if mode == "tools":
            tool = {"title": kind.__name__, "description": kind.__doc__, **json_schema(kind)}
            bound = model.bind_tools([tool], tool_choice=kind.__name__)
            return await bound.ainvoke(messages, config)
        return await model.ainvoke(messages, config)


_NOT_SHOWN = "(a reply that could not be used)"  # its words may be those of a hostile passage


class RefusedError(AnswerError):
    """The model, or a filter of its provider, refused to answer."""


class CutOffError(UnusableReplyError):
    """The reply ended at the limit of its tokens."""


async def request_reply(
    model: ChatModel,
    messages: Sequence[BaseMessage],
    kind: type[ReplyT],
    config: RunnableConfig | None = None,
) -> tuple[ReplyT, dict[str, Any]]:
    """Have a model give one kind of answer, and note what every `RoleAnswer` says beside it."""
    # An unusable reply is asked again once, with what was wrong. Where the server turns out not to
    # support an output mode, the next one is tried, and stays: see `OutputModes`. An `AnswerError`
    # (cause: a `CutOffError`, if the last reply was cut off), `CallError` or `BudgetError` carries
    # what was spent.
    modes = model.output_modes
    spent, mode, n_broken = Usage(), modes.current, 0
    first_error: RoleError | None = None
    while True:
        try:
            reply, used, problem = await _ask(
                model, mode, messages, kind, config, n_broken=n_broken
            )
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
            return reply, {"usage": spent + used, "repaired": bool(problem), "problem": problem}


async def _ask(
    model: ChatModel,
    mode: OutputMode,
    messages: Sequence[BaseMessage],
    kind: type[ReplyT],
    config: RunnableConfig | None,
    *,
    n_broken: int,
) -> tuple[ReplyT, Usage, str]:
    """Ask in one mode, twice if the first reply is unusable; what was wrong with it comes last."""
    first, used = await model.call(mode, messages, kind, config, n_broken)
    try:
        return read_answer(first, mode, kind, messages), used, ""
    except RefusedError as error:
        error.usage = used
        raise
    except UnusableReplyError as error:
        error.usage = used
        if isinstance(error, EmptyAnswerError) and model.output_modes.fallback_from(mode):
            raise
        problem = error.repair_note
    again = HumanMessage(
        f"That reply cannot be used: {problem}. Give the answer to the same task again, as one "
        "JSON object with exactly the fields asked for, and nothing else."
    )
    try:
        shown = [*messages, AIMessage(_NOT_SHOWN), again]
        second, more = await model.call(mode, shown, kind, config)
    except RoleError as error:
        error.usage = used + error.usage
        raise
    spent = used + more + Usage(reasked_calls=1)
    try:
        return read_answer(second, mode, kind, messages), spent, problem
    except AnswerError as error:
        raise AnswerError(f"{error} (asked twice)", usage=spent) from error


def read_answer(
    message: AIMessage,
    mode: OutputMode,
    kind: type[ReplyT],
    messages: Sequence[BaseMessage],
    *,
    tool: str = "",
) -> ReplyT:
    """Read what a model said to some messages, or raise what is wrong with it."""
    # Where tools were offered, a call goes before text; elsewhere text goes before a call. A call
    # of another tool than was offered, which is called *tool* or as the kind is, is nothing.
    about = message.response_metadata
    ending = str(about.get("finish_reason") or about.get("stop_reason") or "").lower()
    filtered = "stopped by the provider's content filter" if ending in _FILTERED else ""
    if refusal := filtered or str(message.additional_kwargs.get("refusal") or ""):
        raise RefusedError(f"the model refused: {sanitize_line(refusal):.200}")
    said, tool = str(message.text), tool or kind.__name__
    if mode == "tools" or not said.strip():
        called = [json.dumps(one["args"]) for one in message.tool_calls if one["name"] == tool]
        broken = (one for one in message.invalid_tool_calls if one.get("name") == tool)
        said = "\n".join([*called, *(str(one.get("args") or "") for one in broken)]) or said
    try:
        return parse_reply(said, kind, "\n".join(message.text for message in messages))
    except UnusableReplyError as error:
        if ending not in _CUT_OFF:
            raise
        limit = "the reply was cut off at its limit of tokens"
        raise CutOffError(f"{limit}: {error}", repair_note=limit) from error
