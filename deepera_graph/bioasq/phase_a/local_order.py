"""How the local judge orders documents: by the first stage, by words in common, and as evidence."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from deepera_graph.errors import CallError, DeepEraError
from deepera_graph.judges.trained.alignment import Alignment
from deepera_graph.judges.trained.backend import TrainedJudge
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.schema import IntentFields, Window

Align = Callable[[str, Sequence[Window]], Sequence[Alignment]]
_NO_INTENT: IntentFields = {
    "topic": "",
    "entity_type": "",
    "intent": "other",
    "expected_answer_type": "other",
}
_LEAST = 1e-4  # of a probability: scores have four digits


class OrderWeights(NamedTuple):
    """What each part of the value of a document weighs beside the log odds of evidence."""

    first: float  # of the first stage's score, the best of a question being 1
    passage: float  # of the parts of an `Alignment`
    sentences: float
    title: float


# What `python benchmarks/bioasq/phase_a.py` fits on the 505 claims of SciFact train, rounded: a
# pairwise logistic regression over first stage and alignment gives 60, 100, 25 and 21. They are
# scaled so that log odds count little beside them, as the judge was trained on some of the same
# claims; half or twice as much changes the MAP by less than 0.002.
WEIGHTS = OrderWeights(first=60.0, passage=100.0, sentences=30.0, title=30.0)
BEHIND = (
    0.3  # of the closeness that a document lacks, beside the weights of sentences; fitted there
)


def value_of(probability: float, first: float, found: Alignment) -> float:
    """Return what a document is ordered by; comparable within one question.

    Args:
        probability: That it gives evidence, in [0, 1].
        first: The first stage's score, whose best is 1.
        found: How closely it follows the question.
    """
    return logit(probability) + WEIGHTS.first * first + closeness_of(found)


def closeness_of(found: Alignment) -> float:
    """Return how closely a document follows a question, as it counts beside log odds."""
    return (
        WEIGHTS.passage * found.passage
        + WEIGHTS.sentences * found.sentences
        + WEIGHTS.title * found.title
    )


def logit(probability: float) -> float:
    """Return log odds, of a probability held within [0.0001, 0.9999]."""
    held = min(max(probability, _LEAST), 1 - _LEAST)
    return math.log(held / (1 - held))


def find_local_judge(judge: EvidenceReranker) -> TrainedJudge | None:
    """Return the trained judge of a reranker, if that is who judges."""
    found = judge.backend.judge
    return found if isinstance(found, TrainedJudge) else None


def align_with(judge: TrainedJudge) -> Align:
    """Return what aligns documents with the encoder of a judge, which has encoded them already."""

    def align(question: str, windows: Sequence[Window]) -> list[Alignment]:
        try:
            return judge.model.align(question, windows)
        except (DeepEraError, ImportError, OSError) as error:
            raise CallError(f"the local judge cannot be loaded: {error}") from error

    return align


def weigh_with(judge: TrainedJudge) -> Callable[[str, Sequence[Window]], list[list[float]]]:
    """Return what weighs sentences with a judge: its trees for sentences, its reader, alignment.

    How far a document is behind the one that follows the question best counts against its
    sentences, whoever ordered the documents.
    """

    def weigh(question: str, windows: Sequence[Window]) -> list[list[float]]:
        try:
            found = judge.model.weigh_sentences(question, _NO_INTENT, windows)
            aligned = judge.model.align(question, windows)
        except (DeepEraError, ImportError, OSError) as error:
            raise CallError(f"the local judge cannot be loaded: {error}") from error
        close = [closeness_of(one) for one in aligned]
        best = max(close, default=0.0)
        return [
            [weight - BEHIND * (best - own) for weight in weights]
            for weights, own in zip(found, close, strict=True)
        ]

    return weigh
