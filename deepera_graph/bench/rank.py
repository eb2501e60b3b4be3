"""Rank every question of a data set, in order, a few at a time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from deepera_graph.bench.dataset import Dataset
from deepera_graph.bench.instance import Instance
from deepera_graph.bench.rankers.ranker import (
    BatchRanker,
    CountedRanker,
    FallibleRanker,
    Job,
    Note,
    NotingRanker,
    PreparedRanker,
    Problems,
    Ranker,
    Ranking,
    check_ranking,
    passages_of,
)
from deepera_graph.usage import Usage

QUESTIONS_AT_ONCE = 16


class Ranked(BaseModel):
    """What a ranker did with one question.

    Time, calls, tokens and failed passages are means over the few questions that were ranked
    together; `problem` is the last reason why one of them failed. Of a ranker that says why,
    `reasons` and `quotes` go with `places`, and `unproven` holds places that no filter may pass.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    places: list[int]
    scores: list[float]
    seconds: float
    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    failed: float = 0.0
    problem: str = ""
    reasons: list[str] = []
    quotes: list[str] = []
    unproven: list[int] = []


@runtime_checkable
class SpreadRanker(Ranker, Protocol):
    """A ranker that is handed all questions, a few at a time, and ranks them where it will."""

    def rank_chunks(self, chunks: Iterable[list[Instance]]) -> Iterator[list[Ranked]]:
        """Yield what it does with each few, in the same order."""


def rank_dataset(ranker: Ranker, dataset: Dataset, *, skip: int = 0) -> Iterator[Ranked]:
    """Yield what the ranker does with each question; texts of a few questions are in memory.

    Args:
        ranker: It is shown passages without labels.
        dataset: Questions in order.
        skip: How many questions to leave out at the start.

    Raises:
        RankingError: The ranker gave back no ranking of what it was shown.
        DatasetError: The data cannot be read.
    """
    rest = islice(iter(dataset), skip, None)
    chunks = iter(lambda: list(islice(rest, QUESTIONS_AT_ONCE)), [])
    if isinstance(ranker, SpreadRanker):
        yield from chain.from_iterable(ranker.rank_chunks(chunks))
        return
    for chunk in chunks:
        yield from rank_chunk(ranker, chunk)


def rank_chunk(ranker: Ranker, instances: Sequence[Instance]) -> Iterator[Ranked]:
    """Yield what the ranker does with a few questions, ranked together.

    Raises:
        RankingError: The ranker gave back no ranking of what it was shown.
    """
    if isinstance(ranker, PreparedRanker):
        ranker.prepare()
    jobs: list[Job] = [(one.question, passages_of(one)) for one in instances]
    before, failed_before = _usage(ranker), _problems(ranker).n_failed
    start = perf_counter()
    rankings = _rankings(ranker, jobs)
    share = 1 / len(instances)
    seconds = (perf_counter() - start) * share
    after, problems = _usage(ranker), _problems(ranker)
    failed = (problems.n_failed - failed_before) * share
    notes = ranker.notes if isinstance(ranker, NotingRanker) else [{}] * len(instances)
    for instance, (_, passages), ranking, noted in zip(
        instances, jobs, rankings, notes, strict=True
    ):
        check_ranking(ranker.name, passages, ranking)
        yield Ranked(
            id=instance.id,
            places=[int(id) for id, _ in ranking],
            scores=[score for _, score in ranking],
            seconds=seconds,
            calls=(after.calls - before.calls) * share,
            input_tokens=(after.input_tokens - before.input_tokens) * share,
            output_tokens=(after.output_tokens - before.output_tokens) * share,
            failed=failed,
            problem=problems.reason if failed else "",
            **_said(ranking, noted),
        )


def _rankings(ranker: Ranker, jobs: list[Job]) -> list[Ranking]:
    if isinstance(ranker, BatchRanker):
        return ranker.rank_many(jobs)
    return [ranker.rank(question, passages) for question, passages in jobs]


def _usage(ranker: Ranker) -> Usage:
    return ranker.usage if isinstance(ranker, CountedRanker) else Usage()


def _problems(ranker: Ranker) -> Problems:
    return ranker.problems if isinstance(ranker, FallibleRanker) else Problems()


def _said(ranking: Ranking, notes: Mapping[str, Note]) -> dict[str, Any]:
    if not notes:
        return {}
    told = [notes[id] for id, _ in ranking]
    return {
        "reasons": [note.reason for note in told],
        "quotes": [note.quote for note in told],
        "unproven": [int(id) for (id, _), note in zip(ranking, told, strict=True)
                     if not note.proven],
    }  # fmt: skip
