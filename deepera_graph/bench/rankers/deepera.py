"""An `EvidenceReranker` as a ranker."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph import __version__
from deepera_graph.bench.rankers.base import CandidatePassage, Job, Note, Ranker, Ranking
from deepera_graph.budget import Meter, with_meter
from deepera_graph.errors import AnswerError, BackendError, BudgetError
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.schema import Backend, Intent, IntentTask
from deepera_graph.usage import Usage

_FAILED = -1.0
_OF_NO_EFFECT = ("max_concurrency", "budget")


# With *kept_only* it returns what passed its filter, as the paper does. *meter* counts the calls of
# all questions against one budget; None leaves each few the budget of the reranker.
class DeepEra(Ranker):
    """Ranks with DeepEra; scores are in [0, 1], -1 for a passage without one."""

    says_why = True

    def __init__(
        self,
        reranker: EvidenceReranker,
        *,
        kept_only: bool = False,
        name: str = "",
        meter: Meter | None = None,
    ) -> None:
        self._reranker, self._kept_only = reranker, kept_only
        self._config: RunnableConfig | None = with_meter({}, meter) if meter else None
        self._usage = Usage()
        self.name = name or f"DeepEra {reranker.backend.name}{', kept' if kept_only else ''}"
        self.fingerprint = self._identify()

    def _identify(self) -> Mapping[str, Any] | None:
        """Return all that rankings depend on; None if the backend is made of live objects."""
        # A judgement that changes within a version of this package needs a new `judge_version`.
        backend = self._reranker.backend
        if backend.spec is None:
            return None
        settings = self._reranker.effective_settings.to_dict()
        return {
            "kind": "deepera",
            "backend": backend.fingerprint()["spec"],
            "about": dict(backend.about),
            "settings": {key: settings[key] for key in settings if key not in _OF_NO_EFFECT},
            "kept_only": self._kept_only,
            "version": __version__,
        }

    def variant(
        self, name: str, *, intent: bool = True, kept_only: bool = False, **settings: Any
    ) -> "DeepEra":
        """Return this ranker with other settings; or with a judge that is not told the intent."""
        reranker = self._reranker.with_settings(**settings)
        if not intent:
            reranker = EvidenceReranker(
                _without_intent(reranker.backend), **reranker.settings.to_dict()
            )
        made = DeepEra(reranker, kept_only=kept_only, name=name)
        made._config = self._config
        return made

    @property
    def usage(self) -> Usage:
        """Model calls and tokens so far."""
        return self._usage

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Return the passages in DeepEra's order."""
        results = self.results(jobs)
        self.notes = [self._note(result) for result in results]
        return [self._read(result) for result in results]

    def evidence_many(self, jobs: Sequence[Job], n: int) -> list[list[str]]:
        """Return the best *n* passages a job, in its summary where there is one."""
        return [
            [one.summary or one.text for one in self._select(result)[:n]]
            for result in self.results(jobs)
        ]

    def results(self, jobs: Sequence[Job]) -> list[RerankResult]:
        """Return all that the reranker says of many questions."""
        shown = [(question, [_to_passage(one) for one in passages]) for question, passages in jobs]
        results = self._reranker.batch(shown, config=self._config)
        for result in results:
            self._usage += result.total_usage
        for result in results:
            self._check(result)
        return results

    def _check(self, result: RerankResult) -> None:
        if result.backend_failure is not None:
            raise BackendError(result.backend_failure)
        if result.outcome == "budget_stop":
            raise BudgetError(result.failed[0].reason if result.failed else "budget reached")
        failed = result.failed
        if failed:
            self.problems.note(len(failed), failed[0].reason)

    def _note(self, result: RerankResult) -> dict[str, Note]:
        by_default = self._reranker.backend.needs_evidence
        needed = self._reranker.settings.needs_evidence(by_default=by_default)
        return {
            one.id: Note(one.reason, one.quote, not needed or one.quote_span is not None)
            for one in result.all_passages
        }

    def _read(self, result: RerankResult) -> Ranking:
        chosen = self._select(result)
        return [(one.id, _FAILED if one.score is None else one.score) for one in chosen]

    def _select(self, result: RerankResult) -> tuple[RankedPassage, ...]:
        return result.kept if self._kept_only else result.all_passages


def _without_intent(backend: Backend) -> Backend:
    spec = None if backend.spec is None else {**backend.spec, "intent": None}
    return replace(backend, name=f"{backend.name} without intent", intent=_NoIntent(), spec=spec)


class _NoIntent(Runnable[IntentTask, Intent]):
    """Recognises nothing, so that the other roles go on with the question alone."""

    def invoke(
        self, input: IntentTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Intent:
        """Raise `AnswerError`."""
        raise AnswerError("intent recognition is off")


def _to_passage(passage: CandidatePassage) -> dict[str, Any]:
    known = {key: passage[key] for key in ("title", "section") if passage[key]}
    return {"id": passage["id"], "text": passage["text"], "metadata": known}
