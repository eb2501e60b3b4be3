"""Chat models: found by name, on connections of their own, and what their servers know."""

import re
import weakref
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel

from deepera_graph.chat import sending
from deepera_graph.chat.errors import KEY_VARIABLE, filter_responses, secrets_of
from deepera_graph.chat.parsing import ReplyModel, json_schema
from deepera_graph.errors import SettingsError

OutputMode = Literal["json_schema", "tools", "json_object", "text"]
OPENAI_MODES: tuple[OutputMode, ...] = ("json_schema", "tools", "json_object", "text")
# OpenAI's own servers refuse a strict schema with `maxLength`:
# https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
REFUSES_BOUNDS = re.compile(r"^https?://[^/]*\b(?:openai\.com|azure\.com)(?::\d+)?(?:/|$)")


def find_key_variable(base_url: str | None, api_key_env: str | None) -> str | None:
    """Return the variable whose key a server of OpenAI's protocol is sent; None sends no key."""
    # OpenAI's key goes to OpenAI. Any other server gets a key only if one is named for it.
    if api_key_env is not None or not base_url:
        return api_key_env or KEY_VARIABLE
    try:
        address = urlsplit(base_url)
        host = address.hostname or ""
    except ValueError:  # the client will say so
        return None
    is_openai = address.scheme == "https" and f".{host}".endswith(".openai.com")
    return KEY_VARIABLE if is_openai else None


def has_fixed_temperature(model: str) -> bool:
    """Tell whether a model refuses any temperature but its own, by its name."""
    return model.rpartition("/")[2].startswith(("o1", "o3", "o4", "gpt-5"))


def find_model(name: str, **options: Any) -> BaseChatModel:
    """Return the chat model that ``provider:model`` names; *options* are passed to it."""
    # ``openai:...`` needs nothing more; other providers need ``langchain`` and a package of theirs.
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
            f"model {name!r} cannot be made: {_explain_module(provider, model)}{error}. Install "
            f"langchain and the package of the provider: pip install langchain langchain-{provider}"
        ) from error
    return found


def _explain_module(provider: str, model: str) -> str:
    """Say why a name that may be meant as ``module:factory`` is not that of a judge."""
    if not (provider.isidentifier() and model.isidentifier()) or find_spec(f"langchain_{provider}"):
        return ""
    if find_spec(provider) is None:
        return f"module {provider!r}, if it is one of yours, cannot be imported; as a chat model: "
    try:
        is_there = callable(getattr(import_module(provider), model, None))
    except Exception:  # noqa: BLE001 - a module of the user's, or one that only bears the name
        is_there = True
    if not is_there:
        return f"module {provider!r} has no function {model!r}; as a chat model: "
    return "a judge of yours needs a dot, as in 'package.module:factory'; as a chat model: "


def speaks_openai(model: BaseChatModel) -> bool:
    """Whether a model takes the body of OpenAI's chat protocol (not the Responses API)."""
    is_openai = hasattr(model, "root_async_client") and hasattr(model, "extra_body")
    return is_openai and not getattr(model, "use_responses_api", None)


def has_only_sync_client(model: BaseChatModel) -> bool:
    """Whether the caller gave a model of OpenAI's kind a client that only waits in a thread."""
    has_sync = bool(getattr(model, "http_client", None))
    return has_sync and not getattr(model, "http_async_client", None)


def with_own_client(model: BaseChatModel) -> BaseChatModel:
    """Copy a model of OpenAI's kind onto connections that no other loop uses."""
    # langchain-openai shares one HTTP client among all models of a process, and a connection fails
    # in any loop but the one that opened it. The client library's own retries are switched off, and
    # redirections, too: with HTTP 307 and 308 the prompt would go wherever they lead.
    client = getattr(model, "root_async_client", None)
    if client is None:
        return model
    if has_only_sync_client(model):
        own = model.root_client.copy(max_retries=0)  # type: ignore[attr-defined]
        return model.model_copy(update={"root_client": own, "client": own.chat.completions})
    if getattr(model, "http_async_client", None):
        own = client.copy(max_retries=0)
    else:
        how = {"follow_redirects": False, "proxy": getattr(model, "openai_proxy", None) or None}
        http_client = import_module("openai").DefaultAsyncHttpxClient(**how)
        filter_responses(http_client, secrets_of(model))
        own = client.copy(max_retries=0, http_client=http_client)
        weakref.finalize(own, sending.close_later, http_client.aclose).atexit = False
    return model.model_copy(update={"root_async_client": own, "async_client": own.chat.completions})


def find_name(model: BaseChatModel) -> str:
    """Return what a model calls itself, else the name of its class."""
    found = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
    return next((one for one in found if isinstance(one, str) and one), type(model).__name__)


def find_address(model: BaseChatModel) -> str:
    """Return where a model is asked, written in one way; empty if that is not known."""
    client = getattr(model, "root_async_client", None) or getattr(model, "root_client", None)
    return str(getattr(client, "base_url", "")).rstrip("/")


def request_body(
    mode: OutputMode, kind: type[ReplyModel], *, bounded: bool = True
) -> dict[str, Any]:
    """Return what goes into the body of an OpenAI-style request."""
    # It is sent past the client library, whose own parsing raises and then loses the tokens.
    # *bounded*: whether the server takes a schema that bounds the length of a text.
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
