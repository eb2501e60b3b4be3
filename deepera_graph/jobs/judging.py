"""What is done with a question line: judged, and put into the bytes and counts that are kept."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from deepera_graph.budget import Meter, with_meter
from deepera_graph.cache.store import JudgementCache
from deepera_graph.engines.share import Share
from deepera_graph.errors import SettingsError
from deepera_graph.jobs.facts import Facts, facts_of
from deepera_graph.jobs.identity import differences, identity_of
from deepera_graph.jobs.lines import QuestionLine
from deepera_graph.jobs.output import output_line
from deepera_graph.reranker import EvidenceReranker, most_questions_at_once
from deepera_graph.result import RerankResult
from deepera_graph.settings import Settings
from deepera_graph.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A question that is done, without its passages.

    Attributes:
        data: Its output line.
        facts: What the report counts.
        manifest: What ran.
        backend_failure: Why nothing can be judged at all, or None.
    """

    data: bytes
    facts: Facts
    manifest: dict[str, Any]
    backend_failure: str | None

    @classmethod
    def of(cls, line: QuestionLine, result: RerankResult) -> Self:
        """Keep of a result what is written and counted."""
        return cls(
            data=output_line(line, result),
            facts=facts_of(result, line.subject),
            manifest=dict(result.manifest),
            backend_failure=result.backend_failure,
        )


def judging(
    reranker: EvidenceReranker, meter: Meter | None = None
) -> Callable[[QuestionLine], Awaitable[Judged]]:
    """Return what judges a line; all lines share a meter, by default of the reranker's budget."""
    config = with_meter({}, meter or Meter(reranker.settings.budget))

    async def judge(line: QuestionLine) -> Judged:
        result = await reranker.arerank(line.question, line.passages, config=config)
        return Judged.of(line, result)

    return judge


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingWork:
    """How a worker in another process judges lines, as plain data without secrets.

    It builds a reranker of its own with its part of the limits: calls at once, those of every
    model, and the budget.

    Attributes:
        plain: What `EvidenceReranker.to_dict` gives.
        ran: What `identity_of` gives; a worker that would judge otherwise does not begin.
        cache: File of the judgement cache, opened where the worker is; None keeps none.
    """

    plain: Mapping[str, Any]
    ran: Mapping[str, Any]
    cache: Path | None = None

    @classmethod
    def of(cls, reranker: EvidenceReranker, cache: JudgementCache | None = None) -> Self:
        """Write a reranker down.

        Raises:
            SettingsError: Its backend was made from live objects and cannot be written down.
        """
        path = None if cache is None else cache.path
        return cls(plain=reranker.to_dict(), ran=identity_of(reranker), cache=path)

    def at_once(self, share: Share) -> int:
        """How many questions a worker is at, >= 1."""
        return most_questions_at_once(self._settings(share))

    @contextmanager
    def ready(self, share: Share) -> Iterator[Callable[[QuestionLine], Awaitable[Judged]]]:
        """Build the reranker.

        Raises:
            SettingsError: It cannot be built here, or would judge otherwise than at home.
        """
        settings = self._settings(share)
        whole = Settings.of(self.plain["settings"])
        cache = None if self.cache is None else JudgementCache(self.cache)
        plain = {"backend": share.spec(self.plain["backend"]), "settings": settings.to_dict()}
        try:
            reranker = EvidenceReranker.from_dict(plain, cache=cache)
            found = differences(self.ran, identity_of(reranker))
            if found:
                raise SettingsError(f"a worker would judge otherwise: {'; '.join(found)}")
            yield judging(reranker, share.meter(whole.budget))
        finally:
            if cache is not None:
                cache.close()

    def cost(self, done: Judged) -> Usage:
        """What a question has cost."""
        return sum(map(Usage.of, done.facts["usage"].values()), Usage())

    def _settings(self, share: Share) -> Settings:
        whole = dict(self.plain["settings"])
        at_once = share.count("--max-concurrency", whole["max_concurrency"])
        budget = share.budget(Settings.of(whole).budget)
        return Settings.of({**whole, "max_concurrency": at_once, "budget": budget})
