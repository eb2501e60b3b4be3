"""Which documents of a corpus have neighbours: the others are noise to a question about a topic."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array  # type: ignore[import-untyped]  # has no stubs
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]  # as above
from sklearn.neighbors import NearestNeighbors  # type: ignore[import-untyped]  # as above

from deepera_graph.errors import SettingsError


def connected(
    vectors: NDArray[np.float32],
    *,
    n_neighbours: int = 10,
    min_similarity: float,
    min_size: int,
) -> NDArray[np.bool_]:
    """Return which documents belong to a group of enough similar ones; shape (n_documents,).

    Two documents are joined if one is among the nearest of the other and their cosine is high
    enough. Groups are the connected components of that graph. Unlike density clustering (HDBSCAN)
    this leaves both limits to the caller, splits no large topic, never calls the rim of one noise,
    and gives the same answer whatever the order of the documents.

    Args:
        vectors: One a document, of any length; shape (n_documents, n_dimensions).
        n_neighbours: How many nearest documents each may be joined to, >= 1.
        min_similarity: Least cosine of two joined documents, in [-1, 1].
        min_size: Documents that a group must have to stay, >= 1.

    Raises:
        SettingsError: A limit is out of range, or a vector holds what is not a number.

    Source:
        DeepEra, section 6.1, filters weakly connected documents by clustering and does not say
        how.
    """
    _check(vectors, n_neighbours, min_similarity, min_size)
    n_documents = len(vectors)
    if n_documents < 2:
        return np.full(n_documents, min_size <= 1)
    nearest = NearestNeighbors(n_neighbors=min(n_neighbours, n_documents - 1), metric="cosine")
    distances, neighbours = nearest.fit(vectors).kneighbors()
    joined = distances <= 1 - min_similarity + _ROUNDING
    rows = np.repeat(np.arange(n_documents), joined.sum(axis=1))
    edges = (np.ones(len(rows)), (rows, neighbours[joined]))
    graph = csr_array(edges, shape=(n_documents, n_documents))
    _, group = connected_components(graph, directed=False)
    kept: NDArray[np.bool_] = np.bincount(group)[group] >= min_size
    return kept


_ROUNDING = 1e-6


def _check(
    vectors: NDArray[np.float32], n_neighbours: int, min_similarity: float, min_size: int
) -> None:
    if vectors.ndim != 2:
        raise SettingsError(f"vectors must have shape (n, dimensions), got {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise SettingsError("vectors must be finite numbers")
    if n_neighbours < 1 or min_size < 1:
        raise SettingsError(
            f"n_neighbours and min_size must be >= 1, got {n_neighbours} and {min_size}"
        )
    if not -1 <= min_similarity <= 1:
        raise SettingsError(f"min_similarity must be in [-1, 1], got {min_similarity}")
