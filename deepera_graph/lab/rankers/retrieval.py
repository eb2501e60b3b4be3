"""Rankers by retrieval: BM25, cosine under any embeddings, and neighbours of what scored well."""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any, NamedTuple, TypeVar

import bm25s  # type: ignore[import-untyped]  # has no stubs
import numpy as np
import Stemmer  # type: ignore[import-not-found]  # a C extension without stubs
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from deepera_graph import __version__
from deepera_graph.agents.twin import do
from deepera_graph.calibration.instance import UnavailableError
from deepera_graph.errors import BackendError, BudgetError, CallError, RoleError, SettingsError
from deepera_graph.judges.embeddings import open_openai
from deepera_graph.lab.asking import of_run
from deepera_graph.lab.rankers.base import (
    CandidatePassage,
    Job,
    Ranker,
    Ranking,
    as_document,
    rank_by_score,
    texts_of,
)
from deepera_graph.lab.rankers.deepera import asks_model
from deepera_graph.lab.rankers.external import sentence_versions
from deepera_graph.multihop.agent.adaptive import search_adaptively
from deepera_graph.multihop.passages.graph import NeighbourGraph
from deepera_graph.multihop.passages.judging import score_all, score_passages
from deepera_graph.packages import call_foreign
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.settings.budget import Meter, with_meter
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.stores.embeddings import SentenceEmbeddings, unit_rows
from deepera_graph.usage import Usage

STEMMER = "english"
STOP_WORDS = "en"
_MOST_VECTORS_KEPT = 20_000
_SERVER = re.compile(r"@(?=https?://)")
Vector = NDArray[np.float32]
T = TypeVar("T")


# Source: Lu, Xing Han (2024), BM25S; its defaults: Lucene's variant, k1 1.5, b 0.75.
class BM25Index:
    """An index over texts, held in memory, without English stop words, of Snowball stems."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._stemmer = Stemmer.Stemmer(STEMMER)
        self._n_texts = len(texts)
        tokens = self._tokens(texts)
        self._model: Any = None
        if any(tokens):
            self._model = bm25s.BM25()
            self._model.index(tokens, show_progress=False)

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return one score >= 0 a text; 0 where no word of the query occurs; shape (n_texts,)."""
        words = self._tokens([query])[0]
        if not words or self._model is None:
            return np.zeros(self._n_texts)
        return np.asarray(self._model.get_scores(words), dtype=np.float64)

    def _tokens(self, texts: Sequence[str]) -> list[list[str]]:
        tokens: list[list[str]] = bm25s.tokenize(
            list(texts),
            stopwords=STOP_WORDS,
            stemmer=self._stemmer,
            show_progress=False,
            return_ids=False,
        )
        return tokens


def bm25_versions() -> dict[str, str]:
    """Return what BM25 scores depend on besides the texts."""
    return {
        "library": f"bm25s {version('bm25s')}",
        "stemmer": f"PyStemmer {version('PyStemmer')} {STEMMER}",
        "stop_words": STOP_WORDS,
    }


class IndexHit(NamedTuple):
    """One document a first stage found; a higher score is better."""

    id: str
    score: float


class CorpusBM25:
    """BM25 over a corpus held in memory."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._ids = list(texts)
        self._index = BM25Index(list(texts.values()))

    def search(self, query: str, n: int) -> list[IndexHit]:
        """Return the best *n* documents, or all if there are fewer; ties in corpus order."""
        scores = self._index.scores(query)
        best = np.argsort(-scores, kind="stable")[:n]
        return [IndexHit(self._ids[place], float(scores[place])) for place in best]


class BM25(Ranker):
    """Counts shared words; how rare a word is comes from the passages of the question alone."""

    name = "BM25"

    def __init__(self) -> None:
        self.fingerprint = {"kind": "bm25 over the pool", **bm25_versions()}

    def rank(self, question: str, passages: Sequence[CandidatePassage]) -> Ranking:
        """Return all passages by BM25 score, >= 0."""
        if not passages:
            return []
        return rank_by_score(passages, list(BM25Index(texts_of(passages)).scores(question)))


def _ask(work: Callable[[], T]) -> T:
    """Have embeddings work; if they cannot, the ranker is not available."""
    try:
        return call_foreign("no embeddings", work, error=UnavailableError)
    except SettingsError as error:
        raise UnavailableError(str(error)) from error


class Dense(Ranker):
    """Ranks by the cosine of question and passage; vectors of passages seen before are kept."""

    def __init__(
        self, embeddings: Embeddings, *, name: str, fingerprint: Mapping[str, Any] | None = None
    ) -> None:
        self.name, self.fingerprint = name, fingerprint
        self.embeddings = embeddings
        self._vectors: OrderedDict[str, Vector] = OrderedDict()

    def prepare(self) -> None:
        """Load the model, by embedding a word."""
        if not self._vectors:
            _ask(lambda: self.embeddings.embed_query("word"))

    def rank(self, question: str, passages: Sequence[CandidatePassage]) -> Ranking:
        """Return all passages by cosine, in [-1, 1]; 0 for a vector of length 0."""
        if not passages:
            return []
        asked = unit_rows(_ask(lambda: self.embeddings.embed_query(question)))[0]
        vectors = np.stack(self._embed_texts(texts_of(passages)))
        return rank_by_score(passages, list(vectors @ asked))

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Do what `rank` does for many questions, with one call for all their passages."""
        self._embed_texts([text for _, passages in jobs for text in texts_of(passages)])
        return [self.rank(*job) for job in jobs]

    def _embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        vectors_of_new = _ask(lambda: self.embeddings.embed_documents(new)) if new else []
        for text, vector in zip(new, vectors_of_new, strict=True):
            self._vectors[text] = unit_rows(vector)[0]
        vectors = [self._vectors[text] for text in texts]
        while len(self._vectors) > _MOST_VECTORS_KEPT:
            self._vectors.popitem(last=False)
        return vectors


