"""Parts of the training pools: each is read by what was fitted on the others."""

from collections.abc import Callable, Sequence
from typing import TypeVar
from zlib import crc32

from deepera_graph.judge.train.pool import Pool

N_PARTS = 4
OneT = TypeVar("OneT")


def part_of(pool: Pool) -> int:
    """Return the part of a pool, in [0, N_PARTS); pools of one group are in one part."""
    return crc32(pool.group.encode()) % N_PARTS


def beside(some: Sequence[OneT], part: int, of: Callable[[OneT], int]) -> Sequence[OneT]:
    """Return those of the other parts, or all if there is none."""
    return [one for one in some if of(one) != part] or some
