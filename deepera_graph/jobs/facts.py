"""What a report counts of one line: plain data, so that a later run can count it again."""

from collections import Counter
from typing import TypedDict

from deepera_graph.result import RerankResult
from deepera_graph.signs import Signs, signs_of
from deepera_graph.usage import UsageRecord


class Facts(TypedDict):
    """What is counted of a question whose line was written.

    Attributes:
        outcome: As in `RerankResult`.
        passages: How many came in.
        kept: How many of them were kept.
        statuses: How many have each status.
        causes: Why passages could not be judged, and how many for each reason.
        usage: Calls and tokens a stage.
        seconds: Wall time a stage.
        signs: What the question shows of failure.
    """

    outcome: str
    passages: int
    kept: int
    statuses: dict[str, int]
    causes: dict[str, int]
    usage: dict[str, UsageRecord]
    seconds: dict[str, float]
    signs: Signs


def facts_of(result: RerankResult, subject: str | None) -> Facts:
    """Return what is counted of a question, and the subject it belongs to if that is known."""
    return {
        "outcome": result.outcome,
        "passages": len(result.all_passages),
        "kept": len(result.kept),
        "statuses": dict(Counter(passage.status for passage in result.all_passages)),
        "causes": dict(Counter(passage.reason for passage in result.failed)),
        "usage": {stage: used.record() for stage, used in result.usage.items()},
        "seconds": dict(result.seconds),
        "signs": signs_of(result, subject),
    }
