"""Sliding windows: sort a list that is too long to be sorted in one go.

A window of *size* items moves from the end of the list to its front, *step* items at a time; each
time its items are put in order, so that the best of them travel on with it. If the orders are
right, one pass leaves the best ``size - step`` items of the whole list in front, in order; no more
than that is promised.

Source:
    Sun et al. (2023), Is ChatGPT Good at Search?, sliding window strategy: window 20, step 10.
    Their code leaves out the front of a list that does not fit a whole number of steps, and a list
    shorter than a window; here the last window covers what is left.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
SIZE = 20
STEP = 10


def windows(n: int, *, size: int = SIZE, step: int = STEP) -> list[tuple[int, int]]:
    """Return [start, end) of each window over *n* items, the last items first."""
    spans = []
    for end in range(n, 0, -step):
        spans.append((max(0, end - size), end))
        if end <= size:
            break
    return spans


def repaired(order: Iterable[int], n: int) -> list[int]:
    """Make a permutation of 1 to *n*: unknown numbers and repeats go, missing ones come last.

    Source:
        Sun et al. (2023), code: `clean_response` and `receive_permutation`.
    """
    named = [place for place in dict.fromkeys(order) if 1 <= place <= n]
    known = set(named)
    return [*named, *(place for place in range(1, n + 1) if place not in known)]


async def slide(
    items: Sequence[T],
    sort: Callable[[Sequence[T]], Awaitable[Iterable[int]]],
    *,
    size: int = SIZE,
    step: int = STEP,
) -> list[T]:
    """Return the items after one pass; nothing is lost, whatever *sort* says.

    Args:
        items: In first-stage order.
        sort: Gives the places of some items, counted from 1, best first.
        size: Items in a window, >= 2.
        step: How far a window moves, from 1 to *size* - 1.
    """
    sorted_items = list(items)
    for start, end in windows(len(items), size=size, step=step):
        seen = sorted_items[start:end]
        if len(seen) > 1:
            order = repaired(await sort(seen), len(seen))
            sorted_items[start:end] = [seen[place - 1] for place in order]
    return sorted_items
