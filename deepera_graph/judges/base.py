"""What a judge is: it is given a list of windows, and gives a list of verdicts.

`Judge.plan` says which windows to judge next, in batches; nothing is left when it says none.
`Judge.judge` judges one batch. The pipeline calls both, and spreads a verdict over equal windows.

`counting_backend` makes the twin of a backend that counts what would be asked, and asks nothing.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, runtime_checkable

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import ValidationError

from deepera_graph.agents.twin import invoker_of
from deepera_graph.errors import AnswerError, RoleError, SettingsError, name_problems
from deepera_graph.schema import (
    Answer,
    Backend,
    Batch,
    Candidate,
    Intent,
    IntentFields,
    Judgement,
    PassageTask,
    RoleAnswer,
    Summary,
    Unjudged,
    Verdict,
    Window,
    cost_of,
    passage_tasks,
)
from deepera_graph.settings.thresholds import OPERATING_POINT
from deepera_graph.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What a judge plans with; windows are named by their places in `windows`.

    Attributes:
        question: The question.
        intent: What it asks for.
        windows: All distinct windows of the question, in the order of title, section and text.
        open: Those without a verdict, in first-stage order.
        next: Those of `open` whose turn it is, whole passages, the most promising first.
        candidates: First scores in [0, 1], by the part that gave them and by window.
        summary_from: The lowest score for which a summary is wanted; None if none is.
    """

    question: str
    intent: IntentFields
    windows: Sequence[Window]
    open: Sequence[int]
    next: Sequence[int]
    candidates: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    summary_from: float | None = None

    def batch(
        self,
        numbers: Iterable[int],
        *,
        part: str = "",
        is_joint: bool = False,
        scores: Mapping[int, float] | None = None,
    ) -> Batch:
        """Return a batch of windows, in the order of their texts.

        Args:
            numbers: Of the windows; at least one.
            part: Word for what to do with them, for a judge that does several things.
            is_joint: Whether a verdict depends on the other windows of the batch.
            scores: First scores to give along.
        """
        chosen = sorted(numbers)
        batch: Batch = {
            "question": self.question,
            "intent": self.intent,
            "windows": [self.windows[number] for number in chosen],
            "numbers": chosen,
            "part": part,
            "is_joint": is_joint,
        }
        if scores is not None:
            batch["scores"] = [scores[number] for number in chosen]
        if self.summary_from is not None:
            batch["summary_from"] = self.summary_from
        return batch

    def of_part(self, part: str, *, open: Sequence[int], next: Sequence[int]) -> Self:
        """Return what one part of a judge is told: its own windows and candidates."""
        head = f"{part}."
        own = {
            name.removeprefix(head): scores
            for name, scores in self.candidates.items()
            if name.startswith(head)
        }
        return replace(self, open=open, next=next, candidates=own)


class Judge(ABC):
    """Judges windows of a question, many at a time.

    A subclass needs `judge` alone. It may also have ``prepare(windows)``, which begins to read, in
    the background, what it will most likely be asked about soon; and ``counting()``, a twin that
    asks nothing and answers with what this one would cost.

    Attributes:
        gives_summaries: Whether it can give a summary along with a score.
        group_size: Windows that it likes to be given together, >= 1; a round is a multiple of it.
        asks_model: Whether it may ask a model that is paid by the call. A subclass that asks none
            says False: estimates then count no call of it, and a server tries it when it starts.
        operating_point: The lowest score, in [0, 1], from which on what it judges counts as
            evidence, where the settings name no threshold.
        evidence_point: The score, in [0, 1], from which on what is kept is called evidence; what is
            kept below it is possible evidence. None if all that is kept is evidence.
    """

    gives_summaries: bool = False
    group_size: int = 1
    asks_model: bool = True
    operating_point: float = OPERATING_POINT
    evidence_point: float | None = None

    def plan(self, request: PlanRequest) -> Sequence[Batch]:
        """Say what to judge next; nothing is left if it says nothing. Quick, and no I/O.

        By default all whose turn it is, in one batch.
        """
        return [request.batch(request.next)] if request.next else []

    @abstractmethod
    def judge(self, batch: Batch, config: RunnableConfig | None = None) -> Sequence[Verdict]:
        """Judge a batch; one verdict a window, in its order.

        Raises:
            RoleError: No window can be judged; one that fails alone is `Unjudged`.
        """

    async def ajudge(self, batch: Batch, config: RunnableConfig | None = None) -> Sequence[Verdict]:
        """Do what `judge` does, in the running loop; by default in a thread."""
        return await asyncio.to_thread(self.judge, batch, config)

    def question_problem(self, question: str, windows: Sequence[Window]) -> str:
        """Say why this judge's scores mean little for a question, for the user; empty if they do.

        It is asked once a question, after the distinct windows were judged: quick, and no I/O.
        """
        return ""

    def missing_words(self, question: str, windows: Sequence[Window]) -> Sequence[str]:
        """Return the words of a question without which no window can answer it, if none has them.

        It is asked as `question_problem` is. Where there are any, no window is taken for evidence.
        """
        return ()

    def promise(self, request: PlanRequest) -> Mapping[int, float] | None:
        """Say how likely windows are evidence, so that the best are first where not all are judged.

        A window that is left out costs nothing to judge. None, as by default, if all cost the same
        and nothing is known: the first stage decides.
        """
        return None


