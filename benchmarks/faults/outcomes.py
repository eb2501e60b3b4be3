"""What became of a question under a fault, seen by a caller who reads results and not logs."""

from collections.abc import Iterable, Sequence

Ranking = Sequence[tuple[str, float | None]]
OUTCOMES = ("silent wrong", "lost", "hung", "raised", "rest exact", "exact")


def classify(expected: Ranking, found: Ranking, victim: str) -> str:
    """Compare a ranking with the fault-free one, both as (id, score) pairs, best first.

    Returns:
        ``exact`` when all is the same; ``rest exact`` when all but the victim is, and the victim
        is there with the score None; ``lost`` when a passage is missing; else ``silent wrong``.
    """
    if {one for one, _ in expected} - {one for one, _ in found}:
        return "lost"
    if list(found) == list(expected):
        return "exact"
    reported = (victim, None) in list(found)
    same_others = _without(found, victim) == _without(expected, victim)
    return "rest exact" if reported and same_others else "silent wrong"


def summary(outcomes: Sequence[str]) -> str:
    """Name the outcomes of one fault, worst first, counted when they differ."""
    if len(set(outcomes)) == 1:
        return outcomes[0]
    return ", ".join(f"{one} {n}" for one, n in counts(outcomes).items() if n)


def counts(outcomes: Iterable[str]) -> dict[str, int]:
    """Count every outcome, worst first."""
    found = list(outcomes)
    return {one: found.count(one) for one in OUTCOMES}


def _without(ranking: Ranking, victim: str) -> list[tuple[str, float | None]]:
    return [pair for pair in ranking if pair[0] != victim]
