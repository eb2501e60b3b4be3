"""Retrieve node: the passages of one sub-question, judged in the light of the path.

It may measure how sure each batch of passages is: m answers to the question are sampled from it and
grouped into sets of one meaning, and its scores are divided by the number s of sets. One meaning
leaves the scores as they are; m different ones divide them by m. The penalty is the whole batch's:
a right passage in an ambiguous batch falls below a mediocre one in an unambiguous batch.

Source:
    SUNAR, answer semantic uncertainty, equations 1 to 5: two answers are in one set if each entails
    the other; an answer is compared with the first member of each set. Grouping by entailment is of
    Kuhn, Gal and Farquhar (2023), Semantic uncertainty, section 3.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.agents.twin import TwinCall, TwinRunnable, Work, ado, ask, call, do
from deepera_graph.errors import BudgetError, DeepEraError, RoleError, SettingsError, StoreError
from deepera_graph.multihop.agent.adaptive import penalise
from deepera_graph.multihop.agent.roles import (
    Entailment,
    EntailTask,
    MultiHopBackend,
    Sample,
    SampleTask,
)
from deepera_graph.multihop.agent.state import BatchUncertainty, StepTask
from deepera_graph.multihop.passages.retriever import AdaptiveRetriever, AdaptiveRun
from deepera_graph.multihop.path import (
    EvidenceText,
    Form,
    normal_form,
    question_with_path,
    texts_of,
)
from deepera_graph.multihop.settings import Label, MultiHopSettings, Uncertainty
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.retrieval.fusion import as_search, named_errors
from deepera_graph.settings.budget import ado_many, do_many
from deepera_graph.stores.words import name_passage
from deepera_graph.usage import Usage

AnswerT = TypeVar("AnswerT")
Checked = Callable[[str, Runnable[Any, Any], type[Any]], Any]


def group_answers(
    answers: Sequence[str],  # short answers, shape (m,); none is empty
    # what the first of two answers says about the second; asked at most d (d - 1) times for d
    # normal forms. None compares normal forms alone.
    label: Callable[[str, str], Work[Label]] | None = None,
    *,
    # whether answers are equivalent unless one contradicts the other, as in the authors' code. By
    # default each must entail the other, as in the paper.
    lenient: bool = False,
) -> Work[list[int]]:
    """Return the work that gives the set of each answer, numbered from 0 as they first come."""
    # Answers of one `normal_form` are in one set, and none of them is compared twice. Any other one
    # is compared with the first member of each set, in their order, and joins the first that it is
    # equivalent to; a set that was given once is never changed.
    alike: Sequence[Label] = ("entailment", "neutral") if lenient else ("entailment",)
    firsts: list[str] = []
    known: dict[Form, int] = {}
    for answer in answers:
        form = normal_form(answer)
        if form not in known:
            known[form] = len(firsts)
            if label is not None:
                known[form] = yield from _find_set(answer, firsts, label, alike)
            firsts += [answer] if known[form] == len(firsts) else []
    return [known[normal_form(one)] for one in answers]


def _find_set(
    answer: str,
    firsts: Sequence[str],
    label: Callable[[str, str], Work[Label]],
    alike: Sequence[Label],
) -> Work[int]:
    for number, first in enumerate(firsts):
        if (yield from label(first, answer)) not in alike:
            continue
        if (yield from label(answer, first)) in alike:
            return number
    return len(firsts)


@dataclass(frozen=True, slots=True)
class Measured:
    """The uncertainty of a batch, and what measuring it cost, by role."""

    record: BatchUncertainty
    usage: Mapping[str, Usage]


class AnswerUncertainty:
    """Measures the uncertainty of batches with the roles of a backend."""

    def __init__(
        self,
        settings: Uncertainty,
        sampler: Runnable[SampleTask, Sample],
        entailer: Runnable[EntailTask, Entailment] | None = None,
    ) -> None:
        self.settings, self._sampler, self._entailer = settings, sampler, entailer
        if settings.equivalence != "exact" and settings.compare is None and entailer is None:
            raise SettingsError(
                f"equivalence {settings.equivalence!r} needs an entailer or compare=; 'exact' "
                "needs neither"
            )

    def work(
        self, question: str, batch: Sequence[EvidenceText], config: RunnableConfig | None = None
    ) -> Work[Measured]:
        """Return the work of sampling answers from a batch and counting their meanings."""
        count, how = _Count(self.settings), self.settings
        numbers = range(1, how.samples + 1)

        def draw(number: int) -> Work[Sample | RoleError]:
            task = SampleTask(question=question, evidence=[*batch], sample=number)
            return _try(self._sampler, task, config)

        said = yield TwinCall(
            lambda: do_many(lambda one: do(draw(one)), numbers, how.samples),
            lambda: ado_many(lambda one: ado(draw(one)), numbers, how.samples),
        )
        count.take_samples(said)

        def label(premise: str, hypothesis: str) -> Work[Label]:
            if how.compare is not None:
                return count.take_label(how.compare(question, premise, hypothesis))
            task = EntailTask(question=question, premise=premise, hypothesis=hypothesis)
            assert self._entailer is not None
            return count.take_label((yield from _try(self._entailer, task, config)))

        count.sets = yield from group_answers(
            count.answers,
            None if how.equivalence == "exact" else label,
            lenient=how.equivalence == "lenient",
        )
        return count.result()


def _try(
    role: Runnable[Any, AnswerT], task: object, config: RunnableConfig | None
) -> Work[AnswerT | RoleError]:
    try:
        answer: AnswerT = yield ask(role, task, config)
    except RoleError as error:
        return error
    return answer


class _Count:
    def __init__(self, settings: Uncertainty) -> None:
        self._settings = settings
        self.answers: list[str] = []
        self.sets: list[int] = []
        self._errors: list[str] = []
        self._n_compared, self._n_uncompared = 0, 0
        self._usage = {"sample": Usage(), "entail": Usage()}

    def take_samples(self, said: Sequence[Sample | RoleError]) -> None:
        for one in said:
            self._usage["sample"] += one.usage or Usage()
            if isinstance(one, RoleError):
                self._errors.append(str(one))
            elif normal_form(one.text):
                self.answers.append(one.text.strip())
            else:
                self._errors.append("an empty answer")

    def take_label(self, said: "Label | Entailment | RoleError") -> Label:
        """Return a label; where there is none, nothing follows from one answer about the other."""
        self._n_compared += 1
        if isinstance(said, RoleError):
            self._usage["entail"] += said.usage
            self._n_uncompared += 1
            return "neutral"
        if isinstance(said, Entailment):
            self._usage["entail"] += said.usage or Usage()
            return said.label
        return said

    def result(self) -> Measured:
        record: BatchUncertainty = {
            "n_samples": self._settings.samples,
            "n_sets": max(self.sets) + 1 if self.sets else None,
            "answers": self.answers,
            "sets": self.sets,
            "n_compared": self._n_compared,
            "problem": self._problem(),
        }
        return Measured(record, self._usage)

    def _problem(self) -> str:
        parts = []
        if self._errors:
            n, m = len(self._errors), self._settings.samples
            parts.append(f"{n} of {m} samples unusable, the first: {self._errors[0]}")
        if not self.answers:
            parts.append("no penalty, as no sample was usable")
        if self._n_uncompared:
            parts.append(f"{self._n_uncompared} of {self._n_compared} comparisons failed")
        return "; ".join(parts)


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
                asked = question_with_path(found.question, task["path"])
                with named_errors("the judge failed"):
                    judged = yield call(
                        judge.rerank, judge.arerank, asked, found.passages, config=config
                    )
                    found.take(judged)
        except DeepEraError as error:
            status = "skipped_budget" if isinstance(error, BudgetError) else "failed"
            return found.update(str(error), status=status, cause=str(error))
        passages, measured = found.passages[: self._most], found.records
        return found.update(
            status="found", cause=found.cause, passages=passages, uncertainty=measured
        )

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
        self._number = task["step"]["number"]
        self.question = task["step"]["question"]
        self.passed_over = frozenset(task["passed_over"])
        self.passages: list[Document] = []
        self.records: list[BatchUncertainty] = []
        self._by_batch: dict[str, BatchUncertainty] = {}
        self._usage: defaultdict[str, Usage] = defaultdict(Usage)
        self.cause = ""
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
            self._usage[name] += usage
        divided = penalise(scores, measured.record["n_sets"])
        return [one for one in divided if one is not None]

    def take_run(self, run: AdaptiveRun) -> None:
        """Take over what a search along neighbours found, and what went wrong in it."""
        self.passages = run.documents
        names = [name for batch in run.result.batches for name in batch]
        self.records = [self._by_batch[one] for one in names if one in self._by_batch]
        if run.causes:
            n, cause = len(run.causes), next(iter(run.causes.values()))
            self._problems.append(f"not scored: {n}, the first: {cause}")

    def keep_distinct(self) -> None:
        """Keep each passage once, with its id; not what has no text, or need not be read again."""
        named = {
            name_passage(one): one for one in reversed(self.passages) if one.page_content.strip()
        }
        self.passages = [
            one if one.id == name else one.model_copy(update={"id": name})
            for name, one in reversed(named.items())
            if name not in self.passed_over
        ]
        if named and not self.passages:
            n = len(named)
            self.cause = f"all passages found ({n}) were read before, and do not have it"

    def take(self, result: RerankResult) -> None:
        self._usage["judge"] += result.total_usage
        if result.backend_failure is not None:
            raise StoreError(result.backend_failure)
        if result.failed:
            n, first = len(result.failed), result.failed[0].reason
            self._problems.append(f"not judged: {n}, the first: {first}")
        by_id = {one.id: one for one in self.passages}
        if not result.kept:
            n = len(self.passages)
            self.cause = f"none of {n} passages gives evidence (threshold {result.threshold:g})"
        self.passages = [by_id[one.id] for one in result.kept]

    def update(self, *problems: str, **step: Any) -> dict[str, Any]:
        """Return what the state is told of the step, and what went wrong."""
        unmeasured = [f"uncertainty: {one['problem']}" for one in self.records if one["problem"]]
        return {
            "steps": [{"number": self._number, **step}],
            "problems": [
                f"step {self._number}: {one}" for one in (*problems, *self._problems, *unmeasured)
            ],
            "usage": {name: used.record() for name, used in self._usage.items() if used != Usage()},
        }
