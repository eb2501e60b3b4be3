"""The front door: a question and its passages in, a `RerankResult` out."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property, partial
from operator import attrgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self, Unpack

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig

from deepera_graph.agents.run import AgentRun, Event, do_all, made_by, make_manifest, share_limits
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.judges import load_backend
from deepera_graph.judges.base import as_judge, counting_backend, tokens_known
from deepera_graph.passages import PassageLike, check_question, read_passages
from deepera_graph.pipeline.graph import build_graph, check_parts, with_threshold
from deepera_graph.pipeline.state import Output, Question, State, read_outcome
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.schema import Backend
from deepera_graph.settings import Settings, SettingsKwargs
from deepera_graph.settings import preset as find_preset
from deepera_graph.settings.budget import Estimate, Limiter, ado_many
from deepera_graph.settings.thresholds import Calibrated, calibration_differences
from deepera_graph.stores.judgements import JudgementCache

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph


_STAGE_OF = {
    "intent": "intent",
    "scored": "score",
    "selected": "select",
    "summarized": "summarize",
    "answered": "answer",
}
_MOST_THREADS = 10_000  # started one by one, as branches need them
_STEPS_APART = 8  # receive, intent, plan, select, summarize, collect, answer, and the end
_STEPS_A_PASSAGE = 4  # at most: two rounds of judging, each a plan and a batch
_MOST_QUESTIONS_AT_ONCE, _COUNTED_AT_ONCE = 8, 4
Job = tuple[str, Iterable[PassageLike]]


class EvidenceReranker:
    """Reads passages as evidence for a question, and keeps those that prove something.

    ``EvidenceReranker("local", threshold=0.7).rerank(question, passages)``

    Args:
        backend: Who judges: a `Backend`, or ``"local"``, ``"provider:model"`` or
            ``"package.module:factory"``; or the plain form that `to_dict` gives.
        checkpointer: A LangGraph saver that keeps the state of every run; needs a ``thread_id``
            in the config. None keeps nothing.
        cache: Where judgements are kept, so that an equal one is not paid for twice; see
            `deepera_graph.stores.judgements`. None keeps none.
        preset: ``"fast"``, ``"careful"`` or ``"cheap"``: settings to begin with, and how a chat
            model that is given by its name is asked; see `deepera_graph.preset`. None is neither.
        settings: See `Settings`. A threshold that is not given is the judge's own: `settings` then
            says None, and `effective_settings` what counts.

    Raises:
        SettingsError: A setting or preset is unknown or out of range, or the backend cannot be
            built.
    """

    def __init__(
        self,
        backend: Backend | str | Mapping[str, Any] = "local",
        *,
        checkpointer: "BaseCheckpointSaver[Any] | None" = None,
        cache: JudgementCache | None = None,
        preset: str | None = None,
        **settings: Unpack[SettingsKwargs],
    ) -> None:
        Settings.check_names(settings, also=("preset", "cache", "checkpointer"))
        start = None if preset is None else find_preset(preset)
        checked = Settings.of({**(start.settings if start else {}), **settings})
        limiter = Limiter(checked.max_concurrency)
        self._build(load_backend(backend, preset=start), checked, limiter, checkpointer, cache)

    def rerank(
        self,
        question: str,
        passages: Iterable[PassageLike],
        *,
        config: RunnableConfig | None = None,
        resume: bool = False,
    ) -> RerankResult:
        """Judge, filter and summarize the passages of one question.

        Args:
            question: What is asked; not blank.
            passages: Strings, dicts (``id``, ``text``, ``metadata``, ``score``) or documents, in
                first-stage order; none of them is changed.
            config: A LangChain config: callbacks, tags, metadata, `max_concurrency`; with a
                checkpointer the ``thread_id`` of the run.
            resume: Whether to go on with what the checkpointer has of this thread, if it has
                anything: of a run that was cut short only what was in flight is asked again, and of
                a finished one nothing. Only what is done now is in `seconds`. Without it a thread
                is begun anew.

        Raises:
            InputError: The question or a passage cannot be used, or the thread to resume is of
                other ones.
            SettingsError: There is no checkpointer to resume from, or the thread was begun by
                another backend or with other settings (`budget` and `max_concurrency` apart).
        """
        return RerankRun(self, question, passages, config).finish(resume=resume)

    async def arerank(
        self,
        question: str,
        passages: Iterable[PassageLike],
        *,
        config: RunnableConfig | None = None,
        resume: bool = False,
    ) -> RerankResult:
        """Do what `rerank` does, in the running loop."""
        return await RerankRun(self, question, passages, config).afinish(resume=resume)

    def stream(
        self,
        question: str,
        passages: Iterable[PassageLike],
        *,
        config: RunnableConfig | None = None,
        resume: bool = False,
    ) -> Iterator[Event]:
        """Yield an event whenever a stage gets something done; the last one holds the result.

        See `deepera_graph.pipeline.answer` for the events.
        """
        return RerankRun(self, question, passages, config).stream(resume=resume)

    def astream(
        self,
        question: str,
        passages: Iterable[PassageLike],
        *,
        config: RunnableConfig | None = None,
        resume: bool = False,
    ) -> AsyncIterator[Event]:
        """Do what `stream` does, in the running loop."""
        return RerankRun(self, question, passages, config).astream(resume=resume)

    def batch(
        self, jobs: Sequence[Job], *, config: RunnableConfig | None = None
    ) -> list[RerankResult]:
        """Rerank many (question, passages) pairs; results in the same order.

        `max_concurrency`, be it a setting or in the config, and `budget` hold for all questions
        together. All are looked at before any is judged, so that one that cannot be used costs
        nothing.

        Raises:
            InputError: A question or a passage cannot be used; it names the job, from 1.
        """
        shared, usable = share_limits(config, self.effective_settings), _check_jobs(jobs)
        at_once = self.questions_at_once
        return do_all(lambda job: self.rerank(*job, config=shared), usable, at_once, shared)

    async def abatch(
        self, jobs: Sequence[Job], *, config: RunnableConfig | None = None
    ) -> list[RerankResult]:
        """Do what `batch` does, in the running loop."""
        shared, usable = share_limits(config, self.effective_settings), _check_jobs(jobs)
        at_once = self.questions_at_once
        return await ado_many(lambda job: self.arerank(*job, config=shared), usable, at_once)

    def estimate(self, jobs: Sequence[Job]) -> Estimate:
        """Say what a `batch` of these jobs would cost at most; nothing is asked.

        Prices are those of the `budget`; its limits, and a cache, are not looked at.

        Raises:
            InputError: A question or a passage cannot be used.
        """
        settings = replace(
            self.settings.without_early_stopping(),
            threshold=0.0,
            budget=None,
            require_evidence=False,
            on_error="keep_last",  # what a cascade does not read counts as such
        )
        twin = self._sibling(counting_backend(self.backend), settings, Limiter(_COUNTED_AT_ONCE))
        known = tokens_known(self.backend)
        results = twin.batch(jobs)
        n_passages = sum(len(result.all_passages) for result in results)
        return Estimate.of(results, n_passages, self.settings.budget, tokens_known=known)

    def with_settings(self, **changes: Unpack[SettingsKwargs]) -> Self:
        """Return a reranker on the same backend with some settings changed; this one stays.

        Both together keep to `max_concurrency`, unless that is what changes. Cheap: milliseconds.

        Raises:
            SettingsError: A setting is unknown or out of range.
        """
        settings = Settings.of({**self.settings.to_dict(), **changes})
        same_limit = settings.max_concurrency == self.settings.max_concurrency
        limiter = self._limiter if same_limit else Limiter(settings.max_concurrency)
        return self._sibling(self.backend, settings, limiter, self.checkpointer, self._cache)

    def with_backend(self, backend: Backend) -> Self:
        """Return a reranker of another backend, with these settings, cache and limits."""
        return self._sibling(backend, self.settings, self._limiter, self.checkpointer, self._cache)

    @property
    def questions_at_once(self) -> int:
        """How many questions of a batch are worked on at the same time, >= 1."""
        return most_questions_at_once(self.settings)

    @cached_property
    def graph(self) -> "CompiledStateGraph[State, None, Question, Output]":
        """The state machine, made when asked for: agents make many relatives, and ask few."""
        make = partial(build_graph, cache=self._cache, limiter=self._limiter)
        return make(self.backend, self.effective_settings, checkpointer=self.checkpointer or False)

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """What results say of how they were made: who judges, settings, versions; no secret."""
        made = make_manifest(self.backend, self.effective_settings)
        made["reads_by_rules"] = self.backend.reads_by_rules
        threshold = self.effective_settings.threshold
        if isinstance(threshold, Calibrated):  # for another judge, maybe
            differences = threshold.curve.differences(self.backend.name, self.backend.about)
            made["calibration"] = {"differences": differences}
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `from_dict` reads; it holds no secret.

        Raises:
            SettingsError: The backend was made from live objects and cannot be written down.
        """
        if self.backend.spec is None:
            raise SettingsError(
                f"backend {self.backend.name!r} was made from live objects; to write it down, "
                "name a factory: EvidenceReranker('package.module:factory')"
            )
        return {"backend": dict(self.backend.spec), "settings": self.settings.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], *, cache: JudgementCache | None = None) -> Self:
        """Build what `to_dict` wrote down; clients are made anew.

        Raises:
            SettingsError: A setting or the backend cannot be read.
        """
        return cls(load_backend(plain["backend"]), cache=cache, **plain["settings"])

    def __reduce__(self) -> tuple[Any, ...]:
        backend = self.backend if self.backend.spec is None else dict(self.backend.spec)
        return partial(type(self), backend, cache=self._cache, **self.settings.to_dict()), ()

    def __repr__(self) -> str:
        return f"EvidenceReranker({self.backend.name!r}, {self.settings})"

    def _sibling(
        self,
        backend: Backend,
        settings: Settings,
        limiter: Limiter,
        checkpointer: "BaseCheckpointSaver[Any] | None" = None,
        cache: JudgementCache | None = None,
    ) -> Self:
        other = type(self).__new__(type(self))
        other._build(backend, settings, limiter, checkpointer, cache)
        return other

    def _build(
        self,
        backend: Backend,
        settings: Settings,
        limiter: Limiter,
        checkpointer: "BaseCheckpointSaver[Any] | None",
        cache: JudgementCache | None,
    ) -> None:
        self.backend, self.settings = backend, settings
        self.effective_settings = with_threshold(settings, as_judge(backend.judge))
        calibration_differences(settings.threshold, backend.name, backend.about)
        self.checkpointer, self._cache, self._limiter = checkpointer, cache, limiter
        check_parts(backend, self.effective_settings, cache)


