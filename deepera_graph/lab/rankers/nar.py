"""Neighbourhood-aware retrieval as a ranker: an agentic baseline under a budget of judgements."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langchain_core.documents import Document

from deepera_graph import __version__
from deepera_graph.budget import Meter, with_meter
from deepera_graph.errors import BackendError, BudgetError, CallError, RoleError
from deepera_graph.lab.rankers.base import CandidatePassage, Job, Ranker, Ranking
from deepera_graph.lab.rankers.deepera import asks_model
from deepera_graph.lab.rankers.llm import of_run
from deepera_graph.multihop.agent.adaptive import search_adaptively
from deepera_graph.multihop.passages.graph import NeighbourGraph
from deepera_graph.multihop.passages.judging import score_all, score_passages
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.settings import check_at_least
from deepera_graph.usage import Usage

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
        documents = {one["id"]: _to_document(one) for one in passages}
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
        for one in score_passages(self._scores_all, question, passages, self._config):
            if isinstance(one, BudgetError):
                raise one
            if isinstance(one, CallError) and one.unusable:
                raise BackendError(f"{self.name}: {one}") from one
            if isinstance(one, RoleError):
                self.problems.note(1, str(one))
            scores.append(None if isinstance(one, RoleError) else one)
        return scores


def _to_document(passage: CandidatePassage) -> Document:
    known = {key: passage[key] for key in ("title", "section") if passage[key]}
    return Document(id=passage["id"], page_content=passage["text"], metadata=known)
