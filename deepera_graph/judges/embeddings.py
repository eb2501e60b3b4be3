"""Embeddings: those of the trained local judge, and others by their names."""

import os
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from deepera_graph.chat.errors import NO_KEY
from deepera_graph.chat.models import find_key_variable
from deepera_graph.errors import SettingsError
from deepera_graph.judges.trained.backend import local_model
from deepera_graph.packages import call_foreign
from deepera_graph.stores.embeddings import SHORT_NAMES, SentenceEmbeddings

LOCAL = "local"
_SENTENCES = "sentence-transformers"


class EvidenceEmbeddings(Embeddings):
    """Vectors of texts, of length 1, from the weights of the trained local judge; no network.

    ``open_store("papers", embeddings=EvidenceEmbeddings())``, or any LangChain vector store. A text
    has the same vector in any company, and as a question as as a document. They say what a text is
    about; what it proves is the judge's to say. The weights are loaded at first use, once a
    process, and shared with `deepera_graph.local_backend`.

    Args:
        weights: Folder of other weights, as ``deepera-lab judge train`` writes; those that come
            with the package if None.
        threads: Texts read at once, >= 1; if None, those of OMP_NUM_THREADS, else one a core.
    """

    def __init__(self, weights: str | Path | None = None, *, threads: int | None = None) -> None:
        self._weights, self._threads = weights, threads

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in the same order.

        Raises:
            SettingsError: There are no weights, they are damaged, or *threads* is out of range.
        """
        if not texts:
            return []
        model = local_model(self._weights, threads=self._threads)
        return [[float(number) for number in row] for row in model.embed(texts)]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question.

        Raises:
            SettingsError: As for `embed_documents`.
        """
        return self.embed_documents([text])[0]


def find_embeddings(given: Any, *, what: str = "embeddings") -> Embeddings | None:
    """Return embeddings as they are, or those of a name; None for None. Messages call it *what*."""
    # Names are ``local``, ``openai:model``, ``sentence-transformers:model``, ``bge-large-en`` and
    # its like, or ``package.module:factory``.
    if isinstance(given, str):
        return _find_named(given, what)
    if given is not None and not all(hasattr(given, f"embed_{n}") for n in ("documents", "query")):
        raise SettingsError(f"{what} must be 'local' or LangChain embeddings, got {given!r:.80}")
    found: Embeddings | None = given
    return found


def _find_named(name: str, what: str) -> Embeddings:
    head, tail = split_name(name, what)
    if head == LOCAL:
        return EvidenceEmbeddings()
    if head == "openai":
        return open_openai(tail)
    if head == _SENTENCES:
        return SentenceEmbeddings(tail).open()
    made = call_foreign(f"{what} {name} cannot be built", partial(_call_factory, head, tail))
    if not isinstance(made, Embeddings):
        raise SettingsError(f"{what} {name} must return LangChain Embeddings, got {made!r:.80}")
    return made


def _call_factory(module: str, factory: str) -> Any:
    return getattr(import_module(module), factory)()


def split_name(name: str, what: str = "embeddings") -> tuple[str, str]:
    """Return what a name of embeddings says: kind or module, and model or factory."""
    head, colon, tail = (f"{_SENTENCES}:{name}" if name in SHORT_NAMES else name).partition(":")
    if name != LOCAL and not (colon and head and tail):
        raise SettingsError(
            f"{what} must be 'local', 'package.module:factory', 'openai:model', "
            f"'{_SENTENCES}:model' or {', '.join(map(repr, SHORT_NAMES))}, got {name!r}"
        )
    return head, tail


def name_recorded(recorded: str) -> str | None:
    """Return the name for `find_embeddings` of what `name_embeddings` wrote down; None if none."""
    kind, _, model = recorded.partition(":")
    if recorded == EvidenceEmbeddings.__name__:
        return LOCAL
    known = {"OpenAIEmbeddings": "openai", SentenceEmbeddings.__name__: _SENTENCES}
    return f"{known[kind]}:{model}" if kind in known and model else None


def open_openai(model: str, base_url: str | None = None) -> Embeddings:
    """Return embeddings of OpenAI, or of another server of its protocol, which is sent no key."""
    variable = find_key_variable(base_url, None)
    key = os.environ.get(variable, "").strip() if variable else NO_KEY
    if not key:
        raise SettingsError(
            f"no API key: the environment variable {variable} is not set; a server that needs none "
            "is named by its address"
        )
    options: dict[str, Any] = {"model": model, "api_key": key}
    if base_url is not None:  # other servers take text, not the numbers of OpenAI's tokens
        options |= {"base_url": base_url, "check_embedding_ctx_length": False}
    made: Embeddings = import_module("langchain_openai").OpenAIEmbeddings(**options)
    return made
