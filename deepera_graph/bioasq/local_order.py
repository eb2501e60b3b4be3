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


class Weights(NamedTuple):
    """What each part of the value of a document weighs beside the log odds of evidence."""

    first: float  # of the first stage's score, the best of a question being 1
    passage: float  # of the parts of an `Alignment`
    sentences: float
    title: float


# Pairwise logistic regression on the 505 claims of SciFact train, first stage and alignment alone,
# scaled to stand beside the log odds: these count little, as the judge was trained on some of the
# same claims. `python benchmarks/bioasq/fit.py` fits them.
WEIGHTS = Weights(first=57.0, passage=100.0, sentences=25.0, title=28.0)


def value_of(probability: float, first: float, found: Alignment) -> float:
    """Return what a document is ordered by; comparable within one question.

    Args:
        probability: That it gives evidence, in [0, 1].
        first: The first stage's score, whose best is 1.
        found: How closely it follows the question.
    """
    return (
        logit(probability)
        + WEIGHTS.first * first
        + WEIGHTS.passage * found.passage
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
    """Return what weighs sentences with a judge's trees for sentences, and its reader."""

    def weigh(question: str, windows: Sequence[Window]) -> list[list[float]]:
        try:
            return judge.model.weigh_sentences(question, _NO_INTENT, windows)
        except (DeepEraError, ImportError, OSError) as error:
            raise CallError(f"the local judge cannot be loaded: {error}") from error

    return weigh
