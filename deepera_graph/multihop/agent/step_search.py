"""Retrieve node: the passages of one sub-question, judged in the light of the path."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.agents.twin import TwinRunnable, Work, ask, call
from deepera_graph.errors import BudgetError, DeepEraError, SettingsError, StoreError
from deepera_graph.multihop.agent.adaptive import penalise
from deepera_graph.multihop.agent.roles import Entailment, MultiHopBackend, Sample
from deepera_graph.multihop.agent.state import StepTask
from deepera_graph.multihop.agent.uncertainty import (
    AnswerUncertainty,
    BatchUncertainty,
)
from deepera_graph.multihop.passages.retriever import AdaptiveRetriever, AdaptiveRun
from deepera_graph.multihop.path import question_with_path, texts_of
from deepera_graph.multihop.settings import MultiHopSettings
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.retrieval.fusion import as_search, named_errors
from deepera_graph.stores.words import name_passage
from deepera_graph.usage import Usage

Checked = Callable[[str, Runnable[Any, Any], type[Any]], Any]


def measuring(
    roles: MultiHopBackend, settings: MultiHopSettings, checked: Checked, retriever: Any
) -> AnswerUncertainty | None:
    """Return what measures uncertainty; None if it is not wanted."""
    wanted = settings.uncertainty
    if wanted is None:
        return None
    if not isinstance(retriever, AdaptiveRetriever):
        raise SettingsError(
            "uncertainty is measured for the batches of an AdaptiveRetriever, "
            f"got {type(retriever).__name__}"
        )
    if roles.sampler is None:
        raise SettingsError(f"uncertainty needs a sampler, and backend {roles.name!r} has none")
    entailer = None
    if roles.entailer is not None:
        entailer = checked("entailer", roles.entailer, Entailment)
    return AnswerUncertainty(wanted, checked("sampler", roles.sampler, Sample), entailer)


class RetrieveStep(TwinRunnable[StepTask, dict[str, Any]]):
    """Looks for the passages of one sub-question: every step has a first stage of its own."""

    def __init__(
        self,
        retriever: Any,
        *,
        judge: EvidenceReranker | None,
        settings: MultiHopSettings,
        uncertainty: AnswerUncertainty | None,
    ) -> None:
        self._retriever, self._judge = retriever, judge
        self._most, self._uncertainty = settings.step_passages, uncertainty
        self._source = as_search(retriever, self._most)
        self._deeper = as_search(retriever, 2 * self._most)

    def work(self, task: StepTask, config: RunnableConfig | None) -> Work[dict[str, Any]]:
        """Search, deeper where passages are passed over; and judge if there is a judge."""
        found, judge = _Found(task), self._judge
        deeper = bool(found.passed_over)
        try:
            with named_errors("the search failed"):
                if isinstance(self._source, AdaptiveRetriever):
                    k = max(2 * self._most if deeper else self._most, self._source.k)
                    found.take_run((yield from self._find(found, k, config)))
                else:
                    source = self._deeper if deeper else self._source
                    found.passages = yield ask(source, found.question, config)
            found.keep_distinct()
            if judge is not None and found.passages:
                asked = found.question_for_judge()
                with named_errors("the judge failed"):
                    judged = yield call(
                        judge.rerank, judge.arerank, asked, found.passages, config=config
                    )
                    found.take(judged)
        except DeepEraError as error:
            return found.failed(error)
        return found.update(self._most)

    def _find(self, found: "_Found", k: int, config: RunnableConfig | None) -> Work[AdaptiveRun]:
        """Search along neighbours; with uncertainty each batch is measured, its scores divided."""
        retriever: AdaptiveRetriever = self._retriever
        if self._uncertainty is None:
            run: AdaptiveRun = yield call(
                retriever.find, retriever.afind, found.question, k=k, config=config
            )
            return run
        revise = partial(found.revise, self._uncertainty, config)
        feedback = self._uncertainty.settings.feedback
        work = retriever.work(found.question, k, config, revise=revise, feedback=feedback)
        return (yield from work)


class _Found:
    def __init__(self, task: StepTask) -> None:
        self._task, self._number = task, task["step"]["number"]
        self.question = task["step"]["question"]
        self.passed_over = frozenset(task["passed_over"])
        self.passages: list[Document] = []
        self._records: list[BatchUncertainty] = []
        self._by_batch: dict[str, BatchUncertainty] = {}
        self._usage: dict[str, Usage] = {}
        self._cause = ""
        self._problems: list[str] = []

    def revise(
        self,
        measure: AnswerUncertainty,
        config: RunnableConfig | None,
        question: str,
        passages: Sequence[Document],
        scores: Sequence[float],
    ) -> Work[list[float]]:
        """Note what is measured of a batch, under its first passage, and divide its scores."""
        measured = yield from measure.work(question, texts_of(passages), config)
        self._by_batch[name_passage(passages[0])] = measured.record
        for name, usage in measured.usage.items():
            self._spend(name, usage)
        divided = penalise(scores, measured.record["n_sets"])
        return [one for one in divided if one is not None]

    def take_run(self, run: AdaptiveRun) -> None:
        """Take over what a search along neighbours found, and what went wrong in it."""
        self.passages = run.documents
        names = [name for batch in run.result.batches for name in batch]
        self._records = [self._by_batch[one] for one in names if one in self._by_batch]
        if run.causes:
            n, cause = len(run.causes), next(iter(run.causes.values()))
            self._problems.append(f"not scored: {n}, the first: {cause}")

    def question_for_judge(self) -> str:
        return question_with_path(self.question, self._task["path"])

    def keep_distinct(self) -> None:
        """Keep each passage once, with its id; not what has no text, or need not be read again."""
        named = {name_passage(one): one for one in reversed(self.passages) if _has_text(one)}
        self.passages = [
            one if one.id == name else one.model_copy(update={"id": name})
            for name, one in reversed(named.items())
            if name not in self.passed_over
        ]
        if named and not self.passages:
            n = len(named)
            self._cause = f"all passages found ({n}) were read before, and do not have it"

    def take(self, result: RerankResult) -> None:
        self._spend("judge", result.total_usage)
        if result.backend_failure is not None:
            raise StoreError(result.backend_failure)
        if result.failed:
            n, first = len(result.failed), result.failed[0].reason
            self._problems.append(f"not judged: {n}, the first: {first}")
        by_id = {one.id: one for one in self.passages}
        if not result.kept:
            n = len(self.passages)
            self._cause = f"none of {n} passages gives evidence (threshold {result.threshold:g})"
        self.passages = [by_id[one.id] for one in result.kept]

    def failed(self, error: DeepEraError) -> dict[str, Any]:
        status = "skipped_budget" if isinstance(error, BudgetError) else "failed"
        step = {"number": self._number, "status": status, "cause": str(error)}
        return {
            "steps": [step],
            "problems": [f"step {self._number}: {error}", *self._told()],
            "usage": self._records_of_usage(),
        }

    def update(self, most: int) -> dict[str, Any]:
        step = {
            "number": self._number,
            "status": "found",
            "cause": self._cause,
            "passages": self.passages[:most],
            "uncertainty": self._records,
        }
        return {"steps": [step], "problems": self._told(), "usage": self._records_of_usage()}

    def _told(self) -> list[str]:
        unmeasured = [f"uncertainty: {one['problem']}" for one in self._records if one["problem"]]
        return [f"step {self._number}: {one}" for one in (*self._problems, *unmeasured)]

    def _records_of_usage(self) -> dict[str, Any]:
        return {name: usage.record() for name, usage in self._usage.items() if usage != Usage()}

    def _spend(self, name: str, usage: Usage) -> None:
        self._usage[name] = self._usage.get(name, Usage()) + usage


def _has_text(passage: Document) -> bool:
    return bool(passage.page_content.strip())
