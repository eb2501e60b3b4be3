"""What a cross-encoder is: a model that reads pairs of a question and a passage."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from deepera_graph.errors import AnswerError
from deepera_graph.usage import Usage

Pair = tuple[str, str]  # question, and title and text of a passage


class PairReading(NamedTuple):
    """What a model made of one pair."""

    value: float  # a logit, or a probability if the model is said to give these; may be NaN
    note: str = ""  # what a reader of the judgement should know, e.g. that the passage was cut


class PairModel(ABC):
    """A cross-encoder; it is called from one thread at a time."""

    name: str  # what people call it
    version: str  # tells its weights from others
    max_tokens: int | None = None  # of a pair, as far as that is known
    mixes: bool = False  # whether the value of a pair depends on the others of its batch
    batch_size: int = 32  # most pairs a call that are worth it, >= 1
    is_local: bool = True  # whether a call costs nothing

    @abstractmethod
    def read(self, pairs: Sequence[Pair]) -> list[PairReading]:
        """Return one reading a pair, in the same order; *pairs* is not empty."""

    def renew(self) -> None:  # noqa: B027 - most have nothing to give up
        """Give up what does not survive a fork; called in the child, before `read`."""


def with_title(title: str, text: str) -> str:
    """Return a passage as cross-encoders read it: its title as a sentence, then its text."""
    plain = title.strip()
    end = " " if plain.endswith((".", "?", "!")) else ". "
    return f"{plain}{end}{text}" if plain else text


def logits_of(found: Any, n: int) -> list[float]:
    """Return one logit a pair, of *found* in shape (n,), (n, 1) or (n, 2).

    Of two classes it is the second's minus the first's, whose logistic function is the softmax.
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
