"""Numbers out of what a model returns."""

from typing import Any

import numpy as np

from deepera_graph.errors import AnswerError
from deepera_graph.usage import Usage


def logits_of(found: Any, n: int) -> list[float]:
    """Return one logit a pair.

    Of two classes it is the second's minus the first's, whose logistic function is the softmax.

    Args:
        found: Shape (n,), (n, 1) or (n, 2).
        n: Number of pairs, >= 1.

    Raises:
        AnswerError: It has another shape, or holds no numbers.
    """
    try:
        values = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise AnswerError(f"the model gave no numbers: {error}", usage=Usage()) from error
    if values.shape == (n, 2):
        values = values[:, 1] - values[:, 0]
    if values.shape not in ((n,), (n, 1)):
        raise AnswerError(
            f"the model must give one number a pair, or two; for {n} it gave {values.shape}",
            usage=Usage(),
        )
    return [float(value) for value in values.reshape(n)]
