"""A chat model: found by name, called within its limits, in a way that its server can do."""

import asyncio
import json
import re
import weakref
from collections.abc import Awaitable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor

from deepera_graph.budget import Tab, tab_of
from deepera_graph.chat import io_loop
from deepera_graph.chat.errors import call_error, secrets_of, tells, watch
from deepera_graph.chat.rate_limit import Limits, pace_of
from deepera_graph.chat.retry import Door, Patience, Patient, Reply
from deepera_graph.chat.schema import Filled, json_schema
from deepera_graph.errors import CallError, SettingsError
from deepera_graph.usage import Usage

Method = Literal["json_schema", "tools", "json_object", "text"]
OPENAI_METHODS: tuple[Method, ...] = ("json_schema", "tools", "json_object", "text")
OTHER_METHODS: tuple[Method, ...] = ("tools", "text")
NOT_SUPPORTED = frozenset({400, 404, 422, 500, 501})
_FILTERED = frozenset({"content_filter", "refusal", "safety"})  # OpenAI, Anthropic, Google
_CUT_OFF = frozenset({"length", "max_tokens"})
_IN_WORDS = "\n\nAnswer with one JSON object and nothing else. It must follow this JSON schema:\n"


class Ladder:
    """The method in use: goes down when the first uses of a method fail, and never up again.

    A method that has given one usable answer is proven: what fails later is not its fault.
    """

    def __init__(self, methods: Sequence[Method]) -> None:
        self._methods = tuple(methods)
        self._place = 0
        self._proven: set[Method] = set()

    @property
    def methods(self) -> tuple[Method, ...]:
        """The methods there are, best first."""
        return self._methods

    @property
    def method(self) -> Method:
        """The method to use now."""
        return self._methods[self._place]

    def below(self, method: Method) -> Method | None:
        """Return what to try instead of an unproven method, if anything is left."""
        place = self._methods.index(method) + 1
        if method in self._proven or place == len(self._methods):
            return None
        return self._methods[place]

    def reached(self, method: Method) -> None:
        """Note words in answer, even unusable ones: what stands above gave none and is given up."""
        self._place = max(self._place, self._methods.index(method))

    def worked(self, method: Method) -> None:
        """Note a usable answer; what stands above an only now proven method is given up."""
        self._proven.add(method)
        self.reached(method)


