"""Score node: one window of one passage, one verdict; many of them run in parallel."""

from deepera_graph.errors import RoleError
from deepera_graph.roles import PassageTask
from deepera_graph.schema import Judgement, Unjudged, told_with
from deepera_graph.state import JudgementRecord, ScoreTask, Update


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
