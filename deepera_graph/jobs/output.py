"""The output line of one question: bytes that depend on the judgements alone."""

import json
from typing import Any

from deepera_graph.jobs.lines import QuestionLine
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.usage import Usage


def output_line(line: QuestionLine, result: RerankResult) -> bytes:
    """Return one line of JSON in UTF-8, with its line feed; equal judgements give equal bytes.

    `survey` is there if the backend has a surveyor, `left_out` if passages that failed are not
    ranked, and `metadata` if the input line had fields of its own; of a passage, `quote_status` and
    `quote_span` if there is a quote, `summary_status` if it is another than ``ok``, and `windowed`
    if it was read in pieces. A lone surrogate, which UTF-8 has no bytes for, is written as its JSON
    escape.
    """
    fields: dict[str, Any] = {
        "id": line.id,
        "question": line.question,
        "intent": {
            **result.intent["fields"],
            "status": result.intent["status"],
            "cause": result.intent["cause"],
        },
        "outcome": result.outcome,
        "threshold": result.threshold,
        "ranking": [_ranked(passage) for passage in result.passages],
        "usage": _cost(result.total_usage),
    }
    if result.survey is not None:
        fields["survey"] = dict(result.survey)
    if result.left_out:
        fields["left_out"] = [_ranked(passage) for passage in result.left_out]
    if line.metadata:
        fields["metadata"] = line.metadata
    text = json.dumps(fields, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _cost(usage: Usage) -> dict[str, int]:
    """What the judgements took; what went wrong on the way, or came from a cache, is reported."""
    return {
        "calls": usage.calls,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
    }


def _ranked(passage: RankedPassage) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": passage.id,
        "rank": passage.rank,
        "score": passage.score,
        "kept": passage.kept,
        "status": passage.status,
        "reason": passage.reason,
        "quote": passage.quote,
        "summary": passage.summary,
    }
    if passage.quote:
        fields["quote_status"], fields["quote_span"] = passage.quote_status, passage.quote_span
    if passage.summary_status not in {"", "ok"}:
        fields["summary_status"] = passage.summary_status
    if passage.windowed:
        fields["windowed"] = True
    return fields
