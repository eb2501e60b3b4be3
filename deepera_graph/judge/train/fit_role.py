"""Fits what tells results from aims, methods and background."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.results_role import ResultsRole
from deepera_graph.judge.train.lessons import role_of
from deepera_graph.judge.train.log import Log, silent
from deepera_graph.judge.train.material import Looked
from deepera_graph.judge.train.packages import needed
from deepera_graph.judge.train.parts import N_PARTS, beside, part_of

_DIGITS = 6


def fit_roles(looked: Sequence[Looked], whole: ResultsRole) -> list[ResultsRole]:
    """Return, for each part, what was fitted on the others; *whole* where they teach nothing."""
    return [
        fit_role(beside(looked, part, lambda one: part_of(one.pool))) or whole
        for part in range(N_PARTS)
    ]


def fit_role(looked: Sequence[Looked], log: Log = silent) -> ResultsRole | None:
    """Fit what tells results from aims, methods and background; None if nothing teaches it.

    Evidence of questions that have other parts of the same paper beside it, against those parts;
    and, at less weight, results sections of articles against their other sections.
    """
    vectors: dict[str, tuple[Any, Any, int, float]] = {}
    for one in looked:
        for passage, seen in zip(one.pool.passages, one.looks, strict=True):
            taught = role_of(one.pool, passage.kind, passage.label)
            if taught is not None:
                label, weight = taught
                vectors.setdefault(passage.text, (seen.body, seen.sentences, label, weight))
    labels = {label for *_, label, _ in vectors.values()}
    if len(labels) < 2:
        return None
    linear = needed("sklearn.linear_model")
    rows = list(vectors.values())
    y, w = np.array([row[2] for row in rows]), np.array([row[3] for row in rows])
    passages = linear.LogisticRegression(C=3.0, max_iter=2000).fit(
        np.stack([row[0] for row in rows]), y, w
    )
    n_sentences = [len(row[1]) for row in rows]
    sentences = linear.LogisticRegression(C=1.0, max_iter=2000).fit(
        np.concatenate([row[1] for row in rows]),
        np.repeat(y, n_sentences),
        np.repeat(w, n_sentences),
    )
    log({"step": "role", "passages": len(rows), "results": int(y.sum())})
    return ResultsRole(
        _rounded(passages.coef_[0]),
        float(passages.intercept_[0]),
        _rounded(sentences.coef_[0]),
        float(sentences.intercept_[0]),
    )


def _rounded(values: Any) -> NDArray[np.float64]:
    return np.asarray(np.round(values, _DIGITS), np.float64)
