"""How ranks are made of numbers, and probabilities of ranks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judges.trained.features import Measures, Read, ResultsRole
from deepera_graph.judges.trained.pool_features import (
    SURROUNDINGS,
    Company,
    company,
    surroundings,
    together,
)
from deepera_graph.judges.trained.similarity import Counts, as_claim, log_odds, probability
from deepera_graph.judges.trained.trees import Trees

Floats = NDArray[np.float64]


FEWEST, MANY = 10, 20  # passages; of 320 articles trained on, three have fewer than 15
MOST_COUNTED = 40  # passages; most questions trained on have 30 to 45
_SUPPORT_ranking, _TOPIC = SURROUNDINGS.index("support"), SURROUNDINGS.index("topic")
_POOL = [i for i, name in enumerate(SURROUNDINGS) if name.startswith("pool_")]
N_POOL = len(_POOL)
_OF_BEST = [Measures._fields.index(name) for name in ("cosine", "match", "strength")]


@dataclass(frozen=True, slots=True)
class Line:
    """A logistic regression.

    Attributes:
        SEEN: How many numbers it sees.
        weights: What each of them weighs.
        start: Added to their sum.
    """

    SEEN: ClassVar[int]
    weights: Sequence[float]
    start: float

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"weights": list(self.weights), "start": self.start}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return it of its plain form; a `ValueError` if it sees another number of things."""
        if len(plain["weights"]) != cls.SEEN:
            raise ValueError(f"{cls.__name__} sees {cls.SEEN} numbers, not {len(plain['weights'])}")
        return cls(plain["weights"], plain["start"])

    def _probability(self, numbers: Floats) -> Floats:
        total = numbers @ np.array(self.weights) + self.start
        return probability(np.asarray(total, np.float64))


@dataclass(frozen=True, slots=True)
class Scale(Line):
    """Turns the ranks of one question's passages into probabilities; it sees what `seen` gives."""

    SEEN = 4

    def probabilities(self, ranks: Floats) -> Floats:
        """Return how likely each passage is evidence, in [0, 1]."""
        return self._probability(seen(ranks))


def seen(ranks: Floats) -> Floats:
    """Return what the scale sees of each passage: its rank value, and its lead over the others.

    Returns:
        Shape (n, 4): the value; how far it is above the best other, at most 3; how far below, at
        most 3; `size` of n. All but the value are 0 for a passage alone.
    """
    if len(ranks) < 2:
        return np.column_stack([ranks, np.zeros((len(ranks), 3))])
    order = np.argsort(-ranks, kind="stable")
    best = np.full(len(ranks), ranks[order[0]])
    best[order[0]] = ranks[order[1]]
    lead = ranks - best
    sizes = np.full(len(ranks), size(len(ranks)))
    return np.column_stack([ranks, np.clip(lead, 0, 3), np.clip(-lead, 0, 3), sizes])


def size(n: int) -> float:
    """Return what a number of passages counts as: its natural logarithm, at most that of 40.

    Few questions are trained on with more, so what more would say is not known.
    """
    return log(min(n, MOST_COUNTED))


@dataclass(frozen=True, slots=True)
class Presence(Line):
    """Tells how likely there is evidence among some passages at all; it sees `best_of`."""

    SEEN = 9

    def probability(self, ranks: Floats, found: Company, around: Floats) -> float:
        """Return the probability for the passages of one question, in [0, 1]."""
        return float(self._probability(best_of(ranks, found, around)))


def best_of(ranks: Floats, found: Company, around: Floats) -> Floats:
    """Return what `Presence` sees: the passage that is ranked first, and its lead.

    Returns:
        Shape (9,): its rank value, its lead over the second (at most 3), how likely it is on
        topic, of one study with a passage on topic (both 0 where there is no other), and a report
        of results; its `cosine`, `match` and `strength`; `size` of the number of passages.
    """
    first = int(ranks.argmax())
    lead = seen(ranks)[first, 1]
    support = np.nan_to_num(around[first, _SUPPORT_ranking])
    return np.array(
        [
            ranks[first],
            lead,
            np.nan_to_num(around[first, _TOPIC]),
            support,
            found.results[first],
            *found.measures[first, _OF_BEST],
            size(len(ranks)),
        ]
    )


@dataclass(frozen=True, slots=True)
class OnePaper(Line):
    """Tells how likely all passages of a question are of one paper; it sees `pool_numbers`.

    A paper has many passages, and a few on one subject look like one paper's, too. So up to
    `FEWEST` are never taken for one, and from `MANY` on the regression alone decides.
    """

    SEEN = N_POOL

    def probability(self, around: Floats) -> float:
        """Return the probability for the passages of one question, in [0, 1]."""
        known = (len(around) - FEWEST) / (MANY - FEWEST)
        if known <= 0:
            return 0.0
        return min(1.0, known) * float(self._probability(pool_numbers(around)))


