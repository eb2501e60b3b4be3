"""Any model of the `rerankers` package (Clavié 2024): monoT5, ColBERT, APIs and more."""

import os
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

from deepera_graph.bench.errors import UnavailableError
from deepera_graph.bench.rankers.optional import foreign, imported, need, versions
from deepera_graph.bench.rankers.ranker import Passage, Ranking, texts_of
from deepera_graph.errors import SettingsError


class RerankersModel:
    """Ranks with a model that the `rerankers` package knows.

    Args:
        path: ``TYPE/NAME``, e.g. ``t5/unicamp-dl/InRanker-base`` or ``cohere/rerank-v3.5``; the
            key of an API comes from ``TYPE_API_KEY`` in the environment.

    Raises:
        SettingsError: It is not of this form.
        UnavailableError: The package is not installed.
    """

    def __init__(self, path: str) -> None:
        self._type, slash, self._model_name = path.partition("/")
        if not (self._type and slash and self._model_name):
            raise SettingsError(f"rerankers:... must be TYPE/NAME, got {path!r}")
        need("rerankers", install="deepera-graph[rerankers]")
        self.name = f"rerankers {path}"
        stack = versions("rerankers", "transformers", "torch")
        self.fingerprint: Mapping[str, Any] | None = {"kind": "rerankers", "path": path, **stack}
        self._model: Any = None

    def prepare(self) -> None:
        """Load the model.

        Raises:
            UnavailableError: It cannot be loaded.
        """
        if self._model is None:
            self._model = foreign("no weights", self._loaded)

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return what the model returns, best first, with its own scores.

        Raises:
            UnavailableError: The model cannot be loaded, or its call failed.
        """
        if not passages:
            return []
        self.prepare()
        found = foreign("no scores", lambda: self._rank(question, texts_of(passages)))
        ranked = [(passages[one.document.doc_id]["id"], one.score) for one in found]
        lowest = -float(len(passages))
        return [(id, lowest if score is None else float(score)) for id, score in ranked]

    def _rank(self, question: str, texts: Sequence[str]) -> Any:
        with redirect_stdout(StringIO()):
            return self._model.rank(
                query=question, docs=list(texts), doc_ids=list(range(len(texts)))
            ).results

    def _loaded(self) -> Any:
        """Load the model; where it cannot, the package prints why and gives None."""
        key = os.environ.get(f"{self._type.upper()}_API_KEY")
        said = StringIO()
        with redirect_stdout(said):
            model = imported("rerankers").Reranker(
                self._model_name,
                model_type=self._type,
                verbose=0,
                **({"api_key": key} if key else {}),
            )
        if model is None:
            raise UnavailableError(" ".join(said.getvalue().split()))
        return model
