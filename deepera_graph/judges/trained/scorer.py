"""How ranks are made of features, and probabilities of ranks: everything above the encoder."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judges.trained.features import PassageReading, ResultsClassifier
from deepera_graph.judges.trained.pool_features import (
    CONTEXT_FEATURES,
    SINGLE_FEATURES,
    PoolFeatures,
    compute_context_features,
    compute_pool_features,
    compute_ranking_features,
)
from deepera_graph.judges.trained.reading.vectors import TokenCounts, logit, sigmoid
from deepera_graph.judges.trained.trees import Trees
from deepera_graph.text.questions import looks_like_claim

Floats = NDArray[np.float64]

# passages; of 320 articles trained on, one in thirty has fewer than 21. Twenty passages of several
# papers on one narrow subject look like one paper, too
MIN_SAME_DOCUMENT, SURE_SAME_DOCUMENT = 20, 30
MAX_COUNTED = 40  # passages; most questions trained on have 30 to 45
ORDER_WEIGHT = 1.0
_LIKELY_ONE = 0.5  # probability of one paper from which on the reader reads nothing
_FOUND = 0.2  # a paper that is searched for an answer holds a passage of this score or more
_LEAST_PART = 0.01  # of the ranking for one paper, below which it is not asked
_POOL = [i for i, name in enumerate(CONTEXT_FEATURES) if name.startswith("pool_")]
_PAIRS = np.triu_indices(len(_POOL))  # of these features, each with itself, too
N_MEASURES = len(SINGLE_FEATURES)
N_SAME_DOCUMENT = len(_POOL) + len(_PAIRS[0])  # inputs of `SameDocumentModel`


@dataclass(frozen=True, slots=True)
class LogitModel:
    """A logistic regression over `N_INPUTS` numbers: what each weighs, and what is added."""

    N_INPUTS: ClassVar[int]
    weights: Sequence[float]
    start: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"weights": list(self.weights), "start": self.start}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return what `to_dict` gave; a `ValueError` if it takes another number of inputs."""
        n = len(plain["weights"])
        if n != cls.N_INPUTS:
            raise ValueError(f"{cls.__name__} takes {cls.N_INPUTS} numbers, not {n}")
        return cls(plain["weights"], plain["start"])

    def _predict(self, numbers: Floats) -> Floats:
        total = numbers @ np.array(self.weights) + self.start
        return sigmoid(np.asarray(total, np.float64))


@dataclass(frozen=True, slots=True)
class PlattScaling(LogitModel):
    """Turns the value that passages are ranked by into a probability, for each by itself."""

    N_INPUTS = 1

    def probabilities(self, values: Floats) -> Floats:
        """Return how likely each passage is evidence, in [0, 1], shape (n,)."""
        return self._predict(values[:, None])


def log_pool_size(n: int) -> float:
    """Return the natural logarithm of a number of passages, at most that of 40.

    Few questions are trained on with more, so what more would say is not known.
    """
    return log(min(n, MAX_COUNTED))


@dataclass(frozen=True, slots=True)
class AnswerabilityModel(LogitModel):
    """Tells how likely there is evidence among some passages at all."""

    N_INPUTS = 4

    def probability(self, absolute: Floats, order: Floats) -> float:
        """Return the probability for the passages of one question, in [0, 1]."""
        return float(self._predict(list_answerability_inputs(absolute, order)))


def list_answerability_inputs(absolute: Floats, order: Floats) -> Floats:
    """Return what `AnswerabilityModel` takes of a pool, shape (4,).

    The best and the second best log odds of evidence, the best value by which passages are ordered,
    and `log_pool_size`.
    """
    best = np.sort(absolute)[::-1]
    second = best[min(1, len(best) - 1)]
    return np.array([best[0], second, order.max(), log_pool_size(len(absolute))])


@dataclass(frozen=True, slots=True)
class SameDocumentModel(LogitModel):
    """Tells how likely all passages of a question are of one paper.

    A paper has many passages, and a few on one subject look like one paper's, too. So up to
    `MIN_SAME_DOCUMENT` are never taken for one; from `SURE_SAME_DOCUMENT` on the regression alone
    decides.
    """

    N_INPUTS = N_SAME_DOCUMENT

    def probability(self, context: Floats) -> float:
        """Return the probability for the passages of one question, in [0, 1]."""
        known = (len(context) - MIN_SAME_DOCUMENT) / (SURE_SAME_DOCUMENT - MIN_SAME_DOCUMENT)
        if known <= 0:
            return 0.0
        return min(1.0, known) * float(self._predict(list_same_document_inputs(context)))


