"""A question on its way to an instance: its pool, its distractors, and what was rejected."""

from dataclasses import dataclass

from deepera_graph.bench.build.fillings import DistractorType
from deepera_graph.bench.build.losses import Rejected
from deepera_graph.bench.build.pairs import Pair
from deepera_graph.bench.build.search import Found


@dataclass(frozen=True, slots=True)
class Distractor:
    """A passage that passed the gates."""

    text: str
    type: DistractorType


@dataclass(frozen=True, slots=True)
class Draft:
    """All that the instances of one question are made of.

    Attributes:
        id: Of the question.
        dataset: Which generator made it.
        subject: Field of science.
        pair: Question, answer, and the golden chunk.
        pool: What retrieval found, best first, with the golden chunk unless it is only recorded.
        n_left_out: Chunks left out of the pool, see `deepera_graph.bench.build.pools.ambiguous`.
        was_found: Whether retrieval found the golden chunk.
        distractors: Those that passed, at most as many as wanted.
        rejected: Those that did not.
    """

    id: str
    dataset: str
    subject: str
    pair: Pair
    pool: tuple[Found, ...]
    n_left_out: int
    was_found: bool
    distractors: tuple[Distractor, ...] = ()
    rejected: tuple[Rejected, ...] = ()
