"""Score stage: windows go to the judge in rounds of batches, each comes back with a verdict.

`Planner` says which windows are judged next. With early stopping it looks after each round whether
there is enough to stop. What has a verdict before its turn, as from a judge that looks at all
passages together, waits for its turn. Batches are judged in parallel.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Send

from deepera_graph.agents.role import CheckedRole
from deepera_graph.errors import DeepEraError, RoleError
from deepera_graph.judges.base import Judge, PlanRequest, read_verdicts, window_key
from deepera_graph.passages import WindowRecord, retrieval_place, shown_text
from deepera_graph.pipeline.state import (
    JudgementRecord,
    PassageStatus,
    QuoteStatus,
    ScoreTask,
    Span,
    State,
    Update,
    read_judgements,
    tell,
)
from deepera_graph.schema import (
    Backend,
    Batch,
    Candidate,
    IntentKind,
    Judgement,
    Unjudged,
    Verdict,
    Window,
    fail_all,
    with_repair_note,
)
from deepera_graph.settings import Settings, ThresholdRule
from deepera_graph.settings.budget import Limiter, carried
from deepera_graph.settings.thresholds import OPERATING_POINT, Threshold
from deepera_graph.text.quotes import find_quote

_DIGITS = 9  # of a score; 0.2 + 0.1 is then 0.3


class CheckedJudge(CheckedRole[Batch, list[Verdict]]):
    """A judge as a role: what it gives is checked, window by window."""

    def __init__(self, judge: Judge, limiter: Limiter) -> None:
        self._do, self._ado, self._read = judge.judge, judge.ajudge, read_verdicts
        self._limiter = limiter


def record(task: ScoreTask, verdicts: Sequence[Verdict]) -> Update:
    """Append the verdicts, in the order of the passages; equal windows get the same one."""
    pairs = zip(task["members"], verdicts, strict=True)
    judgements: list[dict[str, Any]] = []
    candidates: list[dict[str, Any]] = []
    for windows, verdict in pairs:
        if isinstance(verdict, Candidate):
            first = {"score": verdict.first_score, "by": verdict.by}
            candidates += ({"index": w["index"], "start": w["start"], **first} for w in windows)
        else:
            said = _record(verdict)
            judgements += ({**window, **said} for window in windows)
    judgements.sort(key=itemgetter("index", "start"))
    return {"judgements": judgements, **({"candidates": candidates} if candidates else {})}


def on_failure(task: ScoreTask, error: RoleError) -> Update:
    """Keep the passages, unscored: one bad answer must not sink the others."""
    return record(task, fail_all(task["batch"], error))


def name_run(task: ScoreTask) -> str:
    """Name a batch in a trace: by its passage, counted from 1, or by how many it has."""
    members = task["members"]
    if len(members) > 1:
        return f"score {len(members)} passages"
    return f"score {members[0][0]['index'] + 1}"


def _record(verdict: Judgement | Unjudged) -> dict[str, Any]:
    """Return what a `JudgementRecord` says beside its window; what was not given is left out."""
    if isinstance(verdict, Unjudged):
        return {
            "score": None,
            "status": "skipped_budget" if verdict.is_skipped else "failed",
            "reason": verdict.cause,
            "quote": "",
            "unusable": verdict.unusable,
        }
    given = {
        "summary": verdict.summary if verdict.summary.strip() else "",
        "direction": verdict.direction,
        "position": verdict.position,
        "evidence_unknown": verdict.evidence_unknown and not verdict.quote,
    }
    return {
        "score": verdict.score,
        "status": "repaired" if verdict.repaired else "scored",
        "reason": with_repair_note(verdict.reason, verdict),
        "quote": verdict.quote,
        "unusable": False,
        **{name: value for name, value in given.items() if value},
    }


# What a passage that reaches the threshold must show, too: nothing; no quote but one that occurs in
# it; or such a quote.
Evidence = Literal["any", "sound", "required"]
_FOUND = ("verbatim", "normalised")


def evidence_wanted(backend: Backend, settings: Settings) -> Evidence:
    """Return what a passage must show to pass, by the settings, else by who judges."""
    if settings.needs_evidence(by_default=backend.needs_evidence):
        return "required"
    return "sound" if backend.names_evidence and settings.require_evidence is None else "any"


def is_proven(quote_status: str, evidence: Evidence) -> bool:
    """Whether what was named, and how it was found in the passage, is what it must show."""
    if evidence == "any":
        return True
    return quote_status != "not_found" if evidence == "sound" else quote_status in _FOUND


def passes(text: str, judgement: JudgementRecord, lowest: float, *, evidence: Evidence) -> bool:
    """Whether the verdict on a window of a text reaches a score, and shows what it must."""
    score = judgement["score"]
    if score is None or score < lowest:
        return False
    return evidence == "any" or is_proven(locate_quote(text, judgement)[0], evidence)


def locate_quote(text: str, judgement: JudgementRecord) -> tuple[QuoteStatus, Span | None]:
    """Find a quote in the window it was read in: word for word, or but for typography.

    Without a quote the status is empty; ``not_found`` if what was named is not there.
    """
    quote, start, end = judgement["quote"], judgement["start"], judgement["end"]
    if not quote:
        return ("not_found" if judgement.get("evidence_unknown") else ""), None
    place = text.find(quote, start, end)
    if place >= 0:
        return "verbatim", [place, place + len(quote)]
    found = find_quote(text, quote, start=start, end=end)
    if found.start is None or found.end is None:
        return found.status, None
    return found.status, [found.start, found.end]


def cut(threshold: Threshold | None, scores: Sequence[float], intent: IntentKind) -> float:
    """Return the lowest score kept, in [0, 1]; None, where no judge is known, is 0.8."""
    if isinstance(threshold, ThresholdRule):
        return threshold.cut(scores, intent)
    return OPERATING_POINT if threshold is None else float(threshold)


def sure_from(settings: Settings, intent: IntentKind) -> float:
    """Return the lowest score that is surely above the threshold, in [0, 1], or above all scores.

    That is `stop_margin` above it, but no more than half the way from it to 1: a threshold of
    0.95 makes 0.975 sure, and one of 1.0 makes 1.0 sure.
    """
    lowest = cut(settings.threshold, [], intent)
    margin = min(settings.stop_margin, max(0.0, 1 - lowest) / 2)
    return max(lowest, round(lowest + margin, _DIGITS))


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
    size: int | None = field(init=False)  # passages a round

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.settings.passages_a_round)

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
        size, judge, judgements = self.size, self.judge, read_judgements(state)
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
            summary_from=_summary_from(state, self.settings) if judge.gives_summaries else None,
        )
        spent = "" if self.has_cache else carried(config).meter.reached()
        done: set[int] = set()
        # whole groups; all at once without a size
        windows_a_round = inf if size is None else -(-size // judge.group_size) * judge.group_size
        promise = None if size is None else judge.promise(request)
        for passages in pool.rounds(windows_a_round, promise):
            turn = pool.open_of(passages)
            left = self._why_stop(state, done, spent=spent if turn else "") if done else None
            if left is not None:
                return _leave(state, done, left)
            if turn:
                batches = _next_batches(judge, replace(request, next=turn))
                if batches:
                    tasks = [
                        ScoreTask(batch=one, members=[pool.members[n] for n in one["numbers"]])
                        for one in batches
                    ]
                    return Command(goto=[Send("score", task) for task in tasks])
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
