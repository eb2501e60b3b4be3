"""An `EvidenceReranker` as a ranker, and as what hands passages on to a generator."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph import __version__
from deepera_graph.errors import AnswerError, BackendError, BudgetError
from deepera_graph.judges.base import Judge
from deepera_graph.lab.asking import of_run
from deepera_graph.lab.rankers.base import (
    CandidatePassage,
    Job,
    Note,
    Ranker,
    Ranking,
    as_document,
)
from deepera_graph.pipeline.score import evidence_wanted, is_proven
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.schema import Backend, Batch, Intent, IntentTask, Judgement, Verdict
from deepera_graph.settings.budget import Meter, with_meter
from deepera_graph.settings.thresholds import OPERATING_POINT
from deepera_graph.usage import Usage

_FAILED = -1.0
_OF_NO_EFFECT = ("max_concurrency", "budget")
_OWN_JUDGES = ("local", "encoder")  # kinds of backends that give the same in every run
_JOINT = ("mixed", "screened", "cascade")
_WHOLE_PASSAGES = 10**9  # characters: more than any passage has


class HandedOn(NamedTuple):
    """What a generator is given of one kept passage."""

    text: str  # empty where the summarizer found no answer in it
    problem: str = ""  # why there is no summary, so that the passage itself is given


# With *kept_only* it returns what passed its filter, as the paper does. *meter* counts the calls of
# all questions against one budget; None leaves each few the budget of the reranker.
class DeepEra(Ranker):
    """Ranks with DeepEra; scores are in [0, 1], -1 for a passage without one."""

    says_why = True
    marks_failures = True

    def __init__(
        self,
        reranker: EvidenceReranker,
        *,
        kept_only: bool = False,
        name: str = "",
        meter: Meter | None = None,
    ) -> None:
        self._reranker, self.kept_only = reranker, kept_only
        self._config: RunnableConfig | None = with_meter({}, meter) if meter else None
        self._usage = Usage()
        self.name = name or f"DeepEra {reranker.backend.name}{', kept' if kept_only else ''}"
        self.fingerprint = self._identify()
        self.asks_model = asks_model(reranker.backend.spec)
        threshold = reranker.effective_settings.threshold
        self.operating_point = OPERATING_POINT if threshold is None else threshold

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
            "kept_only": self.kept_only,
            "version": __version__,
        }

    def without_intent(self) -> "DeepEra":
        """Return this ranker with a judge that is not told the intent."""
        return self._sibling(_without_intent(self._reranker.backend), f"{self.name} without intent")

    def repeat(self, number: int) -> "DeepEra":
        """Return this ranker for one run, which a cache answers with nothing of other runs."""
        if not number:
            return self
        return self._sibling(of_run(self._reranker.backend, number), self.name)

    def _sibling(self, backend: Backend, name: str) -> "DeepEra":
        reranker = self._reranker.with_backend(backend)
        made = DeepEra(reranker, kept_only=self.kept_only, name=name)
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
        self.intents = [_intent_of(result) for result in results]
        return [self._read(result) for result in results]

    def summarize_many(
        self,
        jobs: Sequence[Job],
        notes: Sequence[Mapping[str, Note]],
        intents: Sequence[Mapping[str, str]],
    ) -> list[dict[str, HandedOn]]:
        """Summarize all passages of each job, judged before, as DeepEra does what it keeps."""
        # No judge is asked again: *notes* and *intents* are those of the ranking.
        summaries = self._summaries
        for (question, passages), noted, intent in zip(jobs, notes, intents, strict=True):
            summaries.learn(question, passages, noted, intent)
        shown = [(question, list(map(as_document, passages))) for question, passages in jobs]
        results = summaries.reranker.batch(shown, config=self._config)
        for result in results:
            self._usage += result.total_usage
            self._stop_early(result)
        return [{one.id: _hand_on(one) for one in result.all_passages} for result in results]

    @cached_property
    def _summaries(self) -> "_Replayed":
        return _Replayed(self._reranker)

    def results(self, jobs: Sequence[Job]) -> list[RerankResult]:
        """Return all that the reranker says of many questions."""
        shown = [(question, list(map(as_document, passages))) for question, passages in jobs]
        results = self._reranker.batch(shown, config=self._config)
        for result in results:
            self._usage += result.total_usage
        for result in results:
            self._check(result)
        return results

    def _check(self, result: RerankResult) -> None:
        self._stop_early(result)
        failed = result.failed
        if failed:
            self.problems.note(len(failed), failed[0].reason)

    def _stop_early(self, result: RerankResult) -> None:
        if result.backend_failure is not None:
            raise BackendError(result.backend_failure)
        if result.outcome == "budget_stop":
            raise BudgetError(result.failed[0].reason if result.failed else "budget reached")

    def _note(self, result: RerankResult) -> dict[str, Note]:
        evidence = evidence_wanted(self._reranker.backend, self._reranker.settings)
        return {
            one.id: Note(one.reason, one.quote, is_proven(one.quote_status, evidence), one.summary)
            for one in result.all_passages
        }

    def _read(self, result: RerankResult) -> Ranking:
        chosen = result.kept if self.kept_only else result.all_passages
        return [(one.id, _FAILED if one.score is None else one.score) for one in chosen]


def asks_model(spec: Mapping[str, Any] | None) -> bool:
    """Whether a backend may answer differently in the next run; of one not known it is said."""
    if spec is None:
        return True
    kind = spec.get("kind")
    if kind in _JOINT:
        return any(asks_model(part) for part in spec.values() if isinstance(part, Mapping))
    return kind not in _OWN_JUDGES


def _intent_of(result: RerankResult) -> dict[str, str]:
    """Return what a question asks for; nothing where it was not recognised."""
    intent = result.intent
    if intent["status"] == "fallback":
        return {}
    return {name: str(value) for name, value in intent["fields"].items()}


def _hand_on(passage: RankedPassage) -> HandedOn:
    if passage.summary_status == "none":
        return HandedOn("")
    problem = passage.reason if passage.summary_status == "failed" else ""
    return HandedOn(passage.summary or passage.text, problem)


class _Replayed:
    """A reranker that keeps all it is given, by judgements and intents that are known."""

    def __init__(self, reranker: EvidenceReranker) -> None:
        self._judge, self._intent = _ReplayedJudge(), _ReplayedIntent()
        backend = reranker.backend
        spec = None if backend.spec is None else {**backend.spec, "judge_of": "a ranking"}
        known = replace(backend, judge=self._judge, intent=self._intent, spec=spec)
        self.reranker = reranker.with_settings(
            threshold=0.0,
            top_n=_WHOLE_PASSAGES,
            order="score",
            content="summary",
            on_empty="empty",
            on_error="keep_last",
            require_evidence=False,
            max_passage_chars=_WHOLE_PASSAGES,
            answer=False,
            stop_after=None,
        ).with_backend(known)

    def learn(
        self,
        question: str,
        passages: Sequence[CandidatePassage],
        notes: Mapping[str, Note],
        intent: Mapping[str, str],
    ) -> None:
        self._intent.known[question] = intent
        for one in passages:
            self._judge.known[question, one["text"]] = notes[one["id"]]


class _ReplayedJudge(Judge):
    """Keeps every passage, with the quote and the summary that are known of it."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], Note] = {}

    def judge(self, batch: Batch, config: RunnableConfig | None = None) -> Sequence[Verdict]:
        """Return what is known of each passage, at no cost."""
        notes = (self.known[batch["question"], one["text"]] for one in batch["windows"])
        return [
            Judgement(score=1.0, quote=one.quote, summary=one.summary, usage=Usage())
            for one in notes
        ]


class _ReplayedIntent(Runnable[IntentTask, Intent]):
    """Says what is known of a question, at no cost."""

    def __init__(self) -> None:
        self.known: dict[str, Mapping[str, str]] = {}

    def invoke(
        self, input: IntentTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Intent:
        """Return the intent, or raise `AnswerError` where it was not recognised."""
        fields = self.known[input["question"]]
        if not fields:
            raise AnswerError("the intent was not recognised", usage=Usage())
        return Intent.model_validate({**fields, "usage": Usage()})


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
