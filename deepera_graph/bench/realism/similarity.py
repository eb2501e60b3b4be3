"""How close distractors are to their question, beside the hardest other passages of their pools."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import (  # type: ignore[import-untyped]  # has no stubs
    TfidfVectorizer,
)

from deepera_graph.bench.metrics.resample import Interval
from deepera_graph.bench.realism.sample import Sample
from deepera_graph.bench.realism.separate import within_pools
from deepera_graph.text.words import stems

N_HARDEST = 5
PERCENTILE = 10.0
Floats = NDArray[np.float64]


class Similarity(NamedTuple):
    """Distractors and others under one measure of similarity to the question.

    Attributes:
        measure: Which one.
        distractors: Mean of the distractors, on the measure's scale.
        hardest: Mean of the best five other passages of each pool, likewise.
        others: Mean of all other passages, likewise.
        near: Share of the distractors that reach the 10th percentile of the others of their pool,
            in [0, 1]; the gate on similarity asks for it.
        closer: Chance that a distractor is closer than another passage of its pool, in [0, 1],
            with its 95 % interval over questions.
    """

    measure: str
    distractors: float
    hardest: float
    others: float
    near: float
    closer: Interval


def similarities(sample: Sample) -> list[Similarity]:
    """Return the cosine over words, and the scores of the first stage where all have one."""
    found = [_similarity("words in common (cosine, tf-idf)", sample, _cosines(sample))]
    if np.isfinite(sample.first_stage).all():
        found.append(_similarity("first-stage score", sample, sample.first_stage))
    return found


def _similarity(measure: str, sample: Sample, scores: Floats) -> Similarity:
    hardest, near = [], []
    for one in range(sample.n_questions):
        here = sample.pool == one
        others = scores[here & ~sample.is_distractor]
        hardest.append(float(np.sort(others)[-N_HARDEST:].mean()))
        least = np.percentile(others, PERCENTILE)
        near.extend(scores[here & sample.is_distractor] >= least)
    return Similarity(
        measure=measure,
        distractors=float(scores[sample.is_distractor].mean()),
        hardest=float(np.mean(hardest)),
        others=float(scores[~sample.is_distractor].mean()),
        near=float(np.mean(near)),
        closer=within_pools(sample.pool, sample.is_distractor, scores),
    )


def _cosines(sample: Sample) -> Floats:
    weigh = TfidfVectorizer(analyzer=stems, sublinear_tf=True)
    texts = weigh.fit_transform(sample.texts)
    questions = weigh.transform(sample.questions)
    products = questions[sample.pool].multiply(texts[sample.text]).sum(axis=1)
    return np.asarray(products, dtype=np.float64).ravel()
