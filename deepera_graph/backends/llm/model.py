"""A chat model: found by name, called within its limits, in a way that its server can do."""

import asyncio
import re
import weakref
from collections.abc import Awaitable, Mapping, Sequence
from importlib import import_module
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor

from deepera_graph.backends.llm import io_loop
from deepera_graph.backends.llm.answers import Filled, json_schema
from deepera_graph.backends.llm.door import Door
from deepera_graph.backends.llm.failures import call_error, tells
from deepera_graph.backends.llm.methods import (
    OPENAI_METHODS,
    OTHER_METHODS,
    Ladder,
    Method,
    body_options,
    is_cut_off,
    refusal,
    said,
    shown_messages,
)
from deepera_graph.backends.llm.pace import Limits, pace_of
from deepera_graph.backends.llm.patience import Patience, Patient
from deepera_graph.backends.llm.reply import Reply
from deepera_graph.backends.llm.secrets import secrets_of
from deepera_graph.backends.llm.wire import watch
from deepera_graph.budget import Tab, tab_of
from deepera_graph.errors import CallError, SettingsError
from deepera_graph.usage import Usage

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
