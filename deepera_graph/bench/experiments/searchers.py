"""Who finds passages in a store: embeddings, and two that need no model."""

from collections.abc import Callable, Sequence

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from deepera_graph.bench.bm25 import BM25Index
from deepera_graph.bench.build.embed import KeptEmbeddings, LsaEmbeddings
from deepera_graph.bench.experiments.setup import BM25, LSA, Setup
from deepera_graph.bench.vectors import unit_rows
from deepera_graph.cache.store import JudgementCache

Scores = NDArray[np.float64]
Searcher = Callable[[Sequence[str], Sequence[str]], Scores]


def searchers(setup: Setup) -> dict[str, Searcher]:
    """Return those of a setup by name: BM25, latent semantic vectors, and its embeddings.

    Each takes texts and questions and gives scores of shape (n_questions, n_texts).
    """
    found: dict[str, Searcher] = {BM25: _bm25, LSA: _lsa}
    for name, embeddings in setup.embeddings.items():
        found[name] = _dense(_kept(name, embeddings, setup))
    return {name: one for name, one in found.items() if name in setup.searchers} | {
        name: found[name] for name in setup.embeddings
    }


def _bm25(texts: Sequence[str], questions: Sequence[str]) -> Scores:
    index = BM25Index(texts)
    return np.stack([index.scores(question) for question in questions])


def _lsa(texts: Sequence[str], questions: Sequence[str]) -> Scores:
    return _dense(LsaEmbeddings(texts))(texts, questions)


def _dense(embeddings: Embeddings) -> Searcher:
    def search(texts: Sequence[str], questions: Sequence[str]) -> Scores:
        passages = unit_rows(embeddings.embed_documents(list(texts)))
        asked = unit_rows([embeddings.embed_query(question) for question in questions])
        return np.asarray(asked @ passages.T, dtype=np.float64)

    return search


def _kept(name: str, embeddings: Embeddings, setup: Setup) -> Embeddings:
    """Keep vectors between runs, if it is known what they depend on."""
    model = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
    if setup.keep is None or not isinstance(model, str):
        return embeddings
    return KeptEmbeddings(embeddings, f"{name} {model}", JudgementCache(setup.keep / "vectors"))
