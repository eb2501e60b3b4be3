"""A chat model: found by name, called within its limits, in a way that its server can do."""

import weakref
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor

from deepera_graph.backends.llm import io_loop
from deepera_graph.backends.llm.answers import Filled, json_schema
from deepera_graph.backends.llm.failures import call_error
from deepera_graph.backends.llm.methods import (
    OPENAI_METHODS,
    OTHER_METHODS,
    Ladder,
    Method,
    body_options,
    said,
    shown_messages,
)
from deepera_graph.backends.llm.pace import Limits, pace_of
from deepera_graph.backends.llm.patience import Patience, Patient
from deepera_graph.backends.llm.reply import Reply
from deepera_graph.errors import SettingsError
from deepera_graph.usage import Usage

_CHARACTERS_PER_TOKEN = 4
_ANSWER_TOKENS = 100


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
        self._identity = f"{self.name} {getattr(model, 'openai_api_base', None) or ''}"
        self._limits = limits
        self._is_openai = _is_openai(model)
        self._sync_only = _has_only_sync_client(model)
        self._model = _with_own_client(model)
        self._patient = Patient(patience)
        self.ladder = Ladder(OPENAI_METHODS if self._is_openai else _other_methods(model))

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
        """
        shown = shown_messages(method, messages, kind)

        async def send() -> Reply:
            return await self._send(method, shown, kind, config)

        return await self._patient.send(send)

    async def _send(
        self,
        method: Method,
        messages: list[BaseMessage],
        kind: type[Filled],
        config: RunnableConfig | None,
    ) -> Reply:
        pace = pace_of(self._identity, self._limits)
        guessed = _ANSWER_TOKENS + sum(len(str(m.content)) for m in messages) // (
            _CHARACTERS_PER_TOKEN
        )
        async with pace.turn(guessed):
            try:
                message = await self._invoke(method, messages, kind, config)
            except Exception as error:  # providers raise types of their own
                raise call_error(error) from error
        usage = _usage(message)
        pace.settle(usage.tokens - guessed)
        return Reply(said(message), usage, str(message.additional_kwargs.get("refusal") or ""))

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
                **body_options(method, kind),
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
        own = client.copy(max_retries=0, http_client=http_client)
        weakref.finalize(own, io_loop.close_later, http_client.aclose).atexit = False
    return model.model_copy(update={"root_async_client": own, "async_client": own.chat.completions})


def _name(model: BaseChatModel) -> str:
    for attribute in ("model_name", "model", "model_id"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return type(model).__name__


def _usage(message: AIMessage) -> Usage:
    counted: Mapping[str, Any] = message.usage_metadata or {}
    return Usage(1, int(counted.get("input_tokens", 0)), int(counted.get("output_tokens", 0)))
