"""A chat model: found by name, given a client of its own, called with or without a schema."""

import json
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor

from deepera_graph.backends.llm import io_loop
from deepera_graph.backends.llm.answers import Filled, json_schema
from deepera_graph.errors import CallError, SettingsError
from deepera_graph.usage import Usage

Method = Literal["json_schema", "text"]
_NO_SCHEMA = frozenset({400, 422, 501})
_UNUSABLE = frozenset({401, 403, 404})
_TEXT_INSTRUCTION = (
    "\n\nAnswer with one JSON object and nothing else. It must follow this JSON schema:\n"
)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: the text, and what it cost."""

    text: str
    usage: Usage


class ChatModel:
    """Calls one chat model from the loop of the model calls; remembers what its server can do.

    Args:
        model: Any LangChain chat model. One of OpenAI's kind gets a client of its own unless the
            caller gave it one.
    """

    def __init__(self, model: BaseChatModel) -> None:
        self.name = _name(model)
        self._sync_only = _has_only_sync_client(model)
        self._model = _with_own_client(model)
        self.method: Method = "json_schema" if _takes_response_format(model) else "text"

    async def call(
        self,
        messages: Sequence[BaseMessage],
        kind: type[Filled],
        config: RunnableConfig | None,
    ) -> Reply:
        """Ask for an answer of one kind; a server that refuses the schema is asked in words.

        Raises:
            CallError: The server could not be reached or refused the call.
        """
        if self.method == "text":
            return await self._send(_in_words(messages, kind), config)
        try:
            return await self._send(messages, config, **self._schema_option(kind))
        except CallError as error:
            if error.status not in _NO_SCHEMA:
                raise
            reply = await self._send(_in_words(messages, kind), config)
            self.method = "text"
            return Reply(reply.text, reply.usage + error.usage)

    async def _send(
        self, messages: Sequence[BaseMessage], config: RunnableConfig | None, **options: Any
    ) -> Reply:
        try:
            message = await self._invoke(list(messages), config, options)
        except Exception as error:  # providers raise types of their own
            raise _call_error(error) from error
        return Reply(_text(message), _usage(message))

    async def _invoke(
        self, messages: list[BaseMessage], config: RunnableConfig | None, options: dict[str, Any]
    ) -> AIMessage:
        if self._sync_only:
            return await run_in_executor(None, self._model.invoke, messages, config, **options)
        return await self._model.ainvoke(messages, config, **options)

    def _schema_option(self, kind: type[Filled]) -> dict[str, Any]:
        """Send the schema in the body, past the client library's own parsing.

        The library raises on an answer it cannot parse, and its tokens are lost; we parse.
        """
        response_format = {
            "type": "json_schema",
            "json_schema": {"name": kind.__name__, "strict": True, "schema": json_schema(kind)},
        }
        extra_body = getattr(self._model, "extra_body", None) or {}
        return {"extra_body": {**extra_body, "response_format": response_format}}


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


def _takes_response_format(model: BaseChatModel) -> bool:
    is_openai = hasattr(model, "root_async_client") and hasattr(model, "extra_body")
    return is_openai and not getattr(model, "use_responses_api", None)


def _has_only_sync_client(model: BaseChatModel) -> bool:
    return bool(getattr(model, "http_client", None)) and not getattr(
        model, "http_async_client", None
    )


def _with_own_client(model: BaseChatModel) -> BaseChatModel:
    """Copy a model of OpenAI's kind onto connections that no other loop uses.

    langchain-openai shares one HTTP client among all models of a process.
    """
    client = getattr(model, "root_async_client", None)
    given = getattr(model, "http_async_client", None)
    if client is None or given is not None or getattr(model, "openai_proxy", None):
        return model
    openai = import_module("openai")
    http_client = openai.DefaultAsyncHttpxClient()
    own = client.copy(http_client=http_client)
    weakref.finalize(own, io_loop.close_later, http_client.aclose).atexit = False
    return model.model_copy(update={"root_async_client": own, "async_client": own.chat.completions})


def _in_words(messages: Sequence[BaseMessage], kind: type[Filled]) -> list[BaseMessage]:
    first, *rest = messages
    schema = json.dumps(json_schema(kind))
    return [SystemMessage(f"{first.content}{_TEXT_INSTRUCTION}{schema}"), *rest]


def _name(model: BaseChatModel) -> str:
    for attribute in ("model_name", "model", "model_id"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return type(model).__name__


def _text(message: AIMessage) -> str:
    return str(message.text)


def _usage(message: AIMessage) -> Usage:
    counted: Mapping[str, Any] = message.usage_metadata or {}
    return Usage(1, int(counted.get("input_tokens", 0)), int(counted.get("output_tokens", 0)))


def _call_error(error: Exception) -> CallError:
    """Put every provider's error into our own words; a message never holds a key."""
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    kinds = {kind.__name__ for kind in type(error).__mro__}
    timed_out = bool(kinds & {"TimeoutError", "APITimeoutError", "TimeoutException"})
    unreachable = bool(kinds & {"APIConnectionError", "ConnectError", "ConnectionError"})
    detail = _brief(error)
    if status in {401, 403}:
        detail = f"the server refused the API key (HTTP {status})"
    elif unreachable and not timed_out:
        cause = error.__cause__ or error
        detail = f"the server cannot be reached ({type(cause).__name__}: {_brief(cause)})"
    elif status is not None:
        detail = f"HTTP {status}: {detail}"
    return CallError(
        detail,
        status=status,
        unusable=status in _UNUSABLE or (unreachable and not timed_out),
        usage=Usage(calls=1),
    )


def _brief(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:300] + " …"
