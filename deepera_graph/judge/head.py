"""What training finds: everything of the judge but the encoder."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.likeness import Counts, as_claim
from deepera_graph.judge.measures import Measures, Read
from deepera_graph.judge.odds import probability
from deepera_graph.judge.results_role import ResultsRole
from deepera_graph.judge.surroundings import SURROUNDINGS, Company, company, surroundings
from deepera_graph.judge.trees import Trees

Floats = NDArray[np.float64]
SUPPORT, TOPIC = SURROUNDINGS.index("support"), SURROUNDINGS.index("topic")
_OF_BEST = [Measures._fields.index(name) for name in ("cosine", "match", "strength")]


@dataclass(frozen=True, slots=True)
class Scale:
    """Turns the ranks of one question's passages into probabilities: a logistic regression.

    Attributes:
        weights: For what `seen` gives.
        start: Added to it.
    """

    weights: Sequence[float]
    start: float

    def probabilities(self, ranks: Floats) -> Floats:
        """Return how likely each passage is evidence, in [0, 1]."""
        total = seen(ranks) @ np.array(self.weights) + self.start
        return probability(np.asarray(total, np.float64))


def seen(ranks: Floats) -> Floats:
    """Return what the scale sees of each passage: its rank value, and its lead over the others.

    Returns:
        Shape (n, 3): the value; how far it is above the best other, at most 3; how far below, at
        most 3. The latter two are 0 for a passage alone.
    """
    if len(ranks) < 2:
        return np.column_stack([ranks, np.zeros((len(ranks), 2))])
    order = np.argsort(-ranks, kind="stable")
    best = np.full(len(ranks), ranks[order[0]])
    best[order[0]] = ranks[order[1]]
    lead = ranks - best
    return np.column_stack([ranks, np.clip(lead, 0, 3), np.clip(-lead, 0, 3)])


@dataclass(frozen=True, slots=True)
class Presence:
    """Tells how likely there is evidence among some passages at all: a logistic regression.

    Attributes:
        weights: For what `best_of` gives.
        start: Added to it.
    """

    weights: Sequence[float]
    start: float

    def probability(self, ranks: Floats, found: Company, around: Floats) -> float:
        """Return the probability for the passages of one question, in [0, 1]."""
        total = float(best_of(ranks, found, around) @ np.array(self.weights)) + self.start
        return float(probability(np.array(total)))


def best_of(ranks: Floats, found: Company, around: Floats) -> Floats:
    """Return what `Presence` sees: the passage that is ranked first, and its lead.

    Returns:
        Shape (8,): its rank value, its lead over the second (at most 3), how likely it is on
        topic, of one study with a passage on topic (0 where there is no other), and a report of
        results; its `cosine`, `match` and `strength`.
    """
    first = int(ranks.argmax())
    lead = seen(ranks)[first, 1]
    support = np.nan_to_num(around[first, SUPPORT])
    return np.array(
        [
            ranks[first],
            lead,
            np.nan_to_num(around[first, TOPIC]),
            support,
            found.results[first],
            *found.measures[first, _OF_BEST],
        ]
    )


@dataclass(frozen=True, slots=True)
class Ranking:
    """How one kind of question is ranked: for passages in company, and for one alone."""

    together: Trees
    alone: Trees
    scale: Scale
    scale_alone: Scale
    presence: Presence


@dataclass(frozen=True, slots=True)
class Found:
    """What the judge finds, one number a passage, all of shape (n,).

    Attributes:
        evidence: Probability that it is evidence.
        topic: How likely it is on topic, by itself.
        support: How likely it is of one study with a passage on topic; NaN if there is no other.
        results: Probability that it reports results.
    """

    evidence: Floats
    topic: Floats
    support: Floats
    results: Floats


@dataclass(frozen=True)
class Head:
    """The trained parts above the encoder.

    Attributes:
        counts: Background counts of tokens.
        role: Tells results from other text.
        topic: Is a passage on topic?
        link: Are two passages of one study?
        question: Ranks passages for a question.
        claim: Ranks passages for a claim.
        about: How it was trained; plain data.
    """

    counts: Counts
    role: ResultsRole
    topic: Trees
    link: Trees
    question: Ranking
    claim: Ranking
    about: Mapping[str, Any]

    def judge(self, question: str, texts: Sequence[str], reads: Sequence[Read]) -> Found:
        """Judge the passages of one question together.

        Args:
            question: The question, or a claim.
            texts: What was encoded of each passage.
            reads: Each passage as read for the question.
        """
        return self.weigh(question, company(self.counts, question, texts, reads))

    def weigh(self, question: str, found: Company) -> Found:
        """Judge passages that are compared already."""
        topics = probability(self.topic.log_odds(found.topic()))
        around = surroundings(found, topics, self.link)
        ranking = self.claim if as_claim(question) else self.question
        support = around[:, SUPPORT]
        if np.isnan(around).all():
            ranks = ranking.alone.log_odds(found.alone())
            evidence = ranking.scale_alone.probabilities(ranks)
        else:
            ranks = ranking.together.log_odds(np.column_stack([found.measures, around]))
            there = ranking.presence.probability(ranks, found, around)
            evidence = ranking.scale.probabilities(ranks) * there
        return Found(evidence, topics, support, found.results)

    def plain(self) -> dict[str, Any]:
        """Return the head as plain data."""
        return {
            "about": dict(self.about),
            "counts": {"passages": self.counts.n_passages, "tokens": dict(self.counts.counts)},
            "role": self.role.plain(),
            "topic": self.topic.plain(),
            "link": self.link.plain(),
            "question": _plain_ranking(self.question),
            "claim": _plain_ranking(self.claim),
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return the head of its plain form, as `plain` gives it."""
        return cls(
            counts=Counts(plain["counts"]["passages"], plain["counts"]["tokens"]),
            role=ResultsRole.of(plain["role"]),
            topic=Trees.of(plain["topic"]),
            link=Trees.of(plain["link"]),
            question=_ranking(plain["question"]),
            claim=_ranking(plain["claim"]),
            about=plain["about"],
        )

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read a head from a file."""
        return cls.of(json.loads(file.read_text(encoding="utf-8")))

    def save(self, file: Path) -> None:
        """Write the head to a file."""
        text = json.dumps(self.plain(), separators=(",", ":"), sort_keys=True)
        file.write_text(text + "\n", encoding="utf-8")


def _plain_ranking(ranking: Ranking) -> dict[str, Any]:
    return {
        "together": ranking.together.plain(),
        "alone": ranking.alone.plain(),
        "scale": _plain_scale(ranking.scale),
        "scale_alone": _plain_scale(ranking.scale_alone),
        "presence": _plain_scale(ranking.presence),
    }


def _plain_scale(scale: Scale | Presence) -> dict[str, Any]:
    return {"weights": list(scale.weights), "start": scale.start}


def _ranking(plain: Mapping[str, Any]) -> Ranking:
    return Ranking(
        together=Trees.of(plain["together"]),
        alone=Trees.of(plain["alone"]),
        scale=Scale(plain["scale"]["weights"], plain["scale"]["start"]),
        scale_alone=Scale(plain["scale_alone"]["weights"], plain["scale_alone"]["start"]),
        presence=Presence(plain["presence"]["weights"], plain["presence"]["start"]),
    )