@runtime_checkable
class Prepares(Protocol):
    """A judge that can begin before the intent is known."""

    def prepare(self, windows: Sequence[Window]) -> None:
        """Begin to read windows in the background, and return at once."""
        # Nothing is lost if they are not judged after all, or if reading fails: `judge` says so.


class PassageJudge(Judge):
    """A judge of single passages, a Runnable or a function, as a judge of lists: one a batch."""

    def __init__(
        self, role: Runnable[PassageTask, Judgement] | Callable[[PassageTask], Any]
    ) -> None:
        self._role = role if isinstance(role, Runnable) else RunnableLambda(role)
        self._invoke = invoker_of(self._role)
        self.gives_summaries = bool(getattr(role, "gives_summaries", False))
        self.asks_model = bool(getattr(role, "asks_model", True))
        self.operating_point = getattr(role, "operating_point", OPERATING_POINT)
        self.evidence_point = getattr(role, "evidence_point", None)

    def plan(self, request: PlanRequest) -> Sequence[Batch]:
        """Judge each window by itself."""
        return [request.batch([number]) for number in request.next]

    def judge(self, batch: Batch, config: RunnableConfig | None = None) -> Sequence[Verdict]:
        """Judge one passage after the other."""
        return [self._invoke(task, config) for task in passage_tasks(batch)]

    async def ajudge(self, batch: Batch, config: RunnableConfig | None = None) -> Sequence[Verdict]:
        """Do what `judge` does, in the running loop."""
        return [await self._role.ainvoke(task, config) for task in passage_tasks(batch)]


def as_judge(given: object) -> Judge:
    """Return a judge as it is, and a Runnable or a function as a judge of single passages."""
    if isinstance(given, Judge):
        return given
    if isinstance(given, Runnable) or (callable(given) and not isinstance(given, type)):
        return PassageJudge(given)
    raise SettingsError(f"judge must be a Judge, a Runnable or a function, got {given!r:.80}")


def read_verdicts(batch: Batch, given: Iterable[object]) -> list[Verdict]:
    """Check what a judge gave: one verdict a window; one that is unusable fails alone."""
    verdicts = [one if isinstance(one, _KINDS) else _read_verdict(one) for one in given]
    n_windows = len(batch["windows"])
    if len(verdicts) != n_windows:
        problem = f"unusable answer: {len(verdicts)} verdicts on {n_windows} passages"
        raise AnswerError(problem, usage=cost_of(verdicts))
    return verdicts


_KINDS = (Judgement, Candidate, Unjudged)  # the most frequent first


def _read_verdict(given: object) -> Verdict:
    if isinstance(given, RoleError):
        return Unjudged.of(given)
    try:
        return Judgement.model_validate(given, from_attributes=True)
    except ValidationError as error:
        return Unjudged(cause=name_problems(error), usage=Usage(calls=1))


def judge_all(
    judge: Judge,
    question: str,
    intent: IntentFields,
    windows: Sequence[Window],
    config: RunnableConfig | None = None,
) -> list[Judgement | Unjudged]:
    """Judge distinct windows with no pipeline around, round after round, in their order."""
    order = sorted(range(len(windows)), key=lambda place: window_key(windows[place]))
    final: dict[int, Judgement | Unjudged] = {}
    candidates: dict[str, dict[int, float]] = {}
    while True:
        rest = [number for number in range(len(order)) if number not in final]
        request = PlanRequest(
            question=question,
            intent=intent,
            windows=[windows[place] for place in order],
            open=rest,
            next=rest,
            candidates=candidates,
        )
        batches = judge.plan(request) if rest else []
        if not batches:
            break
        for batch in batches:
            verdicts = read_verdicts(batch, judge.judge(batch, config))
            for number, verdict in zip(batch["numbers"], verdicts, strict=True):
                if isinstance(verdict, Candidate):
                    candidates.setdefault(verdict.by, {})[number] = verdict.first_score
                else:
                    final[number] = verdict
    left = Unjudged(cause="not needed: its judge asked about no more", usage=Usage())
    by_place = {place: final.get(number, left) for number, place in enumerate(order)}
    return [by_place[place] for place in range(len(windows))]


