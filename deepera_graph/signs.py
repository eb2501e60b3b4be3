"""What one question adds to the signs of failure: plain data, so that it can be kept in a file."""

from collections import Counter
from typing import NotRequired, TypedDict

from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.text.terms import missing_terms


class SummarySigns(TypedDict):
    """What the summaries of one question show.

    Attributes:
        statuses: How many have each status.
        terms: ``numbers`` and ``names`` in those handed out.
        retained: Those of `terms` that the passage has too.
    """

    statuses: dict[str, int]
    terms: dict[str, int]
    retained: dict[str, int]


class Signs(TypedDict):
    """What one question shows.

    Attributes:
        n_passages: How many were ranked.
        subject: What it belongs to, if that is known.
        intent: Status of its intent.
        survey: Status of its survey, if the backend has a surveyor.
        scores: Of the passages judged, in rank order, each in [0, 1].
        threshold: The lowest score kept, as applied.
        n_kept: Passages that passed the filter, without those that `on_empty` filled in.
        summaries: What its summaries show.
    """

    n_passages: int
    subject: str | None
    intent: str
    survey: NotRequired[str]
    scores: list[float]
    threshold: float
    n_kept: int
    summaries: SummarySigns


def signs_of(result: RerankResult, subject: str | None) -> Signs:
    """Return what a question shows, and the subject it belongs to if that is known."""
    signs: Signs = {
        "n_passages": len(result.all_passages),
        "subject": subject,
        "intent": result.intent["status"],
        "scores": [one.score for one in result.passages if one.score is not None],
        "threshold": result.threshold,
        "n_kept": 0 if result.fallback else len(result.kept),
        "summaries": _summaries(result),
    }
    if result.survey is not None:
        signs["survey"] = result.survey["status"]
    return signs


def _summaries(result: RerankResult) -> SummarySigns:
    statuses, terms, retained = Counter[str](), Counter[str](), Counter[str]()
    for passage in result.passages:
        if not passage.summary_status:
            continue
        statuses[passage.summary_status] += 1
        if passage.summary_status not in {"failed", "skipped_budget"}:
            _count_terms(passage, terms, retained)
    return {"statuses": dict(statuses), "terms": dict(terms), "retained": dict(retained)}


def _count_terms(passage: RankedPassage, terms: Counter[str], retained: Counter[str]) -> None:
    title = str(passage.metadata.get("title") or "")
    missing = set(missing_terms(passage.summary, f"{passage.text} {title}"))
    for term in missing_terms(passage.summary, ""):
        kind = "numbers" if any(letter.isdigit() for letter in term) else "names"
        terms[kind] += 1
        retained[kind] += term not in missing