def list_same_document_inputs(context: Floats) -> Floats:
    """Return the context features that all passages share, not all NaN, and their products.

    The shape is (N_SAME_DOCUMENT,). Products tell a paper from passages that are all equally far
    from the question, which singly look alike.
    """
    known = np.flatnonzero(~np.isnan(context[:, _POOL[0]]))[0]  # without others, it has none
    numbers = np.asarray(context[known, _POOL], np.float64)
    first, second = _PAIRS
    return np.concatenate([numbers, numbers[first] * numbers[second]])


def rank_value(absolute: Floats, order: Floats) -> Floats:
    """Return what passages are ranked by: their log odds, and how they compare with each other."""
    return absolute + ORDER_WEIGHT * order


@dataclass(frozen=True, slots=True)
class PassageRanker:
    """How the passages of one kind of question are ranked together, and how that is read."""

    order: Trees  # which of two passages is the better evidence
    absolute: Trees  # log odds that a passage is evidence, whatever stands beside it
    scale: PlattScaling
    presence: AnswerabilityModel

    def score(self, features: Floats) -> Floats:
        """Return how likely each passage is evidence, in [0, 1], shape (n,)."""
        return self.combine(self.absolute.predict(features), self.order.predict(features))

    def combine(self, absolute: Floats, order: Floats) -> Floats:
        """Return how likely each passage is evidence, by what the trees say of it."""
        chances = self.scale.probabilities(rank_value(absolute, order))
        return chances * self.presence.probability(absolute, order)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "order": self.order.to_dict(),
            "absolute": self.absolute.to_dict(),
            "scale": self.scale.to_dict(),
            "presence": self.presence.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return what `to_dict` gave."""
        return cls(
            Trees.from_dict(plain["order"]),
            Trees.from_dict(plain["absolute"]),
            PlattScaling.from_dict(plain["scale"]),
            AnswerabilityModel.from_dict(plain["presence"]),
        )


@dataclass(frozen=True, slots=True)
class SinglePassageScorer:
    """How a passage is judged that has no other beside it."""

    trees: Trees
    scale: PlattScaling

    def score(self, found: PoolFeatures) -> Floats:
        """Return how likely each passage is evidence, by itself, in [0, 1], shape (n,)."""
        return self.scale.probabilities(self.trees.predict(found.single_features()))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"trees": self.trees.to_dict(), "scale": self.scale.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return what `to_dict` gave."""
        return cls(Trees.from_dict(plain["trees"]), PlattScaling.from_dict(plain["scale"]))


N_READ = 12  # passages of a question that the reader reads, the best by the trees
LEAST_EVIDENCE = 0.01  # probability by the trees, below which no reading would have a passage kept
# The reader's lowest log odds that count, also for passages that it has not read: it may
# lower a passage less than raise it, as it misses evidence in the question's own words.
LEAST_READ = -4.0
READER_WEIGHT = 0.5  # of the reader's log odds beside those of the trees


@dataclass(frozen=True, slots=True)
class SecondOpinion(LogitModel):
    """Weighs what the trees say of a passage, what the reader says, and how many there are.

    Among few passages the trees know less of what a passage stands out from, and say too little.
    """

    N_INPUTS = 2

    def probabilities(self, evidence: Floats, read: Floats) -> Floats:
        """Return how likely each passage is evidence, shape (n,); see `list_opinions`."""
        return self._predict(list_opinions(evidence, read))


def list_opinions(evidence: Floats, read: Floats) -> Floats:
    """Return what `SecondOpinion` takes of each passage, shape (n, 2).

    *evidence* are the probabilities by the trees, *read* the log odds of the reader, NaN for a
    passage that it has not read. The columns are the log odds of both, and `log_pool_size`.
    """
    both = logit(evidence) + READER_WEIGHT * np.fmax(read, LEAST_READ)
    return np.column_stack([both, np.full(len(both), log_pool_size(len(both)))])


def choose_read(evidence: Floats) -> list[int]:
    """Return the places of the passages to be read, the best by the trees; none may be."""
    best = np.argsort(-evidence, kind="stable")[:N_READ]
    return [int(place) for place in best if evidence[place] >= LEAST_EVIDENCE]


@dataclass(frozen=True, slots=True)
class PoolScores:
    """What the judge finds, one number a passage, all of shape (n,)."""

    evidence: Floats  # probability that it is evidence
    may_be_read: bool = False  # whether the reader may read some of them anew