def window_key(window: Window) -> tuple[str, str, str]:
    """Return what names a window: equal ones are judged once."""
    return window["title"], window["section"], window["text"]


_ROLES: Mapping[str, RoleAnswer] = {
    "intent": Intent(topic="any", entity_type="", intent="other", expected_answer_type="other"),
    "summarizer": Summary(text="counted"),
    "answerer": Answer(text="counted", citations=[]),
}


@runtime_checkable
class Countable(Protocol):
    """A role, or a judge, that knows what its calls would cost."""

    def counting(self) -> Any:
        """Return one that costs nothing and answers with the usage this one would have."""


class CountedRole(Runnable[Any, Any]):
    """Stands in for a role that is not asked: a task costs what is said, its tokens not known."""

    def __init__(self, answer: RoleAnswer, a_task: Usage) -> None:
        self._answer, self._a_task = answer, a_task

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> RoleAnswer:
        """Return the answer that makes the most calls follow."""
        changes: dict[str, Any] = {"usage": self._a_task}
        if isinstance(self._answer, Intent):
            changes["entity_type"] = input["question"]  # one that names nothing is asked twice
        return self._answer.model_copy(update=changes)

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> RoleAnswer:
        """Do what `invoke` does, in the running loop."""
        return self.invoke(input)


class CountedJudge(Judge):
    """Stands in for a judge that is not asked: plans as it does, and keeps every passage."""

    def __init__(self, judge: Judge, a_window: Usage | None = None) -> None:
        self._judge, self._a_window = judge, a_window
        self.group_size, self.operating_point = judge.group_size, judge.operating_point
        self.evidence_point = judge.evidence_point

    def plan(self, request: PlanRequest) -> Sequence[Batch]:
        """Plan as the judge does."""
        return self._judge.plan(request)

    def judge(self, batch: Batch, config: RunnableConfig | None = None) -> Sequence[Verdict]:
        """Return the verdicts that make the most calls follow."""
        n_more = len(batch["windows"]) - 1
        a_window = self._a_window
        if a_window is None:
            costs = [Usage(calls=1), *[Usage()] * n_more]
        else:
            costs = [a_window] * (1 + n_more)
        return [Judgement(score=1.0, usage=cost) for cost in costs]


def counting_backend(backend: Backend) -> Backend:
    """Return a backend of the same roles that counts calls and tokens; see `tokens_known`."""
    # A role of the caller's own is not called: its calls may cost money.
    roles: dict[str, Any] = {
        name: _counting_role(name, role) for name, role in _roles_of(backend).items()
    }
    judge = counting_judge(as_judge(backend.judge))
    return replace(
        backend, **roles, judge=judge, spec=None, needs_evidence=False, names_evidence=False
    )


def _counting_role(name: str, role: Any) -> Any:
    if isinstance(role, Countable):
        return role.counting()
    return CountedRole(_ROLES[name], Usage(calls=int(_may_ask(role))))


def counting_judge(judge: Judge) -> Judge:
    """Return the counting twin of a judge alone."""
    if isinstance(judge, Countable):
        twin: Judge = judge.counting()
        return twin
    return CountedJudge(judge, None if judge.asks_model else Usage())


def tokens_known(backend: Backend) -> bool:
    """Whether the twin of every role knows the tokens, not just the calls."""
    every = [backend.judge, *_roles_of(backend).values()]
    return all(isinstance(role, Countable) or not _may_ask(role) for role in every)


def _may_ask(role: object) -> bool:
    return bool(getattr(role, "asks_model", True))


def _roles_of(backend: Backend) -> dict[str, Runnable[Any, Any]]:
    roles = {name: getattr(backend, name) for name in _ROLES}
    return {name: role for name, role in roles.items() if role is not None}


def joint_spec(kind: str, parts: Mapping[str, Backend]) -> dict[str, Any] | None:
    """Return the spec of a backend made of others; None if a part cannot be written down."""
    specs = {role: part.spec for role, part in parts.items()}
    if any(spec is None for spec in specs.values()):
        return None
    return {"kind": kind, **{role: dict(spec or {}) for role, spec in specs.items()}}
