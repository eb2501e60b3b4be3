"""Cosine under embeddings of OpenAI, or of a server that speaks its protocol."""

import os
import re
from importlib import import_module
from typing import Any

from langchain_core.embeddings import Embeddings

from deepera_graph.backends.llm.backend import DEFAULT_KEY_VARIABLE
from deepera_graph.bench.errors import UnavailableError
from deepera_graph.bench.rankers.dense import Dense
from deepera_graph.bench.rankers.optional import foreign

_SERVER = re.compile(r"@(?=https?://)")


class OpenAIVectors(Embeddings):
    """Embeddings whose errors are ours.

    Args:
        model: Its name.
        base_url: Another server than OpenAI's; it needs no key.

    Raises:
        UnavailableError: There is no key; later, when it is used, that the call failed.
    """

    def __init__(self, model: str, base_url: str | None) -> None:
        key = os.environ.get(DEFAULT_KEY_VARIABLE, "").strip()
        if not key and base_url is None:
            raise UnavailableError(
                f"no API key: set the environment variable {DEFAULT_KEY_VARIABLE}, or name a "
                "server that needs none, dense:openai:MODEL@http://server/v1"
            )
        options: dict[str, Any] = {"model": model, "api_key": key or "not-needed"}
        if base_url is not None:  # other servers take text, not the numbers of OpenAI's tokens
            options |= {"base_url": base_url, "check_embedding_ctx_length": False}
        self._made: Embeddings = import_module("langchain_openai").OpenAIEmbeddings(**options)

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        return foreign("no embeddings", lambda: self._made.embed_query(text))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of passages."""
        return foreign("no embeddings", lambda: self._made.embed_documents(texts))


def dense_openai(named: str) -> Dense:
    """Return the ranker for ``MODEL`` or ``MODEL@http://server/v1``.

    Raises:
        UnavailableError: There is no key.
    """
    model, *server = _SERVER.split(named, maxsplit=1)
    base_url = server[0] if server else None
    about = {"kind": "dense openai", "model": model, "base_url": base_url}
    return Dense(OpenAIVectors(model, base_url), name=f"dense {model}", fingerprint=about)
