"""A chat model: found by name, called within its limits, in an output mode its server knows."""

import asyncio
import json
import logging
import re
import weakref
from collections.abc import Awaitable, Mapping, Sequence
from copy import copy
from importlib import import_module
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor

from deepera_graph.budget import Tab, tab_of
from deepera_graph.chat import io_loop
from deepera_graph.chat.errors import (
    KEY_VARIABLE,
    filter_responses,
    reveals_secret,
    secrets_of,
    to_call_error,
)
from deepera_graph.chat.parsing import ReplyModel, json_schema
from deepera_graph.chat.retry import (
    CircuitBreaker,
    RateLimits,
    RawReply,
    Retrier,
    RetryPolicy,
    shared_limiter,
)
from deepera_graph.errors import CallError, SettingsError
from deepera_graph.usage import CHARS_PER_TOKEN, Usage

OutputMode = Literal["json_schema", "tools", "json_object", "text"]
OPENAI_MODES: tuple[OutputMode, ...] = ("json_schema", "tools", "json_object", "text")
UNSUPPORTED = frozenset({400, 404, 422, 500, 501})  # how servers refuse a mode
_logger = logging.getLogger("deepera_graph.chat")
_uncounted: set[str] = set()  # models whose servers were said not to count tokens
_FILTERED = frozenset({"content_filter", "refusal", "safety"})  # OpenAI, Anthropic, Google
_CUT_OFF = frozenset({"length", "max_tokens"})
_SLOW = "a slow model needs a longer --call-timeout, in Python retry={'timeout': SECONDS}"
_IN_WORDS = "\n\nAnswer with one JSON object and nothing else. It must follow this JSON schema:\n"
# OpenAI's own servers refuse a strict schema with `maxLength`:
# https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
_REFUSES_BOUNDS = re.compile(r"^https?://[^/]*\b(?:openai\.com|azure\.com)(?::\d+)?(?:/|$)")


def find_key_variable(base_url: str | None, api_key_env: str | None) -> str | None:
    """Return the variable whose key a server of OpenAI's protocol is sent; None sends no key.

    OpenAI's key goes to OpenAI. Any other server gets a key only if one is named for it.
    """
    if api_key_env is not None or not base_url:
        return api_key_env or KEY_VARIABLE
    try:
        address = urlsplit(base_url)
        host = address.hostname or ""
    except ValueError:  # the client will say so
        return None
    is_openai = address.scheme == "https" and f".{host}".endswith(".openai.com")
    return KEY_VARIABLE if is_openai else None


class OutputModes:
    """The output mode in use: falls back when the first uses of a mode fail, and never returns.

    A mode that has given one usable answer is proven: what fails later is not its fault.

    Attributes:
        all: Those that may be tried, in this order.
        current: The one to use now.
    """

    def __init__(self, modes: Sequence[OutputMode]) -> None:
        self.all = tuple(modes)
        self.current = self.all[0]
        self._proven: set[OutputMode] = set()

    def fallback_from(self, mode: OutputMode, *, broken: bool = False) -> OutputMode | None:
        """Return what to try instead of an unproven mode, if anything is left.

        Where the server has *broken* down over two modes, that is plain text, which all know.
        """
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