class RerankRun(AgentRun[RerankResult]):
    """One question on its way through the pipeline of a reranker."""

    name, kind, begun = "DeepEra", "reranker", "passages"
    differs = "by another backend or with other settings"
    modes = ("custom", "values")
    _settings: Settings

    def __init__(
        self,
        reranker: EvidenceReranker,
        question: str,
        passages: Iterable[PassageLike],
        config: RunnableConfig | None,
    ) -> None:
        check_question(question, passages)
        self._reranker = reranker
        held = list(passages) if isinstance(passages, Iterator) else passages  # read twice
        self._passages = read_passages(held)
        self._ids = [one.id if isinstance(one, Document) else None for one in held]
        self._stage_seconds: dict[str, float] = {}
        given: Question = {"question": question, "passages": self._passages}
        super().__init__(
            reranker.graph,
            given,
            config,
            reranker.effective_settings,
            # were every passage judged in rounds alone
            n_steps=_STEPS_APART + _STEPS_A_PASSAGE * (1 + len(self._passages)),
            has_saver=reranker.checkpointer is not None,
        )
        self._last = self._started

    def result(self) -> RerankResult:
        """Return the result, once the stream has ended."""
        state = self._state
        if not state:
            raise RuntimeError("the graph ended without a state")
        passages, left_out = (
            tuple(RankedPassage.of(one, self._passages, self._ids) for one in records)
            for records in (state["ranking"], state.get("left_out", ()))
        )
        return RerankResult(
            question=state["question"],
            intent=state["intent"],
            passages=passages,
            left_out=left_out,
            warnings=tuple(state.get("warnings", ())),
            outcome=read_outcome(state["outcome"]),
            fallback=state["fallback"],
            threshold=state["threshold"],
            evidence_point=state.get("evidence_point"),
            missing_words=tuple(state.get("missing_words", ())),
            answer=state["answer"],
            usage=self.usage,
            seconds={**self._stage_seconds, "total": self.seconds},
            manifest=deepcopy(self._reranker.manifest),
        )

    def made_by(self) -> str:
        """Return who judges, and how."""
        return made_by(self._reranker.backend, self._settings)

    def _events(self, chunk: Any) -> Iterable[Event]:
        """Return the chunk if it is an event of ours, not of a role; note how long it took."""
        stage = _STAGE_OF.get(str(chunk.get("event"))) if isinstance(chunk, dict) else None
        if stage is None:
            return ()
        now = perf_counter()
        self._stage_seconds[stage] = self._stage_seconds.get(stage, 0.0) + now - self._last
        self._last = now
        return (chunk,)

    def _n_threads(self, asked: int | None, *, in_loop: bool) -> int | None:
        """Return how many threads LangGraph may use."""
        # One more than calls, as one of them does nothing but wait for events, and a single one
        # would wait forever. With a saver one for every branch: what a branch has found is saved by
        # a thread too, and would else wait until all branches have begun, and be lost with the
        # process. In a loop there is no limit, as LangGraph's complains when cancelled.
        if in_loop:
            return None
        limit = self._settings.max_concurrency
        return _MOST_THREADS if self._has_saver else min(asked or limit, limit) + 1

    def _check_same(self, saved: Mapping[str, Any]) -> None:
        super()._check_same(saved)
        seen = attrgetter("id", "page_content")
        if [*map(seen, read_passages(saved["passages"]))] != [*map(seen, self._passages)]:
            raise InputError("the thread to resume is of other passages")


def most_questions_at_once(settings: Settings) -> int:
    """Return how many questions of a batch are worked on at the same time, >= 1."""
    return min(settings.max_concurrency, _MOST_QUESTIONS_AT_ONCE)


def _check_jobs(jobs: Sequence[Any]) -> list[Job]:
    """Return the jobs, with passages that can be read twice; raise `InputError` for a bad one."""
    usable: list[Job] = []
    for number, job in enumerate(jobs, start=1):
        if not isinstance(job, Sequence) or isinstance(job, str) or len(job) != 2:
            raise InputError(f"job {number} must be (question, passages), got {job!r:.80}")
        question, passages = job
        held = list(passages) if isinstance(passages, Iterator) else passages
        try:
            check_question(question, held)
            read_passages(held)
        except InputError as error:
            raise InputError(f"job {number}: {error}") from error
        usable.append((question, held))
    return usable
