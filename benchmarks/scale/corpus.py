"""The corpus of `deepera-lab bench build`: seconds and memory of each step, without a chat model.

``python benchmarks/scale/corpus.py --documents 5000``; ``--workers 2`` does the work on Ray.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from processes import busy, resident, tree
from threadpoolctl import threadpool_limits

from deepera_graph.jobs.cluster import Here, RayWorkers, Workers
from deepera_graph.lab.build.corpus import Document, read_corpus
from deepera_graph.lab.build.search import (
    ChunkSearch,
    LsaEmbeddings,
    drop_unconnected,
    embed_chunks,
)
from deepera_graph.lab.settings import BuildPlan

_MIB = 2**20
_N_WORDS, _N_TOPICS, _OF_TOPIC = 40_000, 2_000, 60
_N_QUESTIONS, _IN_POOL = 100, 30
_N_FITTED = 50_000  # as in a build
_COMMON_TEXT = "the of and in to was with for were that by is as at from this on are be an"
_COMMON = _COMMON_TEXT.split()
_SYLLABLES = [first + last for first in "bcdfglmnprstv" for last in ("a", "el", "io", "um", "or")]


def main() -> None:
    """Take each step, and say what it took."""
    options = _options()
    one_thread = threadpool_limits(1)  # as in a build
    with one_thread, TemporaryDirectory() as name, _open_workers(options.workers) as workers:
        _measure(options.documents, Path(name), workers)


def make_documents(n: int) -> Iterator[Document]:
    """Yield invented abstracts of eight sentences, about 150 words, on one of 2 000 topics each."""
    chance = Random(0)
    known = ["".join(chance.choices(_SYLLABLES, k=3)) for _ in range(_N_WORDS)]
    topics = [chance.sample(known, _OF_TOPIC) for _ in range(_N_TOPICS)]
    for number in range(n):
        own = chance.choice(topics)
        sentences = []
        for _ in range(8):
            words = (
                chance.choices(_COMMON, k=8) + chance.choices(own, k=7) + chance.choices(known, k=4)
            )
            chance.shuffle(words)
            sentences.append(" ".join(words).capitalize() + ".")
        yield Document(id=f"d{number}", text=" ".join(sentences))


def _measure(n: int, folder: Path, workers: Workers) -> None:
    clock = _Clock()
    corpus = read_corpus(
        make_documents(n), BuildPlan().max_tokens, [], path=folder / "c.sqlite3", workers=workers
    )
    clock.tell(f"read and cut {n} documents into {corpus.n_chunks} chunks")
    embeddings = LsaEmbeddings(corpus.sample_texts(_N_FITTED))
    clock.tell("fit LSA")
    vectors = embed_chunks(corpus, embeddings, identity="lsa", folder=folder, workers=workers)
    clock.tell(f"embed, {vectors.shape[1]} dimensions")
    drop_unconnected(corpus, vectors, BuildPlan(), [], folder=folder, workers=workers)
    clock.tell(f"compare all documents with all, {n - len(corpus.documents)} left out")
    search = ChunkSearch(corpus, vectors, embeddings)
    asyncio.run(_search(search, [text[:150] for text in corpus.sample_texts(_N_QUESTIONS)]))
    clock.tell(f"find the pools of {_N_QUESTIONS} questions")
    for file in sorted(folder.iterdir()):
        _say(f"{file.name}: {file.stat().st_size / _MIB:.0f} MiB")
    corpus.close()


async def _search(search: ChunkSearch, questions: list[str]) -> None:
    for question in questions:
        await search.find_nearest(question, _IN_POOL)


class _Clock:
    """Says what each step took of time, of CPU time of all processes, and of memory."""

    def __init__(self) -> None:
        self._since, self._spent = time.perf_counter(), self._busy()

    def tell(self, step: str) -> None:
        seconds, spent = time.perf_counter() - self._since, self._busy() - self._spent
        own = resident(os.getpid()) / _MIB
        others = sum(map(resident, tree(os.getpid())[1:])) / _MIB
        elsewhere = f", other processes {others:.0f} MiB" if others else ""
        _say(f"{step}: {seconds:.1f} s, CPU {spent:.1f} s, {own:.0f} MiB{elsewhere}")
        self._since, self._spent = time.perf_counter(), self._busy()

    @staticmethod
    def _busy() -> float:
        return sum(busy(tree(os.getpid())))


def _say(line: str) -> None:
    """Write to stderr: what is on stdout while Ray runs is dropped."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def _open_workers(n: int | None) -> AbstractContextManager[Workers]:
    return nullcontext(Here()) if n is None else RayWorkers(n)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=5_000)
    parser.add_argument("--workers", type=int, help="on Ray; in this process without it")
    return parser.parse_args()


if __name__ == "__main__":
    main()
