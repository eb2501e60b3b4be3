"""Models of sentence-transformers, loaded when the first question is ranked."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from deepera_graph.bench.errors import RankingError
from deepera_graph.bench.rankers.dense import Dense
from deepera_graph.bench.rankers.optional import foreign, imported, need, versions, weights
from deepera_graph.bench.rankers.ranker import Passage, Ranking, by_score, texts_of

_PACKAGE = "sentence_transformers"
_INSTALL = "deepera-graph[sentence-transformers]"


class SentenceEmbeddings(Embeddings):
    """Embeddings of a bi-encoder of sentence-transformers.

    Args:
        name: A folder, a package that brings a model, or a name on the Hugging Face hub.

    Raises:
        UnavailableError: The package is not installed; later, when it is used, that the weights
            cannot be loaded.
    """

    def __init__(self, name: str) -> None:
        need(_PACKAGE, install=_INSTALL)
        self._place, self.about = weights(name)
        self._model: Any = None

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question, with the model's own prompt for queries if it has one.

        Raises:
            UnavailableError: The weights cannot be loaded.
        """
        return [float(one) for one in self._encode("encode_query", [text])[0]]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of passages.

        Raises:
            UnavailableError: The weights cannot be loaded.
        """
        return list(self._encode("encode_document", texts)) if texts else []

    def _encode(self, method: str, texts: Sequence[str]) -> Any:
        def work() -> Any:
            if self._model is None:
                self._model = _kind("SentenceTransformer")(self._place)
            encode = getattr(self._model, method)
            return encode(list(texts), show_progress_bar=False, convert_to_numpy=True)

        return foreign("no embeddings", work)


class CrossEncoder:
    """Ranks by the scores that a cross-encoder of sentence-transformers gives to each pair.

    Args:
        model: A folder, or a name on the Hugging Face hub.
        name: What the table calls it; made from the model's when empty.

    Raises:
        UnavailableError: The package is not installed.
    """

    def __init__(self, model: str, *, name: str = "") -> None:
        need(_PACKAGE, install=_INSTALL)
        self.name = name or f"cross-encoder {model}"
        self._place, about = weights(model)
        self.fingerprint: Mapping[str, Any] | None = {"kind": "cross-encoder", **about, **_stack()}
        self._model: Any = None

    def prepare(self) -> None:
        """Load the weights.

        Raises:
            UnavailableError: They cannot be loaded.
        """
        if self._model is None:
            self._model = foreign("no weights", lambda: _kind("CrossEncoder")(self._place))

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return all passages by the model's score, on its own scale.

        Raises:
            UnavailableError: The weights cannot be loaded.
            RankingError: The model gives several scores a pair.
        """
        if not passages:
            return []
        self.prepare()
        pairs = [(question, text) for text in texts_of(passages)]
        found = foreign("no scores", lambda: self._model.predict(pairs, show_progress_bar=False))
        scores = np.asarray(found, dtype=np.float64)
        if scores.shape != (len(pairs),):
            raise RankingError(
                f"ranker {self.name!r} must give one score a pair, gave {scores.shape[1:]}"
            )
        return by_score(passages, list(scores))


def dense_sentences(model: str) -> Dense:
    """Return the ranker by cosine under a bi-encoder of sentence-transformers.

    Raises:
        UnavailableError: The package is not installed.
    """
    embeddings = SentenceEmbeddings(model)
    about = {"kind": "dense sentence-transformers", **embeddings.about, **_stack()}
    return Dense(embeddings, name=f"dense {model}", fingerprint=about)


def _kind(name: str) -> Any:
    """Return a class of the package, with its progress bars switched off."""
    kind = getattr(imported(_PACKAGE), name)
    if "transformers" in sys.modules:
        sys.modules["transformers"].utils.logging.disable_progress_bar()
    return kind


def _stack() -> dict[str, str]:
    return versions("sentence-transformers", "transformers", "torch")