@dataclass(frozen=True)
class EvidenceScorer:
    """The trained parts above the encoder."""

    counts: TokenCounts  # background counts of tokens
    results: ResultsClassifier  # tells results from other text
    topic: Trees  # is a passage on topic?
    link: Trees  # are two passages of one study?
    question: PassageRanker  # ranks passages of several papers for a question
    article: PassageRanker  # ranks passages of one paper for a question
    claim: PassageRanker  # ranks passages for a claim
    question_alone: SinglePassageScorer  # judges one passage for a question
    claim_alone: SinglePassageScorer  # judges one passage for a claim
    same_document: SameDocumentModel  # are the passages of one paper?
    sentence: Trees  # which sentence of a passage answers the question
    operating_point: float  # the probability from which on keeping passages has the best F1
    about: Mapping[str, Any]  # how it was trained; plain data
    opinion: SecondOpinion | None = None  # what the reader counts beside the trees; None without
    # the probability from which on what is kept is called evidence; None if all of it is
    evidence_point: float | None = None

    def score_passages(
        self,
        question: str,
        texts: Sequence[str],  # what was encoded
        readings: Sequence[PassageReading],
        *,
        of_several: bool = False,  # known to be of several papers, as their titles differ
    ) -> PoolScores:
        """Score the passages of one question or claim together."""
        found = compute_pool_features(self.counts, question, texts, readings)
        return self.score_pool(question, found, of_several=of_several)

    def score_pool(
        self, question: str, found: PoolFeatures, *, of_several: bool = False
    ) -> PoolScores:
        """Score passages that are compared already."""
        topics = sigmoid(self.topic.predict(found.topic_features()))
        context = compute_context_features(found, topics, self.link)
        is_claim = looks_like_claim(question)
        may_be_read = False
        if np.isnan(context).all():
            evidence = (self.claim_alone if is_claim else self.question_alone).score(found)
        else:
            evidence, may_be_read = self._score_together(
                found, context, is_claim=is_claim, of_several=of_several
            )
        return PoolScores(evidence, may_be_read)

    def _score_together(
        self, found: PoolFeatures, context: Floats, *, is_claim: bool, of_several: bool
    ) -> tuple[Floats, bool]:
        """Score passages by the ranking for them; by both where it is not sure which.

        Their log odds are weighed, not their probabilities: a passage that both put low stays low.
        Passages of several papers, found for a question, may be read anew.
        """
        features = compute_ranking_features(found.features, context)
        if is_claim:
            return self.claim.score(features), False
        of_one = 0.0 if of_several else self.same_document.probability(context)
        several = self.question.score(features)
        if of_one < _LEAST_PART:
            return several, True
        one = self.article.score(features)
        if one.max() < _FOUND < several.max():
            return several, True
        both = (1 - of_one) * logit(several) + of_one * logit(one)
        return sigmoid(both), of_one < _LIKELY_ONE

    def to_dict(self) -> dict[str, Any]:
        """Return the scorer as plain data."""
        point = self.evidence_point
        return {
            "about": dict(self.about),
            "measures": N_MEASURES,
            **({} if point is None else {"evidence_point": point}),
            "counts": {"passages": self.counts.n_passages, "tokens": dict(self.counts.counts)},
            "role": self.results.to_dict(),
            "topic": self.topic.to_dict(),
            "link": self.link.to_dict(),
            "question": self.question.to_dict(),
            "article": self.article.to_dict(),
            "claim": self.claim.to_dict(),
            "question_alone": self.question_alone.to_dict(),
            "claim_alone": self.claim_alone.to_dict(),
            "one_paper": self.same_document.to_dict(),
            "sentence": self.sentence.to_dict(),
            "operating_point": self.operating_point,
            "opinion": None if self.opinion is None else self.opinion.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the scorer that `to_dict` gave; a `ValueError` if it is of other measures."""
        if (n := plain.get("measures", "other")) != N_MEASURES:
            raise ValueError(f"it goes by {n} measures of a passage, not {N_MEASURES}")
        opinion, point = plain.get("opinion"), plain.get("evidence_point")
        return cls(
            counts=TokenCounts(plain["counts"]["passages"], plain["counts"]["tokens"]),
            results=ResultsClassifier.from_dict(plain["role"]),
            topic=Trees.from_dict(plain["topic"]),
            link=Trees.from_dict(plain["link"]),
            question=PassageRanker.from_dict(plain["question"]),
            article=PassageRanker.from_dict(plain["article"]),
            claim=PassageRanker.from_dict(plain["claim"]),
            question_alone=SinglePassageScorer.from_dict(plain["question_alone"]),
            claim_alone=SinglePassageScorer.from_dict(plain["claim_alone"]),
            same_document=SameDocumentModel.from_dict(plain["one_paper"]),
            sentence=Trees.from_dict(plain["sentence"]),
            operating_point=float(plain["operating_point"]),
            about=plain["about"],
            opinion=None if opinion is None else SecondOpinion.from_dict(opinion),
            evidence_point=None if point is None else float(point),
        )

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read a scorer from a file."""
        return cls.from_dict(json.loads(file.read_text(encoding="utf-8")))

    def save(self, file: Path) -> None:
        """Write the scorer to a file."""
        text = json.dumps(self.to_dict(), separators=(",", ":"), sort_keys=True)
        file.write_text(text + "\n", encoding="utf-8")