def request_body(
    mode: OutputMode, kind: type[ReplyModel], *, bounded: bool = True
) -> dict[str, Any]:
    """Return what goes into the body of an OpenAI-style request.

    It is sent past the client library, whose own parsing raises and then loses the tokens.
    *bounded*: whether the server takes a schema that bounds the length of a text.
    """
    name, schema = kind.__name__, json_schema(kind, bounded=bounded or mode != "json_schema")
    if mode == "json_schema":
        form = {"name": name, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": form}}
    if mode == "json_object":
        return {"response_format": {"type": "json_object"}}
    if mode == "tools":
        return {
            "tools": [{"type": "function", "function": {"name": name, "parameters": schema}}],
            "tool_choice": {"type": "function", "function": {"name": name}},
        }
    return {}


def _with_schema_in_words(
    mode: OutputMode, messages: Sequence[BaseMessage], kind: type[ReplyModel]
) -> list[BaseMessage]:
    first, *rest = messages
    if mode in {"json_schema", "tools"}:
        return [first, *rest]
    return [SystemMessage(f"{first.content}{_IN_WORDS}{json.dumps(json_schema(kind))}"), *rest]


def _read_reply(
    message: AIMessage, usage: Usage, mode: OutputMode, kind: type[ReplyModel]
) -> RawReply:
    """Return what a model answered: its text, or the arguments of its tool calls, all of them.

    Where tools were offered, a call goes before text; elsewhere text goes before a call. A call of
    a tool that was not offered is nothing.
    """
    text, name = str(message.text), kind.__name__
    if mode == "tools" or not text.strip():
        called = [json.dumps(one["args"]) for one in message.tool_calls if one["name"] == name]
        broken = (one for one in message.invalid_tool_calls if one.get("name") == name)
        text = "\n".join([*called, *(str(one.get("args") or "") for one in broken)]) or text
    about = message.response_metadata
    ending = str(about.get("finish_reason") or about.get("stop_reason") or "").lower()
    refusal = str(message.additional_kwargs.get("refusal") or "")
    return RawReply(
        text,
        usage,
        "stopped by the provider's content filter" if ending in _FILTERED else refusal,
        cut_off=ending in _CUT_OFF,
    )


def has_fixed_temperature(model: str) -> bool:
    """Tell whether a model refuses any temperature but its own, by its name."""
    return model.rpartition("/")[2].startswith(("o1", "o3", "o4", "gpt-5"))


class ChatModel:
    """Calls one chat model from the loop of the model calls.

    A model of OpenAI's kind gets a client of its own, unless the caller gave it one; its own
    retries are switched off, as ours count. The limits hold for all users of the same model.
    """

    def __init__(self, model: BaseChatModel, retry: RetryPolicy, limits: RateLimits) -> None:
        self.name = _find_name(model)
        self._identity = f"{self.name} {_find_address(model)}"
        self._limits = limits
        self._is_openai = _is_openai(model)
        self._takes_bounds = not _REFUSES_BOUNDS.search(_find_address(model))
        self._sync_only = _has_only_sync_client(model)
        self._secrets = secrets_of(model)
        self._timeout, self._retrier, self._breaker = (
            retry.timeout, Retrier(retry), CircuitBreaker(),
        )  # fmt: skip
        self.langchain = _with_own_client(model)
        binds_tools = type(model).bind_tools is not BaseChatModel.bind_tools
        others: tuple[OutputMode, ...] = ("tools", "text") if binds_tools else ("text",)
        self.output_modes = OutputModes(OPENAI_MODES if self._is_openai else others)

    def with_temperature(self, temperature: float) -> Self:
        """Return the same model at another temperature; as it is, if it has none to set.

        Both share their limits, and what is known of the server.
        """
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
    ) -> RawReply:
        """Ask once, in one mode; failures that pass are tried again.

        *n_broken* calls for this reply have failed with 500 in other modes.
        """
        self._breaker.check()
        shown = _with_schema_in_words(mode, messages, kind)
        tab, limiter = tab_of(config), shared_limiter(self._identity, self._limits)
        n_characters = sum(len(str(message.content)) for message in shown)
        n_estimated = limiter.estimate_tokens(n_characters)

        async def send() -> RawReply:
            asked = self._invoke(mode, shown, kind, config)
            message, used = await self._charge(tab, asked, n_characters)
            reply = _read_reply(message, used, mode, kind)
            limiter.settle(n_characters, n_estimated, used.input_tokens, used.output_tokens)
            return reply

        try:
            return await self._retrier.send(
                send,
                lambda: limiter.slot(n_estimated, tab),
                tab,
                attempts_at_500=self.output_modes.attempts_at_500(mode),
                n_broken=n_broken,
            )
        except CallError as error:
            self._breaker.note_given_up(error)
            raise

    async def _charge(
        self, tab: Tab, asked: Awaitable[AIMessage], n_characters: int
    ) -> tuple[AIMessage, Usage]:
        """Wait for an answer as long as one call may take; charge it, however it ends.

        When the time of the run is up before that, the call is abandoned.
        """
        usage, left = Usage(failed_calls=1), tab.meter.seconds_left
        try:
            async with asyncio.timeout(self._timeout if left is None else min(left, self._timeout)):
                message = await asked
            usage = self._count(message, n_characters)
            self._breaker.note_answer()
            return message, usage
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

    def _count(self, message: AIMessage, n_characters: int) -> Usage:
        """Return the tokens of a call; say once of a server that it does not count them.

        They are estimated then. Every prompt has a token, and so has every reply that says
        something.
        """
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


