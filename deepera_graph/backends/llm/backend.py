"""The LLM backend, and how it is written down without its key."""

import os
import warnings
from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.load import dumpd, load

from deepera_graph.backends.llm.model import ChatModel, find_model
from deepera_graph.backends.llm.roles import LlmAnswerer, LlmIntent, LlmJudge, LlmSummarizer
from deepera_graph.errors import SettingsError
from deepera_graph.prompts import prompts_hash
from deepera_graph.roles import Backend

DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY"
TIMEOUT_SECONDS = 60.0
_FIXED_TEMPERATURE = ("o1", "o3", "o4", "gpt-5")  # models that refuse any temperature but theirs
_NO_KEY = "not-needed"
_MAY_HOLD_SECRETS = frozenset({"default_headers", "default_query", "openai_proxy"})


def llm_backend(
    model: BaseChatModel | str,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    **options: Any,
) -> Backend:
    """Have a chat model recognise intents, judge, summarize and answer.

    Args:
        model: A LangChain chat model, or its name, ``provider:model``.
        base_url: Any server that speaks OpenAI's chat protocol; no key is needed then.
        api_key_env: Environment variable that holds the key; the provider's own if None.
        options: Passed to a model given by name. The defaults are temperature 0 (where the model
            takes one) and a timeout of 60 seconds a call.

    Raises:
        SettingsError: The model cannot be made: unknown provider, missing key or package.
    """
    spec: dict[str, Any] | None
    if isinstance(model, str):
        spec = {"model": model, **options}
        if base_url:
            spec["base_url"] = base_url
        if api_key_env:
            spec["api_key_env"] = api_key_env
        made = _make(model, base_url, api_key_env, options)
    else:
        if base_url or api_key_env or options:
            raise SettingsError("base_url, api_key_env and options go with a model's name only")
        made, spec = model, _dumped(model)
    chat = ChatModel(made)
    return Backend(
        name="llm",
        intent=LlmIntent(chat),
        judge=LlmJudge(chat),
        summarizer=LlmSummarizer(chat),
        answerer=LlmAnswerer(chat),
        about={"model": chat.name, "prompts": prompts_hash()},
        spec={"kind": "llm", **spec} if spec else None,
    )


def llm_backend_from_spec(spec: Mapping[str, Any]) -> Backend:
    """Build the backend that a spec describes; keys come from the environment."""
    options = dict(spec)
    if "dump" in options:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `load` is marked beta since 2023
            model = load(options["dump"], allowed_objects="all", secrets_from_env=True)
        return llm_backend(model)
    return llm_backend(options.pop("model"), **options)


def _make(
    name: str, base_url: str | None, api_key_env: str | None, options: Mapping[str, Any]
) -> BaseChatModel:
    provider, _, model = name.partition(":")
    chosen: dict[str, Any] = {"timeout": TIMEOUT_SECONDS, **options}
    if not model.startswith(_FIXED_TEMPERATURE):
        chosen.setdefault("temperature", 0)
    if base_url:
        chosen["base_url"] = base_url
    variable = api_key_env or (DEFAULT_KEY_VARIABLE if provider == "openai" else None)
    if variable:
        chosen["api_key"] = _key(variable, needed=not base_url or api_key_env is not None)
    return find_model(name, **chosen)


def _key(variable: str, *, needed: bool) -> str:
    key = os.environ.get(variable)
    if key:
        return key
    if needed:
        raise SettingsError(
            f"no API key: set the environment variable {variable}, or give base_url for a server "
            "that needs none"
        )
    return _NO_KEY


def _dumped(model: BaseChatModel) -> dict[str, Any] | None:
    """Write a model down without its secrets; None if LangChain cannot, or headers may hold one."""
    if not model.is_lc_serializable():
        return None
    dump = dumpd(model)
    if dump.get("type") != "constructor" or dump["kwargs"].keys() & _MAY_HOLD_SECRETS:
        return None
    return {"dump": dump}
