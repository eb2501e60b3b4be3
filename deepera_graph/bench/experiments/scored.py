"""One question as a ranker left it: scores, labels and reasons, to be filtered in many ways."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from deepera_graph.bench.instance import Instance
from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.rank import Ranked
from deepera_graph.thresholds import Gap, Quantile


@dataclass(frozen=True, slots=True)
class Labels:
    """What is known of a question besides its judgements.

    `types` maps a distractor to its type, ``distractor`` where none was given.
    """

    question: str
    source: str
    setting: str
    subject: str
    types: Mapping[str, str]

    @classmethod
    def of(cls, instance: Instance) -> "Labels":
        """Take them from an instance."""
        return cls(
            question=instance.question,
            source=instance.dataset,
            setting=instance.setting,
            subject=instance.subject,
            types={
                one.id: one.distractor_type or "distractor"
                for one in instance.contexts
                if one.is_distractor
            },
        )


@dataclass(frozen=True, slots=True)
class Scored:
    """One question and what a ranker made of it.

    Attributes:
        judged: The ranking with its labels.
        labels: What else is known of the question.
        first: The candidates in first-stage order; shape (n_candidates,).
        ranked: Cost, and the scores in the order of `judged.ranked`.
    """

    judged: Judged
    labels: Labels
    first: tuple[str, ...]
    ranked: Ranked

    @classmethod
    def of(cls, candidates: Judged, labels: Labels, ranked: Ranked) -> "Scored":
        """Join a ranking with the labels of its candidates, these in first-stage order."""
        return cls(candidates.reordered(ranked.places), labels, candidates.ranked, ranked)

    @property
    def scores(self) -> dict[str, float]:
        """Passage to score, best first; a negative one of DeepEra's means it failed."""
        return dict(zip(self.judged.ranked, self.ranked.scores, strict=True))

    @property
    def unproven(self) -> frozenset[str]:
        """Passages that a filter holds back whatever their score: no quote was found in them."""
        return frozenset(self.first[place - 1] for place in self.ranked.unproven)

    def first_stage(self) -> Judged:
        """Return the same labels in first-stage order."""
        return replace(self.judged, ranked=self.first)

    def cut(self, rule: Gap | Quantile) -> float:
        """Return the threshold that a rule sets for this question, in [0, 1]."""
        return rule.cut([score for score in self.ranked.scores if score >= 0], "other")

    def kept(
        self,
        *,
        threshold: float | None,
        n: int | None = None,
        order: Literal["score", "retrieval"] = "score",
    ) -> Judged:
        """Return what a filter would hand on, without asking the ranker again.

        Args:
            threshold: Lowest score kept, inclusive; None filters nothing.
            n: Most passages kept; None keeps all.
            order: Order of the kept: by falling score, or as they were retrieved.
        """
        scores, unproven = self.scores, self.unproven
        place = {id: number for number, id in enumerate(self.first)}
        chosen = sorted(scores, key=lambda id: (-scores[id], place[id]))
        if threshold is not None:
            chosen = [id for id in chosen if scores[id] >= threshold and id not in unproven]
        chosen = chosen[:n]
        if order == "retrieval":
            chosen.sort(key=place.__getitem__)
        return replace(self.judged, ranked=tuple(chosen))

    def why(self, passage: str) -> tuple[str, str]:
        """Return the reason and the quote for a passage; empty where the ranker gave none."""
        if not self.ranked.reasons:
            return "", ""
        place = self.judged.ranked.index(passage)
        return self.ranked.reasons[place], self.ranked.quotes[place]
