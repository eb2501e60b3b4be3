"""Embeddings of the chunks of a build: fitted to them, without a model, and kept."""

import base64
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from sklearn.decomposition import TruncatedSVD  # type: ignore[import-untyped]  # has no stubs
from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]  # ditto

from deepera_graph.agents.cached import cache_key
from deepera_graph.calibration.instance import DatasetError
from deepera_graph.stores.judgements import JudgementCache

DIMENSIONS = 128
_BATCH = 256


# Source: Deerwester et al. (1990), Indexing by latent semantic analysis; scikit-learn's
# `TruncatedSVD` with its seed set to 0.
class LsaEmbeddings(Embeddings):
    """Unit vectors fitted to at least two texts: TF-IDF, cut down to 128 dimensions; no model."""

    model = f"lsa-{DIMENSIONS}"

    def __init__(self, texts: Sequence[str]) -> None:
        if len(texts) < 2:
            raise DatasetError(f"at least 2 chunks of text are needed, got {len(texts)}")
        self._words = TfidfVectorizer(sublinear_tf=True, stop_words="english", max_df=0.5)
        try:
            counts = self._words.fit_transform(texts)
        except ValueError as error:
            raise DatasetError(
                f"{len(texts)} chunks cannot be embedded: no word tells one from another"
            ) from error
        size = min(DIMENSIONS, *(side - 1 for side in counts.shape))
        if size < 1:
            raise DatasetError(f"{len(texts)} texts are too few to be embedded")
        found = TruncatedSVD(size, random_state=0).fit(counts).components_
        self._axes = np.ascontiguousarray(found.T)  # (n_terms, size): a text takes a few rows of it

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text; shape (n_texts, n_dimensions)."""
        if not texts:
            return []
        raw = np.asarray(self._words.transform(texts) @ self._axes, dtype=np.float64)
        lengths = np.linalg.norm(raw, axis=1, keepdims=True)
        rows: list[list[float]] = (raw / np.where(lengths > 0, lengths, 1)).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text; shape (n_dimensions,)."""
        return self.embed_documents([text])[0]

    def describe(self) -> dict[str, Any]:
        """Return what the vectors depend on besides the corpus."""
        return {"name": self.model, "library": f"scikit-learn {version('scikit-learn')}"}


class CachedEmbeddings(Embeddings):
    """Embeddings that compute the vector of a text once, and keep it in single precision."""

    def __init__(self, embeddings: Embeddings, identity: str, cache: JudgementCache) -> None:
        self._embeddings, self._cache = embeddings, cache
        self.model = identity

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text; shape (n_texts, n_dimensions)."""
        keys = [self._key("text", text) for text in texts]
        found = {key: vector for key in set(keys) if (vector := self._read(key)) is not None}
        by_key = dict(zip(keys, texts, strict=True))
        missing = [(key, text) for key, text in by_key.items() if key not in found]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            made = self._embeddings.embed_documents([text for _, text in batch])
            for (key, _), vector in zip(batch, made, strict=True):
                found[key] = self._keep(key, vector)
        return [found[key] for key in keys]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question; shape (n_dimensions,)."""
        key = self._key("question", text)
        stored = self._read(key)
        return self._keep(key, self._embeddings.embed_query(text)) if stored is None else stored

    def _key(self, kind: str, text: str) -> str:
        return cache_key("vector", {kind: text}, {"embeddings": self.model})

    def _read(self, key: str) -> list[float] | None:
        value = self._cache.get(key)
        return None if value is None else _floats(base64.b64decode(value["vector"]))

    def _keep(self, key: str, vector: Sequence[float]) -> list[float]:
        """Store a vector, and return it as it will be read back."""
        data = np.asarray(vector, dtype="<f4").tobytes()
        self._cache.put(key, "vector", {"vector": base64.b64encode(data).decode()})
        return _floats(data)


def _floats(data: bytes) -> list[float]:
    vector: list[float] = np.frombuffer(data, dtype="<f4").tolist()
    return vector
