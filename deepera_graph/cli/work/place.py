"""From the options of a command to a passage store."""

import os
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from langchain_core.embeddings import Embeddings

from deepera_graph.cli.work.backend import call_foreign
from deepera_graph.cli.work.data_folder import data_folder
from deepera_graph.errors import SettingsError
from deepera_graph.retrieval.collection import Mode
from deepera_graph.retrieval.store import PassageStore, open_store

SERVER_KEY_VARIABLE = "QDRANT_API_KEY"
_OPENAI = "openai"
_LOCAL = "local"
_OF_LOCAL = "langchain_deepera:EvidenceEmbeddings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The options that say where passages are, as they were given."""

    collection: str | None
    path: str | None
    qdrant_url: str | None
    mode: Mode | None
    embeddings: str | None

    def open(self, *, must_exist: bool) -> PassageStore:
        """Open the collection.

        Raises:
            SettingsError: The options do not go together.
            StoreError: The store is missing, locked or unreachable.
        """
        if not self.collection:
            raise SettingsError("--collection must name a collection, got ''")
        if self.path == ":memory:":
            raise SettingsError("--path must be a folder; ':memory:' ends with this command")
        on_server = self.qdrant_url is not None
        return open_store(
            self.collection,
            path=self.path if on_server else self.path or data_folder(),
            url=self.qdrant_url,
            api_key=os.environ.get(SERVER_KEY_VARIABLE) if on_server else None,
            mode=self.mode,
            embeddings=self.find_embeddings(),
            must_exist=must_exist,
        )

    def find_embeddings(self) -> Embeddings | None:
        """Build the embeddings that `--embeddings` names; None if it was not given.

        Raises:
            SettingsError: They cannot be built.
        """
        if self.embeddings is None:
            return None
        name = _OF_LOCAL if self.embeddings == _LOCAL else self.embeddings
        head, colon, tail = name.partition(":")
        if not colon or not head or not tail:
            raise SettingsError(
                "--embeddings must be 'local', 'package.module:factory' or 'openai:model', "
                f"got {self.embeddings!r}"
            )
        if head == _OPENAI:
            return _openai(tail)
        what = f"--embeddings {self.embeddings}"
        made = call_foreign(what, partial(_call, head, tail))
        if not isinstance(made, Embeddings):
            raise SettingsError(f"{what} must return LangChain Embeddings, got {made!r:.80}")
        return made


def _call(module: str, factory: str) -> Any:
    return getattr(import_module(module), factory)()


def _openai(model: str) -> Embeddings:
    if not os.environ.get("OPENAI_API_KEY"):
        raise SettingsError("no API key: the environment variable OPENAI_API_KEY is not set")
    made: Embeddings = import_module("langchain_openai").OpenAIEmbeddings(model=model)
    return made