def body_options(method: Method, kind: type[Filled], *, bounded: bool = True) -> dict[str, Any]:
    """Return what goes into the body of an OpenAI-style request.

    It is sent past the client library, whose own parsing raises and then loses the tokens.

    Args:
        method: How to ask.
        kind: What is to be filled in.
        bounded: Whether the server takes a schema that bounds the length of a text.
    """
    name, schema = kind.__name__, json_schema(kind, bounded=bounded or method != "json_schema")
    if method == "json_schema":
        form = {"name": name, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": form}}
    if method == "json_object":
        return {"response_format": {"type": "json_object"}}
    if method == "tools":
        return {
            "tools": [{"type": "function", "function": {"name": name, "parameters": schema}}],
            "tool_choice": {"type": "function", "function": {"name": name}},
        }
    return {}


def shown_messages(
    method: Method, messages: Sequence[BaseMessage], kind: type[Filled]
) -> list[BaseMessage]:
    """Return the messages; with the schema in words where the method does not carry it."""
    first, *rest = messages
    if method in {"json_schema", "tools"}:
        return [first, *rest]
    return [SystemMessage(f"{first.content}{_IN_WORDS}{json.dumps(json_schema(kind))}"), *rest]


def said(message: AIMessage, method: Method, kind: type[Filled]) -> str:
    """Return what a model answered: its text, or the arguments of its tool calls, all of them.

    Where tools were offered, a call goes before text; elsewhere text goes before a call. A call of
    a tool that was not offered is nothing.
    """
    text = str(message.text)
    if method != "tools" and text.strip():
        return text
    called = [json.dumps(one["args"]) for one in message.tool_calls if one["name"] == kind.__name__]
    broken = [
        str(one.get("args") or "")
        for one in message.invalid_tool_calls
        if one.get("name") == kind.__name__
    ]
    return "\n".join([*called, *broken]) or text


def refusal(message: AIMessage) -> str:
    """Return why a model refused, or its provider's filter; empty if neither did."""
    if _ending(message) in _FILTERED:
        return "stopped by the provider's content filter"
    return str(message.additional_kwargs.get("refusal") or "")


def is_cut_off(message: AIMessage) -> bool:
    """Whether an answer ended at the limit of its tokens."""
    return _ending(message) in _CUT_OFF


def _ending(message: AIMessage) -> str:
    told = message.response_metadata
    return str(told.get("finish_reason") or told.get("stop_reason") or "").lower()


# OpenAI's own servers refuse a strict schema with `maxLength`:
# https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
_REFUSES_BOUNDS = re.compile(r"^https?://[^/]*\b(?:openai\.com|azure\.com)(?::\d+)?(?:/|$)")


class ChatModel:
    """Calls one chat model from the loop of the model calls.

    Args:
        model: Any LangChain chat model. One of OpenAI's kind gets a client of its own, unless the
            caller gave it one; its own retries are switched off, as ours count.
        patience: How long to wait and what to try again.
        limits: What the server allows, for all users of the same model together.
    """

    def __init__(self, model: BaseChatModel, patience: Patience, limits: Limits) -> None:
        self.name = _name(model)
        self._identity = f"{self.name} {_address(model)}"
        self._limits = limits
        self._is_openai = _is_openai(model)
        self._takes_bounds = not _REFUSES_BOUNDS.search(_address(model))
        self._sync_only = _has_only_sync_client(model)
        self._secrets = secrets_of(model)
        self._model = _with_own_client(model)
        self._timeout, self._patient, self._door = patience.timeout, Patient(patience), Door()
        self.ladder = Ladder(OPENAI_METHODS if self._is_openai else _other_methods(model))

    @property
    def langchain(self) -> BaseChatModel:
        """The LangChain model that is called."""
        return self._model

    async def call(
        self,
        method: Method,
        messages: Sequence[BaseMessage],
        kind: type[Filled],
        config: RunnableConfig | None,
    ) -> Reply:
        """Ask once, in one way; failures that pass are tried again.

        Raises:
            CallError: There is no answer to be had.
            BudgetError: The budget is spent.
        """
        self._door.check()
        shown = shown_messages(method, messages, kind)
        tab, pace = tab_of(config), pace_of(self._identity, self._limits)
        n_characters = sum(len(str(message.content)) for message in shown)
        n_guessed = pace.guess(n_characters)

        async def send() -> Reply:
            message = await self._charged(tab, self._invoke(method, shown, kind, config))
            usage = _usage(message)
            pace.settle(n_characters, n_guessed, usage.input_tokens, usage.output_tokens)
            text = said(message, method, kind)
            return Reply(text, usage, refusal(message), cut_off=is_cut_off(message))

        return await self._patient.send(send, lambda: pace.turn(n_guessed, tab), tab)

    async def _charged(self, tab: Tab, asked: Awaitable[AIMessage]) -> AIMessage:
        """Wait for an answer as long as one call may take; charge it, however it ends."""
        usage = Usage(hedged_calls=1)  # if it is given up, as its copy was faster
        try:
            async with asyncio.timeout(self._timeout):
                message = await asked
            usage = _usage(message)
            self._door.answered()
            return message
        except TimeoutError as error:
            usage = Usage(failed_calls=1)
            late = f"no answer within {self._timeout:g} s"
            raise CallError(late, transport=True, usage=usage) from error
        except Exception as error:  # providers raise types of their own
            usage = Usage(failed_calls=1)
            failed = call_error(error, self._secrets)
            self._door.failed(failed)
            if tells(error, self._secrets):
                raise failed from None
            raise failed from error
        finally:
            tab.end(usage)

    async def _invoke(
        self,
        method: Method,
        messages: list[BaseMessage],
        kind: type[Filled],
        config: RunnableConfig | None,
    ) -> AIMessage:
        if self._is_openai:
            body = {
                **(getattr(self._model, "extra_body", None) or {}),
                **body_options(method, kind, bounded=self._takes_bounds),
            }
            options: dict[str, Any] = {"extra_body": body} if body else {}
            if self._sync_only:
                return await run_in_executor(None, self._model.invoke, messages, config, **options)
            return await self._model.ainvoke(messages, config, **options)
        if method == "tools":
            tool = {"title": kind.__name__, "description": kind.__doc__, **json_schema(kind)}
            return await self._model.bind_tools([tool], tool_choice=kind.__name__).ainvoke(
                messages, config
            )
        return await self._model.ainvoke(messages, config)


def find_model(name: str, **options: Any) -> BaseChatModel:
    """Return the chat model that ``provider:model`` names.

    Args:
        name: ``openai:...`` needs nothing more; other providers need ``langchain`` and the
            provider's own package.
        options: Passed to the model, e.g. ``base_url``.

    Raises:
        SettingsError: The name has no provider, or its package is not installed.
    """
    provider, colon, model = name.partition(":")
    if not colon or not provider or not model:
        raise SettingsError(f"model must be 'provider:model', got {name!r}")
    if provider == "openai":
        kind = import_module("langchain_openai").ChatOpenAI
        made: BaseChatModel = kind(model=model, **options)
        return made
    try:
        init_chat_model = import_module("langchain.chat_models").init_chat_model
        made = init_chat_model(model, model_provider=provider, **options)
    except (ImportError, ValueError) as error:
        raise SettingsError(
            f"model {name!r} cannot be made: {error}. Install langchain and the package of the "
            f"provider: pip install langchain langchain-{provider}"
        ) from error
    return made


def _is_openai(model: BaseChatModel) -> bool:
    """Whether a model takes the body of OpenAI's chat protocol (not the Responses API)."""
    is_openai = hasattr(model, "root_async_client") and hasattr(model, "extra_body")
    return is_openai and not getattr(model, "use_responses_api", None)


def _other_methods(model: BaseChatModel) -> tuple[Method, ...]:
    """Tools only where a model overrides the method that binds them."""
    binds = type(model).bind_tools is not BaseChatModel.bind_tools
    return OTHER_METHODS if binds else ("text",)


def _has_only_sync_client(model: BaseChatModel) -> bool:
    return bool(getattr(model, "http_client", None)) and not getattr(
        model, "http_async_client", None
    )


def _with_own_client(model: BaseChatModel) -> BaseChatModel:
    """Copy a model of OpenAI's kind onto connections that no other loop uses.

    langchain-openai shares one HTTP client among all models of a process, and a connection fails
    in any loop but the one that opened it. The client library's own retries are switched off.
    """
    client = getattr(model, "root_async_client", None)
    if client is None:
        return model
    if _has_only_sync_client(model):
        own = model.root_client.copy(max_retries=0)  # type: ignore[attr-defined]
        return model.model_copy(update={"root_client": own, "client": own.chat.completions})
    if getattr(model, "http_async_client", None) or getattr(model, "openai_proxy", None):
        own = client.copy(max_retries=0)
    else:
        http_client = import_module("openai").DefaultAsyncHttpxClient()
        watch(http_client, secrets_of(model))
        own = client.copy(max_retries=0, http_client=http_client)
        weakref.finalize(own, io_loop.close_later, http_client.aclose).atexit = False
    return model.model_copy(update={"root_async_client": own, "async_client": own.chat.completions})


def _name(model: BaseChatModel) -> str:
    for attribute in ("model_name", "model", "model_id"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return type(model).__name__


def _address(model: BaseChatModel) -> str:
    """Where a model is asked, written in one way; empty if that is not known."""
    client = getattr(model, "root_async_client", None) or getattr(model, "root_client", None)
    return str(getattr(client, "base_url", "")).rstrip("/")


def _usage(message: AIMessage) -> Usage:
    counted: Mapping[str, Any] = message.usage_metadata or {}
    return Usage(1, int(counted.get("input_tokens", 0)), int(counted.get("output_tokens", 0)))
