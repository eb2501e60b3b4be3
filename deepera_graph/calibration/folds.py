"""Probabilities of passages by curves that have not seen their question."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deepera_graph.calibration.fit import fit
from deepera_graph.calibration.judged import JudgedQuestion
from deepera_graph.curve import Method
from deepera_graph.errors import InputError

N_FOLDS = 5
Probabilities = list[tuple[float, ...]]


def cross_validated(
    questions: Sequence[JudgedQuestion],
    *,
    method: Method = "isotonic",
    n_folds: int = N_FOLDS,
    seed: int = 0,
) -> Probabilities:
    """Return the probability of every passage, by a curve fitted on the other folds.

    All passages of a question are in the same fold.

    Args:
        questions: Scored and labelled.
        method: As for `fit`.
        n_folds: >= 2.
        seed: The same seed gives the same folds.

    Returns:
        Probabilities in [0, 1] in the order of the passages, one tuple a question.

    Raises:
        InputError: There are fewer questions with relevant, or with irrelevant, passages than
            folds; or what is outside some fold is too little to fit.
    """
    fold_of = _folds(questions, n_folds, seed)
    probabilities: Probabilities = [()] * len(questions)
    for fold in range(n_folds):
        others = [one for one, its in zip(questions, fold_of, strict=True) if its != fold]
        try:
            curve = fit(
                np.concatenate([one.scores for one in others]),
                [label for one in others for label in one.labels],
                method=method,
            )
        except InputError as error:
            raise InputError(f"cross-validation, fold {fold + 1} of {n_folds}: {error}") from error
        for index in map(int, np.flatnonzero(fold_of == fold)):
            probabilities[index] = tuple(map(curve.probability, questions[index].scores))
    return probabilities


def _folds(questions: Sequence[JudgedQuestion], n_folds: int, seed: int) -> NDArray[np.int64]:
    """Deal shuffled questions out to the folds, so that both labels are spread evenly."""
    relevant = [1 in one.labels for one in questions]
    others = [0 in one.labels for one in questions]
    if min(sum(relevant), sum(others)) < n_folds:
        raise InputError(
            f"calibration needs at least {n_folds} questions with relevant and {n_folds} with "
            f"irrelevant passages, got {sum(relevant)} and {sum(others)} of {len(questions)}"
        )
    shuffled = np.random.default_rng(seed).permutation(len(questions))
    dealt = sorted(
        shuffled,
        key=lambda i: (not (relevant[i] or others[i]), others[i] - relevant[i]),
    )
    folds = np.empty(len(questions), dtype=np.int64)
    folds[dealt] = np.arange(len(questions)) % n_folds
    return folds