def pool_numbers(around: Floats) -> Floats:
    """Return what `OnePaper` sees: numbers that all passages of a question share, shape (N_POOL,).

    Args:
        around: Shape (n, len(SURROUNDINGS)); not all of it NaN.
    """
    known = np.flatnonzero(~np.isnan(around[:, _POOL[0]]))[0]  # a passage without others has none
    return np.asarray(around[known, _POOL], np.float64)


@dataclass(frozen=True, slots=True)
class Ranking:
    """How the passages of one kind of question are ranked together, and how that is read."""

    trees: Trees
    scale: Scale
    presence: Presence

    def evidence(self, numbers: Floats, found: Company, around: Floats) -> Floats:
        """Return how likely each passage is evidence, in [0, 1], shape (n,)."""
        ranks = self.trees.log_odds(numbers)
        return self.scale.probabilities(ranks) * self.presence.probability(ranks, found, around)

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "trees": self.trees.plain(),
            "scale": self.scale.plain(),
            "presence": self.presence.plain(),
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return it of its plain form."""
        scale, presence = Scale.of(plain["scale"]), Presence.of(plain["presence"])
        return cls(Trees.of(plain["trees"]), scale, presence)


@dataclass(frozen=True, slots=True)
class Lone:
    """How a passage is judged that has no other beside it."""

    trees: Trees
    scale: Scale

    def evidence(self, found: Company) -> Floats:
        """Return how likely each passage is evidence, by itself, in [0, 1], shape (n,)."""
        return self.scale.probabilities(self.trees.log_odds(found.alone()))

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"trees": self.trees.plain(), "scale": self.scale.plain()}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return it of its plain form."""
        return cls(Trees.of(plain["trees"]), Scale.of(plain["scale"]))


_SUPPORT_head = SURROUNDINGS.index("support")
_LEAST_PART = 0.01  # of the ranking for one paper, below which it is not asked


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
        question: Ranks passages of several papers for a question.
        article: Ranks passages of one paper for a question.
        claim: Ranks passages for a claim.
        question_alone: Judges one passage for a question.
        claim_alone: Judges one passage for a claim.
        one_paper: Are the passages of one paper?
        about: How it was trained; plain data.
    """

    counts: Counts
    role: ResultsRole
    topic: Trees
    link: Trees
    question: Ranking
    article: Ranking
    claim: Ranking
    question_alone: Lone
    claim_alone: Lone
    one_paper: OnePaper
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
        is_claim = as_claim(question)
        if np.isnan(around).all():
            evidence = (self.claim_alone if is_claim else self.question_alone).evidence(found)
        else:
            evidence = self._beside_others(found, around, is_claim=is_claim)
        return Found(evidence, topics, around[:, _SUPPORT_head], found.results)

    def _beside_others(self, found: Company, around: Floats, *, is_claim: bool) -> Floats:
        """Judge passages by the ranking for them; by both where it is not sure which.

        Their log odds are weighed, not their probabilities: a passage that both put low stays low.
        """
        numbers = together(found.measures, around)
        if is_claim:
            return self.claim.evidence(numbers, found, around)
        of_one = self.one_paper.probability(around)
        if of_one < _LEAST_PART:
            return self.question.evidence(numbers, found, around)
        several, one = (
            log_odds(ranking.evidence(numbers, found, around))
            for ranking in (self.question, self.article)
        )
        return probability((1 - of_one) * several + of_one * one)

    def plain(self) -> dict[str, Any]:
        """Return the head as plain data."""
        return {
            "about": dict(self.about),
            "counts": {"passages": self.counts.n_passages, "tokens": dict(self.counts.counts)},
            "role": self.role.plain(),
            "topic": self.topic.plain(),
            "link": self.link.plain(),
            "question": self.question.plain(),
            "article": self.article.plain(),
            "claim": self.claim.plain(),
            "question_alone": self.question_alone.plain(),
            "claim_alone": self.claim_alone.plain(),
            "one_paper": self.one_paper.plain(),
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return the head of its plain form, as `plain` gives it."""
        return cls(
            counts=Counts(plain["counts"]["passages"], plain["counts"]["tokens"]),
            role=ResultsRole.of(plain["role"]),
            topic=Trees.of(plain["topic"]),
            link=Trees.of(plain["link"]),
            question=Ranking.of(plain["question"]),
            article=Ranking.of(plain["article"]),
            claim=Ranking.of(plain["claim"]),
            question_alone=Lone.of(plain["question_alone"]),
            claim_alone=Lone.of(plain["claim_alone"]),
            one_paper=OnePaper.of(plain["one_paper"]),
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
