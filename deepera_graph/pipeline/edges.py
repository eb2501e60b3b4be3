"""Where the graph goes next: to the judge with another batch, to a summary, to the answer.

The first round is planned on the way from the intent; `plan` is the node between two rounds. With
early stopping it looks after each round whether there is enough to stop. What has a verdict before
its turn, as from a judge that looks at all passages together, waits for its turn.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal, NamedTuple

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END
from langgraph.types import Command, Send

from deepera_graph.budget import Carried, carried
from deepera_graph.errors import DeepEraError, RoleError
from deepera_graph.judges.base import Judge, PlanRequest, window_key
from deepera_graph.passages import WindowRecord, retrieval_place, shown_text
from deepera_graph.pipeline.answer import answerable_records
from deepera_graph.pipeline.score import Evidence, passes
from deepera_graph.pipeline.state import (
    JudgementRecord,
    PassageStatus,
    State,
    Update,
    read_judgements,
    tell,
)
from deepera_graph.pipeline.summarize import summary_task
from deepera_graph.schema import Batch, IntentKind, Window
from deepera_graph.settings import Settings
from deepera_graph.thresholds import cut

_DIGITS = 9  # of a score; 0.2 + 0.1 is then 0.3


class Edge(Runnable[State, Sequence[Send] | str]):
    """A way to go on, as LangGraph takes it; not a step of the trace, as it only looks."""

    name = "next"

    def __init__(self, where: Callable[[State, RunnableConfig], Sequence[Send] | str]) -> None:
        self._where = where

    def invoke(
        self, input: State, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Sequence[Send] | str:
        """Say where to go."""
        return self._where(input, config or {})

    async def ainvoke(
        self, input: State, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Sequence[Send] | str:
        """Say where to go; no thread is needed for that."""
        return self._where(input, config or {})


class _Left(NamedTuple):
    """Why passages are left unjudged."""

    status: PassageStatus
    reason: str
    unusable: bool = False


_ASKED_NO_MORE = _Left("not_needed", "skipped: the judge asked for no more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Sends the next batches to the judge; if there are none, or there is enough, goes on.

    `evidence` says what a passage must show to pass, besides its score; `has_cache`, that a verdict
    may be had for nothing after the budget is spent.
    """

    judge: Judge
    settings: Settings
    evidence: Evidence
    has_cache: bool

    def start(self, state: State, config: RunnableConfig) -> Sequence[Send] | str:
        """Plan the first round as an edge, which saves a step; with no batch, `plan` says why."""
        command = self._next(state, config)
        return "plan" if command.update else command.goto  # type: ignore[return-value]  # ours

    def plan(self, state: State, config: RunnableConfig) -> Command[Literal["score", "select"]]:
        """Plan as a node, between two rounds."""
        command = self._next(state, config)
        if command.update:
            tell("plan", command.update)
        return command

    def _next(self, state: State, config: RunnableConfig) -> Command[Literal["score", "select"]]:
        settings, judge, judgements = self.settings, self.judge, read_judgements(state)
        size = settings.passages_a_round
        if size is None and len(judgements) == len(state["windows"]):
            return Command(goto="select")
        pool = _Pool(state, judgements)
        request = PlanRequest(
            question=state["question"],
            intent=state["intent"]["fields"],
            windows=pool.windows,
            open=pool.open_of(pool.numbers),
            next=(),
            candidates=pool.candidates,
            summary_from=_summary_from(state, settings) if judge.gives_summaries else None,
        )
        spent = "" if self.has_cache else (carried(config) or Carried()).meter.reached
        done: set[int] = set()
        # whole groups; all at once without a size
        windows_a_round = inf if size is None else -(-size // judge.group_size) * judge.group_size
        for passages in pool.rounds(windows_a_round, judge.promise(request)):
            turn = pool.open_of(passages)
            left = self._why_stop(state, done, spent=spent if turn else "") if done else None
            if left is not None:
                return _leave(state, done, left)
            if turn:
                batches = _next_batches(judge, replace(request, next=turn))
                if batches:
                    return Command(goto=[pool.send(batch) for batch in batches])
                return _leave(state, pool.judged_passages(), _ASKED_NO_MORE)
            done.update(passages)
        return Command(goto="select")

    def _why_stop(self, state: State, done: Collection[int], *, spent: str) -> _Left | None:
        judgements = [one for one in state["judgements"] if one["index"] in done]
        if self.settings.stop_after is not None:
            lowest = sure_from(self.settings, state["intent"]["fields"]["intent"])
            texts = {index: state["passages"][index].page_content for index in done}
            sure = {
                one["index"]
                for one in judgements
                if passes(texts[one["index"]], one, lowest, evidence=self.evidence)
            }
            if len(sure) >= self.settings.stop_after:
                found = "1 passage" if len(sure) == 1 else f"{len(sure)} passages"
                return _Left("not_needed", f"skipped: {found} already scored >= {lowest:g}")
        if all(one["unusable"] for one in judgements):  # a backend that lets nobody in
            return _Left("failed", judgements[0]["reason"], unusable=True)
        return _Left("skipped_budget", f"budget reached: {spent}") if spent else None


def sure_from(settings: Settings, intent: IntentKind) -> float:
    """Return the lowest score that is surely above the threshold, in [0, 1], or above all scores.

    That is `stop_margin` above it, but no more than half the way from it to 1: a threshold of
    0.95 makes 0.975 sure, and one of 1.0 makes 1.0 sure.
    """
    lowest = cut(settings.threshold, [], intent)
    margin = min(settings.stop_margin, max(0.0, 1 - lowest) / 2)
    return max(lowest, round(lowest + margin, _DIGITS))


def any_kept(state: State, *, settings: Settings) -> Sequence[Send] | str:
    """The filter edge: summarize what was kept, where the judge has not done it already.

    With nothing kept, answer or end.
    """
    kept = [record for record in state["ranking"] if record["kept"]]
    if not kept:
        return last_step(state, settings=settings)
    if settings.content == "passage":
        return "collect"
    done = {summary["index"] for summary in state.get("summaries", ())}
    rest = [record for record in kept if record["index"] not in done]
    return [Send("summarize", summary_task(state, record)) for record in rest] or "collect"


def last_step(state: State, *, settings: Settings) -> str:
    """Answer if that was asked for."""
    if not settings.answer:
        return END
    return "answer" if answerable_records(state) else "abstain"


class _Pool:
    """The distinct windows of a question, numbered in the order of their texts.

    Attributes:
        windows: What the judge is shown of each.
        members: The passages, or windows of them, that have the text of each.
        numbers: The windows of each passage, in the order that the passages came.
        judged: Those with a verdict.
        candidates: First scores, by the part of the judge that gave them and by window.
    """

    def __init__(self, state: State, judgements: Iterable[JudgementRecord]) -> None:
        self._passages = state["passages"]
        found: dict[tuple[str, str, str], tuple[Window, list[WindowRecord]]] = {}
        for record in state["windows"]:
            passage = self._passages[record["index"]]
            window = shown_text(passage, record["start"], record["end"])
            found.setdefault(window_key(window), (window, []))[1].append(record)
        pairs = [found[key] for key in sorted(found)]
        self.windows = [window for window, _ in pairs]
        self.members = [members for _, members in pairs]
        number_of = {
            (one["index"], one["start"]): number
            for number, own in enumerate(self.members)
            for one in own
        }
        self.numbers: dict[int, list[int]] = defaultdict(list)
        for one in state["windows"]:
            self.numbers[one["index"]].append(number_of[one["index"], one["start"]])
        self.judged = {number_of[one["index"], one["start"]] for one in judgements}
        self.candidates: dict[str, dict[int, float]] = defaultdict(dict)
        for first in state["candidates"]:
            number = number_of[first["index"], first["start"]]
            self.candidates[first["by"]][number] = first["score"]

    def judged_passages(self) -> set[int]:
        """Return the passages of which every window has its verdict."""
        return {index for index, own in self.numbers.items() if self.judged.issuperset(own)}

    def open_of(self, passages: Iterable[int]) -> list[int]:
        """Return the windows of passages that have no verdict yet, each once."""
        every = (number for index in passages for number in self.numbers[index])
        return [number for number in dict.fromkeys(every) if number not in self.judged]

    def send(self, batch: Batch) -> Send:
        """Send a batch to the judge, with the windows that its verdicts are for."""
        members = [self.members[number] for number in batch["numbers"]]
        return Send("score", {"batch": batch, "members": members})

    def rounds(self, size: float, promise: Mapping[int, float] | None) -> Sequence[Collection[int]]:
        """Cut the passages into rounds; the most promising first, then the best of the first stage.

        All windows of a passage go together. What costs nothing, as it is in no *promise* or equal
        to a window before it, goes with the first round that it can. *size* is the most windows a
        round, more only for a single passage that has more; if it is infinite, there is one round,
        of the passages as they came.
        """
        if size == inf:
            return [self.numbers.keys()]
        known = promise or {}
        round_of: dict[int, int] = {}
        rounds: list[list[int]] = [[]]
        n_taken = 0
        for index in sorted(self.numbers, key=lambda index: self._turn(index, known)):
            own = [one for one in self.numbers[index] if promise is None or one in promise]
            new = {one for one in own if one not in round_of}
            if new and n_taken and n_taken + len(new) > size:
                rounds.append([])
                n_taken = 0
            n_taken += len(new)
            round_of.update(dict.fromkeys(new, len(rounds) - 1))
            rounds[max((round_of[one] for one in own), default=0)].append(index)
        return rounds

    def _turn(self, index: int, promise: Mapping[int, float]) -> tuple[float, int, int]:
        best = max(promise.get(number, 0.0) for number in self.numbers[index])
        return -best, retrieval_place(self._passages[index], index)[0], index


def _next_batches(judge: Judge, request: PlanRequest) -> list[Batch]:
    try:
        batches = list(judge.plan(request))
        asked = [number for batch in batches for number in batch["numbers"]]
    except DeepEraError:
        raise
    except Exception as error:  # the boundary to foreign code
        raise RoleError(f"the judge cannot plan: {type(error).__name__}: {error}") from error
    if batches and not set(asked) & set(request.open):
        raise RoleError("the judge cannot plan: it asks again for what it has judged")
    return batches


def _leave(state: State, done: Collection[int], left: _Left) -> Command[Literal["score", "select"]]:
    """Leave all other passages unjudged, each with why."""
    rest = dict.fromkeys(one["index"] for one in state["windows"] if one["index"] not in done)
    update: Update = {"judgements": [_unjudged(state, index, left) for index in rest]}
    return Command(update=update, goto="select")


def _unjudged(state: State, index: int, left: _Left) -> JudgementRecord:
    passage = state["passages"][index]
    return {
        "index": index,
        "id": passage.id or str(index + 1),
        "start": 0,
        "end": len(passage.page_content),
        "score": None,
        "status": left.status,
        "reason": left.reason,
        "quote": "",
        "unusable": left.unusable,
    }


def _summary_from(state: State, settings: Settings) -> float | None:
    """Return the lowest score that may be kept; None if no summary is wanted, or none can be kept.

    A rule that goes by the scores has not seen them yet: its floor counts.
    """
    if settings.content == "passage":
        return None
    lowest = cut(settings.threshold, [], state["intent"]["fields"]["intent"])
    return lowest if lowest <= 1 else None