def find_model(name: str, **options: Any) -> BaseChatModel:
    """Return the chat model that ``provider:model`` names; *options* are passed to it.

    ``openai:...`` needs nothing more; other providers need ``langchain`` and a package of theirs.
    """
    provider, colon, model = name.partition(":")
    if not colon or not provider or not model:
        example = "" if colon or not name else f", e.g. 'openai:{name}'"
        raise SettingsError(f"model must be 'provider:model'{example}, got {name!r}")
    found: BaseChatModel
    if provider == "openai":
        found = import_module("langchain_openai").ChatOpenAI(model=model, **options)
        return found
    try:
        init_chat_model = import_module("langchain.chat_models").init_chat_model
        found = init_chat_model(model, model_provider=provider, **options)
    except (ImportError, ValueError) as error:
        if options.get("base_url"):  # models of Ollama have a colon in their names
            raise SettingsError(
                f"model {name!r} cannot be made: provider {provider!r} is not supported; a server "
                f"that speaks OpenAI's protocol takes 'openai:{name}'"
            ) from error
        raise SettingsError(
            f"model {name!r} cannot be made: {error}. Install langchain and the package of the "
            f"provider: pip install langchain langchain-{provider}"
        ) from error
    return found


def _is_openai(model: BaseChatModel) -> bool:
    """Whether a model takes the body of OpenAI's chat protocol (not the Responses API)."""
    is_openai = hasattr(model, "root_async_client") and hasattr(model, "extra_body")
    return is_openai and not getattr(model, "use_responses_api", None)


def _has_only_sync_client(model: BaseChatModel) -> bool:
    has_sync = bool(getattr(model, "http_client", None))
    return has_sync and not getattr(model, "http_async_client", None)


def _with_own_client(model: BaseChatModel) -> BaseChatModel:
    """Copy a model of OpenAI's kind onto connections that no other loop uses.

    langchain-openai shares one HTTP client among all models of a process, and a connection fails
    in any loop but the one that opened it. The client library's own retries are switched off, and
    redirections, too: with HTTP 307 and 308 the prompt would go wherever they lead.
    """
    client = getattr(model, "root_async_client", None)
    if client is None:
        return model
    if _has_only_sync_client(model):
        own = model.root_client.copy(max_retries=0)  # type: ignore[attr-defined]
        return model.model_copy(update={"root_client": own, "client": own.chat.completions})
    if getattr(model, "http_async_client", None):
        own = client.copy(max_retries=0)
    else:
        how = {"follow_redirects": False, "proxy": getattr(model, "openai_proxy", None) or None}
        http_client = import_module("openai").DefaultAsyncHttpxClient(**how)
        filter_responses(http_client, secrets_of(model))
        own = client.copy(max_retries=0, http_client=http_client)
        weakref.finalize(own, io_loop.close_later, http_client.aclose).atexit = False
    return model.model_copy(update={"root_async_client": own, "async_client": own.chat.completions})


def _find_name(model: BaseChatModel) -> str:
    found = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
    return next((one for one in found if isinstance(one, str) and one), type(model).__name__)


def _find_address(model: BaseChatModel) -> str:
    """Return where a model is asked, written in one way; empty if that is not known."""
    client = getattr(model, "root_async_client", None) or getattr(model, "root_client", None)
    return str(getattr(client, "base_url", "")).rstrip("/")