def dense_openai(named: str) -> Dense:
    """Return the ranker for ``MODEL`` or ``MODEL@http://server/v1``."""
    model, *server = _SERVER.split(named, maxsplit=1)
    base_url = server[0] if server else None
    about = {"kind": "dense openai", "model": model, "base_url": base_url}
    embeddings = _ask(lambda: open_openai(model, base_url))
    return Dense(embeddings, name=f"dense {model}", fingerprint=about)


def dense_sentences(model: str) -> Dense:
    """Return the ranker by cosine under a bi-encoder of sentence-transformers."""
    embeddings = _ask(lambda: SentenceEmbeddings(model, own_prompts=True))
    about = {"kind": "dense sentence-transformers", **embeddings.about, **sentence_versions()}
    return Dense(embeddings, name=f"dense {model}", fingerprint=about)


BUDGET, BATCH_SIZE, NEIGHBOURS = 15, 5, 8  # half of a pool of 30 is read, in three turns
_AT_ONCE = 8


# Source: SUNAR, section on neighbourhood-aware retrieval, after MacAvaney, Tonellotto and Macdonald
# (2022). Its graph spans a corpus; a ranker is shown the candidates alone, so here it spans these.
class Nar(Ranker):
    """Judges a part of the passages: the best of the first stage and neighbours of what is good.

    What the budget does not reach stands behind, in first-stage order; the last of all are the
    passages that could not be judged.
    """

    def __init__(
        self,
        reranker: EvidenceReranker,
        *,
        budget: int = BUDGET,
        batch_size: int = BATCH_SIZE,
        n_neighbours: int = NEIGHBOURS,
        name: str = "",
        meter: Meter | None = None,
    ) -> None:
        for what, value in (("budget", budget), ("batch_size", batch_size)):
            check_at_least(what, value, 1)
        check_at_least("n_neighbours", n_neighbours, 1)
        self._reranker, self._scores_all = reranker, score_all(reranker)
        self._options = {"budget": budget, "batch_size": batch_size, "neighbours": n_neighbours}
        self._meter = meter or Meter(None)
        self._config = with_meter({}, self._meter)
        self.name = name or f"NAR {reranker.backend.name}"
        self.asks_model = asks_model(reranker.backend.spec)
        self.fingerprint = self._identify()

    def _identify(self) -> Mapping[str, Any] | None:
        backend = self._reranker.backend
        if backend.spec is None:
            return None
        return {
            "kind": "nar",
            "backend": backend.fingerprint()["spec"],
            "about": dict(backend.about),
            **self._options,
            "version": __version__,
        }

    def repeat(self, number: int) -> "Nar":
        """Return this ranker for one run, which a cache answers with nothing of other runs."""
        if not number:
            return self
        backend = of_run(self._reranker.backend, number)
        return Nar(
            self._reranker.with_backend(backend),
            budget=self._options["budget"],
            batch_size=self._options["batch_size"],
            n_neighbours=self._options["neighbours"],
            name=self.name,
            meter=self._meter,
        )

    @property
    def usage(self) -> Usage:
        """Model calls and tokens so far, of all that share the budget."""
        return self._meter.spent

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Do what `rank` does for many questions, some at once."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(lambda job: self.rank(*job), jobs))

    def rank(self, question: str, passages: Sequence[CandidatePassage]) -> Ranking:
        """Return what was judged by its score, then the rest; scores fall by rank."""
        if len(passages) < 2:
            return [(one["id"], -1.0) for one in passages]
        documents = {one["id"]: as_document(one) for one in passages}
        ids = [one["id"] for one in passages]
        graph = NeighbourGraph.of_words(
            documents.values(), min(self._options["neighbours"], len(ids) - 1)
        )
        found = search_adaptively(
            question,
            ids,
            graph.neighbours,
            lambda asked, chosen: self._score(asked, [documents[id] for id in chosen]),
            budget=self._options["budget"],
            batch_size=self._options["batch_size"],
        )
        ranked = [one.id for one in found.passages]
        failed = [one.id for one in found.unscored]
        rest = [id for id in ids if id not in {*ranked, *failed}]
        order = [*ranked, *rest, *failed]
        return [(id, -float(rank)) for rank, id in enumerate(order, start=1)]

    def _score(self, question: str, passages: Sequence[Document]) -> list[float | None]:
        scores: list[float | None] = []
        for one in do(score_passages(self._scores_all, question, passages, self._config)):
            if isinstance(one, BudgetError):
                raise one
            if isinstance(one, CallError) and one.unusable:
                raise BackendError(f"{self.name}: {one}") from one
            if isinstance(one, RoleError):
                self.problems.note(1, str(one))
            scores.append(None if isinstance(one, RoleError) else one)
        return scores
