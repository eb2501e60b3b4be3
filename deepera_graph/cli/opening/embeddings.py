"""The embeddings that an option names, or a collection was made with."""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from deepera_graph.cli.opening.chat import KEY_VARIABLE
from deepera_graph.cli.opening.foreign import load_foreign
from deepera_graph.cli.shared import options
from deepera_graph.errors import SettingsError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_SENTENCES = "sentence-transformers"
LOCAL_EMBEDDINGS = "langchain_deepera:EvidenceEmbeddings"


def find_embeddings(embeddings: str | None) -> Embeddings | None:
    """Build the embeddings that `--embeddings` names; None if it was not given."""
    if embeddings is None:
        return None
    head, tail = split_embeddings(embeddings)
    if head == "openai":
        return _openai_embeddings(tail)
    if head == _SENTENCES:
        from deepera_graph.stores.embeddings import SentenceEmbeddings

        return SentenceEmbeddings(tail)
    from langchain_core.embeddings import Embeddings

    what = f"--embeddings {embeddings}"
    made = load_foreign(what, partial(_call_factory, head, tail))
    if not isinstance(made, Embeddings):
        raise SettingsError(f"{what} must return LangChain Embeddings, got {made!r:.80}")
    return made


def find_recorded(store: options.StoreOptions, recorded: str) -> Embeddings | None:
    """Return the embeddings that a collection was made with: ours, or those that are configured."""
    if store.embeddings is None and recorded != LOCAL_EMBEDDINGS.partition(":")[2]:
        kind, _, model = recorded.partition(":")
        known = {"OpenAIEmbeddings": "openai", "SentenceEmbeddings": _SENTENCES}
        of_known = f"{known[kind]}:{model}" if kind in known and model else ""
        name = of_known or "MODULE:FACTORY, a function that makes them"
        raise SettingsError(
            f"collection {store.collection!r} was made with {recorded}: give --embeddings {name}"
        )
    return find_embeddings(store.embeddings or "local")


def split_embeddings(embeddings: str) -> tuple[str, str]:
    """Return what `--embeddings` names as kind or module, and model or factory."""
    from deepera_graph.stores.embeddings import SHORT_NAMES

    name = LOCAL_EMBEDDINGS if embeddings == "local" else embeddings
    if name in SHORT_NAMES:
        name = f"{_SENTENCES}:{name}"
    head, colon, tail = name.partition(":")
    if not colon or not head or not tail:
        raise SettingsError(
            "--embeddings must be 'local', 'package.module:factory', 'openai:model', "
            f"'{_SENTENCES}:model' or {', '.join(map(repr, SHORT_NAMES))}, got {embeddings!r}"
        )
    return head, tail


def _call_factory(module: str, factory: str) -> Any:
    return getattr(import_module(module), factory)()


def _openai_embeddings(model: str) -> Embeddings:
    if not os.environ.get(KEY_VARIABLE):
        raise SettingsError(f"no API key: the environment variable {KEY_VARIABLE} is not set")
    from langchain_openai import OpenAIEmbeddings  # takes a second

    return OpenAIEmbeddings(model=model)
