"""Rankers that rank in workers in other processes, a few questions at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from deepera_graph.bench.instance import Instance
from deepera_graph.bench.rank import Ranked, rank_chunk
from deepera_graph.bench.rankers.absent import Absent
from deepera_graph.bench.rankers.models import Models
from deepera_graph.bench.rankers.named import asks_a_model, make_ranker
from deepera_graph.bench.rankers.ranker import Passage, Ranker, Ranking, RepeatedRanker
from deepera_graph.budget import Budget
from deepera_graph.cache.store import JudgementCache
from deepera_graph.engines.engine import Engine
from deepera_graph.engines.in_order import in_order
from deepera_graph.engines.share import Share
from deepera_graph.usage import Usage


@dataclass(frozen=True, slots=True)
class Chunk:
    """A few questions for one ranker: its name, which of its runs, if it has several, and them."""

    ranker: str
    run: int | None
    instances: list[Instance]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingWork:
    """How a worker ranks, as plain data without secrets.

    Attributes:
        names: Of the rankers.
        seed: Of the random order.
        models: The fields of `Models` that are plain.
        budget: What chat models may cost.
        cache: File of the judgement cache; None keeps none.
    """

    names: tuple[str, ...]
    seed: int
    models: Mapping[str, Any]
    budget: Budget | None = None
    cache: Path | None = None

    @classmethod
    def of(cls, names: Sequence[str], seed: int, models: Models) -> "RankingWork":
        """Write down how rankers are made."""
        return cls(
            names=tuple(names),
            seed=seed,
            models={
                "model": models.model,
                "base_url": models.base_url,
                "api_key_env": models.api_key_env,
                "limits": dict(models.limits),
                "max_concurrency": models.max_concurrency,
            },
            budget=models.budget,
            cache=None if models.cache is None else models.cache.path,
        )

    def at_once(self, share: Share) -> int:
        """A few questions at a time, as their costs are told apart by the time they end."""
        return 1

    @contextmanager
    def ready(self, share: Share) -> Iterator[Callable[[Chunk], Awaitable[list[Ranked]]]]:
        """Make rankers as they are named, each once.

        Raises:
            SettingsError: A limit cannot be divided among so many workers.
        """
        judgements = None if self.cache is None else JudgementCache(self.cache)
        models = self._models(share, judgements)

        @cache
        def ranker_of(name: str, run: int | None) -> Ranker:
            made = make_ranker(name, seed=self.seed, models=models)
            return (
                made.repeat(run) if run is not None and isinstance(made, RepeatedRanker) else made
            )

        def rank(chunk: Chunk) -> list[Ranked]:
            return list(rank_chunk(ranker_of(chunk.ranker, chunk.run), chunk.instances))

        async def rank_aside(chunk: Chunk) -> list[Ranked]:
            return await asyncio.to_thread(rank, chunk)

        try:
            yield rank_aside
        finally:
            if judgements is not None:
                judgements.close()

    def cost(self, done: list[Ranked]) -> Usage:
        """What a few questions have cost."""
        return Usage(
            calls=round(sum(one.calls for one in done)),
            input_tokens=round(sum(one.input_tokens for one in done)),
            output_tokens=round(sum(one.output_tokens for one in done)),
        )

    def _models(self, share: Share, judgements: JudgementCache | None) -> Models:
        plain = dict(self.models)
        if any(asks_a_model(name) for name in self.names):
            plain["limits"] = share.limits(plain["limits"])
            plain["max_concurrency"] = share.count("--max-concurrency", plain["max_concurrency"])
        models = Models(**plain, cache=judgements, budget=share.budget(self.budget))
        models.meter.add(share.spent)
        return models


class Spread:
    """Ranks as another ranker does, in the workers of an engine.

    Args:
        ranker: The ranker as it is here.
        name: What `make_ranker` makes it from.
        engine: Of `RankingWork`, within its block.
        run: Which of its runs this is; None if it has but one.
    """

    def __init__(
        self,
        ranker: Ranker,
        name: str,
        engine: Engine[Chunk, list[Ranked]],
        run: int | None = None,
    ) -> None:
        self.ranker, self._named, self._engine, self._run = ranker, name, engine, run

    @property
    def name(self) -> str:
        """That of the ranker."""
        return self.ranker.name

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """That of the ranker: where it ranks makes no difference."""
        return self.ranker.fingerprint

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Rank here."""
        return self.ranker.rank(question, passages)

    def rank_chunks(self, chunks: Iterable[list[Instance]]) -> Iterator[list[Ranked]]:
        """Yield what the ranker does with each few questions, in order.

        Raises:
            RankingError: The ranker gave back no ranking of what it was shown.
        """
        tasks = (Chunk(self._named, self._run, instances) for instances in chunks)
        return in_order(self._engine, tasks)


class RepeatedSpread(Spread):
    """The same for a ranker that differs from run to run."""

    def repeat(self, number: int) -> Spread:
        """Return the ranker of one run."""
        ranker = self.ranker
        again = ranker.repeat(number) if isinstance(ranker, RepeatedRanker) else ranker
        return Spread(again, self._named, self._engine, number)


def spread(ranker: Ranker, name: str, engine: Engine[Chunk, list[Ranked]]) -> Ranker:
    """Return a ranker that ranks in the workers of an engine; one that cannot run stays."""
    if isinstance(ranker, Absent):
        return ranker
    kind = RepeatedSpread if isinstance(ranker, RepeatedRanker) else Spread
    return kind(ranker, name, engine)
