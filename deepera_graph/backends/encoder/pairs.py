"""What a cross-encoder reads and gives: pairs of question and passage, and a number each."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from deepera_graph.roles import PassageTask

Pair = tuple[str, str]


class Reading(NamedTuple):
    """What a model made of one pair.

    Attributes:
        value: A logit, or a probability if the model is said to give these; may be NaN.
        note: What a reader of the judgement should know, e.g. that the passage was cut; or empty.
    """

    value: float
    note: str = ""


class PairModel(Protocol):
    """A cross-encoder. It is called from one thread at a time.

    Attributes:
        name: What people call it.
        version: What tells its weights from others.
        max_tokens: Tokens of a pair that it reads, or None if that is not known.
        mixes: Whether the value of a pair depends on the others of its batch.
        batch_size: Most pairs a call that are worth it, >= 1.
        is_local: Whether it runs on this machine alone, so that a call costs nothing.
    """

    name: str
    version: str
    max_tokens: int | None
    mixes: bool
    batch_size: int
    is_local: bool

    def read(self, pairs: Sequence[Pair]) -> list[Reading]:
        """Return one reading a pair, in the same order; *pairs* is not empty."""
        ...

    def renew(self) -> None:
        """Give up what does not survive a fork; called in the child, before `read`."""
        ...


def pair_of(task: PassageTask) -> Pair:
    """Return the question, and title and text of the passage."""
    return task["question"], titled(task["title"], task["text"])


def titled(title: str, text: str) -> str:
    """Return ``title. text``; the text alone if there is no title."""
    title = title.strip()
    if not title:
        return text
    return f"{title} {text}" if title[-1] in ".?!" else f"{title}. {text}"
