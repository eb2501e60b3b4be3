"""Papers that may answer a question, and which of them judges need not be asked about."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from langchain_core.embeddings import Embeddings

from deepera_graph.lab.quest.plan import QuestPlan, QuestQuestion
from deepera_graph.lab.quest.sources import Merged, SourceCall
from deepera_graph.papers.paper import Paper
from deepera_graph.retrieval.fusion import fuse
from deepera_graph.stores.embeddings import unit_rows
from deepera_graph.text.words import stems

# Chosen on planted worlds so that no answer is lost there; see docs/quest.md.
FLOORS = {"local": 0.15, "words": 0.1}
_DIGITS = 3
_OFTEN = 2  # searches that found it: such a paper is judged however far it seems


class QuestCandidates:
    """The papers found for one question: in the order in which they are judged, each once."""

    def __init__(
        self, question: QuestQuestion, plan: QuestPlan, embeddings: Embeddings | None
    ) -> None:
        self.merged = Merged()
        self.left_out: dict[str, list[str]] = defaultdict(list)
        self._question, self._plan, self._embeddings = question, plan, embeddings
        self._rankings: list[list[str]] = []
        self._times: Counter[str] = Counter()
        self._near: dict[str, float] = {}

    def add(self, call: SourceCall) -> list[str]:
        """Take in what a call brought; return the ids, best first."""
        ids = list(dict.fromkeys(self.merged.add(call.source, one) for one in call.papers))
        if call.tool == "search":
            self._rankings.append(ids)
            self._times.update(ids)
        return ids

    def order(self) -> list[str]:
        """Return what searches found, best first: ranks of all searches joined, ties by id."""
        scores = fuse(self._rankings)
        return sorted(scores, key=lambda id: (-round(scores[id], 12), id))

    def paper(self, id: str) -> Paper:
        """Return a paper."""
        return self.merged.papers[id]

    def nearness(self, id: str) -> float:
        """Return how near a paper is to the question, as far as it was measured."""
        return self._near.get(id, 0.0)

    def keep_likely(self, ids: Sequence[str]) -> list[str]:
        """Return those that judges are asked about, in the same order; the rest is noted.

        Left out are papers without an abstract, from other years than the question asks for, those
        that are far from the question and that no two searches found, and, if the plan says so,
        those that no source has matched to arXiv.
        """
        known = {id for why, ids in self.left_out.items() if why != "pruned" for id in ids}
        whole = [id for id in ids if id not in known and self._passes(id)]
        self._measure(whole)
        floor = FLOORS.get(self._plan.prefilter) if self._plan.floor is None else self._plan.floor
        kept = []
        for id in whole:
            is_far = floor is not None and self._near.get(id, 1.0) < floor
            if is_far and self._times[id] < _OFTEN:
                self.left_out["far"].append(id)
            else:
                kept.append(id)
        return kept

    def _passes(self, id: str) -> bool:
        paper, scope = self.paper(id), self._question.scope
        reason = "" if paper.abstract.strip() else "no_abstract"
        year = paper.year
        if self._plan.only_arxiv and id not in self.merged.on_arxiv:
            reason = "not_on_arxiv"
        if year and scope.year_from and year < scope.year_from:
            reason = "out_of_years"
        if year and scope.year_to and year > scope.year_to:
            reason = "out_of_years"
        if reason:
            self.left_out[reason].append(id)
        return not reason

    def _measure(self, ids: Sequence[str]) -> None:
        new = [id for id in ids if id not in self._near]
        if not new or self._plan.prefilter == "none":
            return
        if self._plan.prefilter == "words":
            asked = set(stems(self._wanted()))
            for id in new:
                has = set(stems(self.paper(id).text))
                self._near[id] = round(len(asked & has) / (len(asked) or 1), _DIGITS)
            return
        assert self._embeddings is not None  # the builder opens them
        texts = [self._question.query, *(self.paper(id).text for id in new)]
        rows = np.asarray(unit_rows(self._embeddings.embed_documents(texts)))
        for id, cosine in zip(new, rows[1:] @ rows[0], strict=True):
            self._near[id] = round(float(cosine), _DIGITS)

    def _wanted(self) -> str:
        values = self._question.constraints.values()
        return " ".join(map(str, (self._question.query, *values)))
