"""How far probabilities can be taken at their word."""

from collections.abc import Sequence

import numpy as np

N_BINS = 10


def brier_score(probabilities: Sequence[float], labels: Sequence[int]) -> float:
    """Return the mean squared error of probabilities, in [0, 1]; 0 is best.

    Args:
        probabilities: In [0, 1], shape (n_passages,), not empty.
        labels: 0 or 1, shape (n_passages,).

    Source:
        Brier (1950), Monthly Weather Review 78(1), for two classes.
    """
    errors = np.asarray(probabilities, dtype=float) - np.asarray(labels, dtype=float)
    return float(np.mean(errors**2))


def calibration_error(
    probabilities: Sequence[float], labels: Sequence[int], *, n_bins: int = N_BINS
) -> float:
    """Return the expected calibration error, in [0, 1]; 0 is best.

    Probabilities are put into bins of equal width; of each bin the mean probability and the share
    of relevant passages are compared, weighted by its size.

    Args:
        probabilities: In [0, 1], shape (n_passages,), not empty.
        labels: 0 or 1, shape (n_passages,).
        n_bins: >= 1.

    Source:
        Naeini, Cooper and Hauskrecht (2015), AAAI, with ten bins; bins of equal width as in Guo,
        Pleiss, Sun and Weinberger (2017), ICML, section 2.
    """
    values, truth = np.asarray(probabilities, dtype=float), np.asarray(labels, dtype=float)
    bins = np.minimum((values * n_bins).astype(int), n_bins - 1)
    apart = np.bincount(bins, weights=values - truth, minlength=n_bins)
    return float(np.abs(apart).sum() / len(values))
