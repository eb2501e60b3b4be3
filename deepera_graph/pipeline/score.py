"""Score node: one batch of windows, one verdict a window; batches are judged in parallel."""

from operator import itemgetter
from typing import Any, Literal

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.errors import RoleError
from deepera_graph.judges.base import Judge, read_verdicts
from deepera_graph.pipeline.state import JudgementRecord, QuoteStatus, ScoreTask, Span, Update
from deepera_graph.schema import (
    Backend,
    Batch,
    Candidate,
    Judgement,
    Unjudged,
    Verdicts,
    fail_all,
    with_repair_note,
)
from deepera_graph.settings import Settings
from deepera_graph.text.quotes import find_quote


class BatchRole(Runnable[Batch, Verdicts]):
    """A judge as a role: what it gives is checked, window by window."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def invoke(self, input: Batch, config: RunnableConfig | None = None, **kwargs: Any) -> Verdicts:
        """Judge a batch."""
        return Verdicts.of(read_verdicts(input, self._judge.judge(input, config)))

    async def ainvoke(
        self, input: Batch, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Verdicts:
        """Judge a batch in the running loop."""
        return Verdicts.of(read_verdicts(input, await self._judge.ajudge(input, config)))


def record(task: ScoreTask, answer: Verdicts) -> Update:
    """Append the verdicts, in the order of the passages; equal windows get the same one."""
    pairs = zip(task["members"], answer.verdicts, strict=True)
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
    return record(task, Verdicts(verdicts=fail_all(task["batch"], error)))


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
