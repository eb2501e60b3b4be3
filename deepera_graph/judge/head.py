"""What training finds: everything of the judge but the encoder."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.likeness import Counts, as_claim
from deepera_graph.judge.measures import Read
from deepera_graph.judge.odds import log_odds, probability
from deepera_graph.judge.ranking import Lone, OnePaper, Ranking
from deepera_graph.judge.results_role import ResultsRole
from deepera_graph.judge.standing import together
from deepera_graph.judge.surroundings import SURROUNDINGS, Company, company, surroundings
from deepera_graph.judge.trees import Trees

Floats = NDArray[np.float64]
_SUPPORT = SURROUNDINGS.index("support")
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
        return Found(evidence, topics, around[:, _SUPPORT], found.results)

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
