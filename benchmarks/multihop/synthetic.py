"""Adaptive retrieval on invented passages: what it finds, and what a large graph costs."""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeVar

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from deepera_graph import NeighbourGraph
from deepera_graph.multihop.agent.adaptive import BUDGET, search_adaptively

T = TypeVar("T")
DIMENSIONS = 384
CLUSTER = 20  # passages about one thing
N_FIRST = 100
SPREAD = 2.0  # length of what tells passages of a cluster apart, the centre's being 1
BLUR = 0.15  # standard deviation of a scorer's error, of cosines
WORDS_A_PASSAGE = 90
VOCABULARY = 40_000


class Invented(Embeddings):
    """Vectors of passages by their number: those of a cluster lie around one centre."""

    def __init__(self, n_passages: int, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        centres = self._draw(-(-n_passages // CLUSTER))
        owners = np.arange(n_passages) // CLUSTER
        self.centres = centres
        self.vectors = centres[owners] + SPREAD * self._draw(n_passages)
        self.vectors /= np.linalg.norm(self.vectors, axis=1, keepdims=True)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of passages, whose texts end in their numbers."""
        numbers = [int(text.rpartition(" ")[2]) for text in texts]
        return [self.vectors[number].tolist() for number in numbers]

    def embed_query(self, text: str) -> list[float]:
        """Return the centre of the cluster that a text names."""
        return [float(one) for one in self.centres[int(text.rpartition(" ")[2])]]

    def _draw(self, n: int) -> NDArray[np.float32]:
        drawn = self._random.standard_normal((n, DIMENSIONS), dtype=np.float32)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def invent_passages(n: int) -> list[Document]:
    """Return passages without words of their own, for graphs by meaning."""
    return [Document(id=f"p{number}", page_content=f"passage {number}") for number in range(n)]


def invent_texts(n: int, seed: int = 0) -> list[Document]:
    """Return passages of words as frequent as in prose, for graphs by words."""
    random = np.random.default_rng(seed)
    ranks = random.zipf(1.3, size=(n, WORDS_A_PASSAGE)) % VOCABULARY
    return [
        Document(id=f"p{number}", page_content=" ".join(f"w{rank}x" for rank in row))
        for number, row in enumerate(ranks)
    ]


class Recall(NamedTuple):
    """Share of the relevant passages among those scored, mean over questions."""

    reranked: float
    adaptive: float


def measure_recall(n_passages: int, n_questions: int, *, seed: int = 0) -> Recall:
    """Compare reranking and adaptive retrieval at the same budget.

    A question is about one cluster. The first stage finds a random half of it, at random places
    among its first 50, between passages of other clusters; the scorer is a cosine with an error.
    """
    embeddings = Invented(n_passages, seed)
    graph = NeighbourGraph.build(invent_passages(n_passages), embeddings)
    random = np.random.default_rng(seed + 1)
    chosen = random.choice(n_passages // CLUSTER, n_questions, replace=False)
    found = [_ask_one(int(cluster), graph, embeddings, random) for cluster in chosen]
    return Recall(*(float(np.mean(column)) for column in zip(*found, strict=True)))


def _ask_one(
    cluster: int, graph: NeighbourGraph, embeddings: Invented, random: np.random.Generator
) -> Recall:
    members = np.arange(cluster * CLUSTER, (cluster + 1) * CLUSTER)
    seen = random.choice(members, CLUSTER // 2, replace=False)
    others = np.setdiff1d(random.choice(len(graph), 2 * N_FIRST, replace=False), members)
    n_among = BUDGET - len(seen)
    above = random.permutation([*seen, *others[:n_among]])
    first = [*above, *others[n_among : N_FIRST - len(seen)]]
    errors = random.normal(0, BLUR, len(graph))

    def score(question: str, ids: Sequence[str]) -> list[float]:
        numbers = [int(name[1:]) for name in ids]
        return [
            float(embeddings.vectors[number] @ embeddings.centres[cluster] + errors[number])
            for number in numbers
        ]

    names = [f"p{number}" for number in first]
    relevant = {f"p{number}" for number in members}
    result = search_adaptively(f"about {cluster}", names, graph.neighbours, score)
    adaptive = {one.id for one in result.passages}
    return Recall(len(relevant & {*names[:BUDGET]}) / CLUSTER, len(relevant & adaptive) / CLUSTER)


def measure_scale(n_passages: int, by: str, n_queries: int = 200) -> None:
    """Print what building, keeping, opening, growing and asking a graph takes."""
    embeddings = Invented(n_passages)
    passages = invent_passages(n_passages) if by == "meaning" else invent_texts(n_passages)
    _report("before", lambda: None)
    graph = _report(
        "built",
        lambda: (
            NeighbourGraph.build(passages[:-1000], embeddings)
            if by == "meaning"
            else NeighbourGraph.of_words(passages)
        ),
    )
    if by == "meaning":
        graph = _report("1 000 added", lambda: graph.add(passages))
    with TemporaryDirectory() as folder:
        _report("saved", lambda: graph.save(folder))
        size = sum(one.stat().st_size for one in Path(folder).iterdir())
        _say(f"on disk: {size / 2**20:.0f} MB")
        opened = _report("opened", lambda: NeighbourGraph.load(folder))
        random = np.random.default_rng(0)
        start = time.perf_counter()
        for _ in range(n_queries):
            names = [f"p{number}" for number in random.choice(n_passages, N_FIRST, replace=False)]
            search_adaptively("any", names, opened.neighbours, lambda _, ids: [0.5] * len(ids))
        taken = (time.perf_counter() - start) / n_queries
        _say(f"a query without its scorer: {1000 * taken:.1f} ms")


def _report(what: str, do: Callable[[], T]) -> T:
    started, used = time.perf_counter(), time.process_time()
    made = do()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    _say(
        f"{what}: {time.perf_counter() - started:.1f} s, {time.process_time() - used:.1f} s of "
        f"CPU time; at most {most:.0f} MB so far"
    )
    return made


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("recall", "scale"))
    parser.add_argument("--passages", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--by", choices=("meaning", "words"), default="meaning")
    given = parser.parse_args()
    if given.what == "scale":
        measure_scale(given.passages, given.by)
        return
    found = measure_recall(given.passages, given.questions)
    _say(
        f"{given.questions} questions, {given.passages} passages, {BUDGET} scored: recall "
        f"{found.reranked:.3f} reranked, {found.adaptive:.3f} adaptive"
    )


if __name__ == "__main__":
    main()
