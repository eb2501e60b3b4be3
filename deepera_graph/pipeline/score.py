"""Wave node: between two waves, whether the rest is still to be asked about."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from langchain_core.runnables import RunnableConfig

from deepera_graph.budget import meter_of
from deepera_graph.errors import RoleError
from deepera_graph.passages import judged_windows
from deepera_graph.pipeline.call import tell
from deepera_graph.pipeline.edges import sure_from
from deepera_graph.pipeline.state import (
    JudgementRecord,
    PassageStatus,
    ScoreGroup,
    ScoreTask,
    Span,
    State,
    Update,
)
from deepera_graph.schema import (
    GroupJudgement,
    GroupTask,
    Judgement,
    PassageTask,
    Unjudged,
    told_with,
)
from deepera_graph.settings import Settings
from deepera_graph.text.quotes import find_quote

Found = Literal["verbatim", "normalised", "not_found"]


def passes(text: str, judgement: JudgementRecord, lowest: float, *, needs_evidence: bool) -> bool:
    """Whether the verdict on a window of a text reaches a score, and shows evidence if it must."""
    score = judgement["score"]
    if score is None or score < lowest:
        return False
    return not needs_evidence or bool(judgement["quote"] and placed(text, judgement)[1])


def placed(text: str, judgement: JudgementRecord) -> tuple[Found, Span | None]:
    """Find a quote in the window it was read in: word for word, or but for typography."""
    quote, start, end = judgement["quote"], judgement["start"], judgement["end"]
    place = text.find(quote, start, end)
    if place >= 0:
        return "verbatim", [place, place + len(quote)]
    found = find_quote(text, quote, start=start, end=end)
    if found.start is None or found.end is None:
        return found.status, None
    return found.status, [found.start, found.end]


def ask(task: ScoreTask) -> PassageTask:
    """Show the judge the text and the question; never an id, a place or a label."""
    return task["task"]


def record(task: ScoreTask, judgement: Judgement) -> Update:
    """Append the verdict."""
    verdict: JudgementRecord = {
        "index": task["index"],
        "id": task["id"],
        "start": task["start"],
        "end": task["end"],
        "score": judgement.score,
        "status": "repaired" if judgement.repaired else "scored",
        "reason": told_with(judgement.reason, judgement),
        "quote": judgement.quote,
        "unusable": False,
    }
    if judgement.summary.strip():
        verdict["summary"] = judgement.summary
    return {"judgements": [verdict]}


def rescue(task: ScoreTask, error: RoleError) -> Update:
    """Keep the passage, unscored: one bad answer must not sink the batch."""
    return leave(task, Unjudged.of(error))


def leave(task: ScoreTask, unjudged: Unjudged) -> Update:
    """Append a verdict without a score, with why there is none."""
    verdict: JudgementRecord = {
        "index": task["index"],
        "id": task["id"],
        "start": task["start"],
        "end": task["end"],
        "score": None,
        "status": "skipped_budget" if unjudged.is_skipped else "failed",
        "reason": unjudged.cause,
        "quote": "",
        "unusable": unjudged.unusable,
    }
    return {"judgements": [verdict]}


def close(
    state: State,
    config: RunnableConfig,
    *,
    settings: Settings,
    needs_evidence: bool,
    has_cache: bool,
) -> Update:
    """Leave the rest unasked, each passage with why; or nothing, if there is to be another wave.

    Args:
        state: What was judged so far.
        config: Carries the meter of the run.
        settings: What is enough.
        needs_evidence: Whether a passage needs a quote that occurs in it to pass.
        has_cache: Whether a verdict may be had for nothing, after the budget is spent too.
    """
    judged = {one["index"] for one in state["judgements"]}
    found = judged_windows(state["passages"], settings.max_passage_chars)
    rest = [index for index in dict.fromkeys(one.place for one in found) if index not in judged]
    if not rest:
        return {}
    left = _enough(state, settings, needs_evidence=needs_evidence) or _unusable(state)
    if left is None and not has_cache:
        left = _spent(config)
    if left is None:
        return {}
    update: Update = {"judgements": [_unasked(state, index, left) for index in rest]}
    tell("wave", update)
    return update


class _Left(NamedTuple):
    """Why passages are left unasked."""

    status: PassageStatus
    reason: str
    unusable: bool = False


def _enough(state: State, settings: Settings, *, needs_evidence: bool) -> _Left | None:
    if settings.stop_after is None:
        return None
    lowest = sure_from(settings, state["intent"]["fields"]["intent"])
    sure = {
        one["index"]
        for one in state["judgements"]
        if passes(
            state["passages"][one["index"]].page_content,
            one,
            lowest,
            needs_evidence=needs_evidence,
        )
    }
    if len(sure) < settings.stop_after:
        return None
    return _Left(
        "not_needed", f"not asked about: {len(sure)} scored {lowest:g} or more before its turn"
    )


def _unusable(state: State) -> _Left | None:
    """Ask a backend no more that let nobody in."""
    judgements = state["judgements"]
    if not judgements or not all(one["unusable"] for one in judgements):
        return None
    return _Left("failed", judgements[0]["reason"], unusable=True)


def _spent(config: RunnableConfig) -> _Left | None:
    reached = meter_of(config).reached
    return _Left("skipped_budget", f"budget reached: {reached}") if reached else None


def _unasked(state: State, index: int, left: _Left) -> JudgementRecord:
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


_Key = tuple[str, str, str]


def ask_group(group: ScoreGroup) -> GroupTask:
    """Show the judge every text of the group once; never an id, a place or a label."""
    return {"tasks": list(_distinct(group).values())}


def record_group(group: ScoreGroup, answer: GroupJudgement) -> Update:
    """Append the verdict on every window; equal texts get the same one."""
    verdict_of = dict(zip(_distinct(group), answer.verdicts, strict=True))
    updates = []
    for member in group["members"]:
        verdict = verdict_of[_key(member["task"])]
        note = leave if isinstance(verdict, Unjudged) else record
        updates.append(note(member, verdict))  # type: ignore[arg-type]  # chosen by its type
    return _joined(updates)


def rescue_group(group: ScoreGroup, error: RoleError) -> Update:
    """Keep all windows of the group, unscored."""
    return _joined([rescue(member, error) for member in group["members"]])


def find_problem(task: GroupTask, answer: GroupJudgement) -> str:
    """Say why verdicts do not fit their passages, or nothing."""
    n_verdicts, n_passages = len(answer.verdicts), len(task["tasks"])
    if n_verdicts == n_passages:
        return ""
    return f"unusable answer: {n_verdicts} verdicts on {n_passages} passages"


def _distinct(group: ScoreGroup) -> dict[_Key, PassageTask]:
    return {_key(member["task"]): member["task"] for member in group["members"]}


def _key(task: PassageTask) -> _Key:
    return task["title"], task["section"], task["text"]


def _joined(updates: Sequence[Update]) -> Update:
    return {"judgements": [one for update in updates for one in update["judgements"]]}
