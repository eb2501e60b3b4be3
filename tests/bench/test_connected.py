import numpy as np
import pytest

from deepera_graph.lab.build.search import find_neighbours, group_connected
from deepera_graph.stores.embeddings import unit_rows

N_DIMENSIONS = 24


def topic(axis, n, seed=0):
    """Documents close to one axis."""
    rows = np.random.default_rng(seed + axis).normal(0, 0.02, (n, N_DIMENSIONS))
    rows[:, axis] += 1
    return rows.astype(np.float32)


def find_connected(vectors, *, n_neighbours=10, **limits):
    return group_connected(find_neighbours(unit_rows(vectors), n_neighbours=n_neighbours), **limits)


def test_documents_without_neighbours_are_dropped():
    vectors = np.concatenate([topic(0, 20), topic(1, 1), topic(2, 20), topic(3, 2)])
    kept = find_connected(vectors, min_similarity=0.9, min_size=5)
    assert kept.tolist() == [True] * 20 + [False] + [True] * 20 + [False] * 2


def test_a_chain_of_similar_documents_is_one_group():
    angles = np.linspace(0, np.pi / 2, 30)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert find_connected(vectors, n_neighbours=2, min_similarity=0.99, min_size=30).all()


def test_the_order_and_the_length_of_vectors_do_not_matter():
    vectors = np.concatenate([topic(0, 12), topic(1, 3), topic(2, 9)])
    order = np.random.default_rng(1).permutation(len(vectors))
    scale = np.random.default_rng(2).uniform(0.1, 9, (len(vectors), 1)).astype(np.float32)
    kept = find_connected(vectors, min_similarity=0.9, min_size=5)
    assert find_connected((vectors * scale)[order], min_similarity=0.9, min_size=5).tolist() == (
        kept[order].tolist()
    )


def test_identical_documents_are_neighbours():
    vectors = np.repeat(topic(0, 1), 50, axis=0)
    assert find_connected(vectors, n_neighbours=3, min_similarity=1, min_size=50).all()


def test_a_document_without_a_vector_is_alone():
    vectors = np.concatenate([topic(0, 6), np.zeros((1, N_DIMENSIONS), np.float32)])
    assert find_connected(vectors, min_similarity=0.5, min_size=2).tolist() == [True] * 6 + [False]


@pytest.mark.parametrize(("min_size", "kept"), [(1, [True]), (2, [False])])
def test_a_single_document(min_size, kept):
    assert find_connected(topic(0, 1), min_similarity=0.5, min_size=min_size).tolist() == kept
