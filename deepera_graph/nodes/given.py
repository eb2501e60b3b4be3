"""Summaries that a judge gave along with its scores."""

from collections.abc import Sequence

from deepera_graph.nodes import summarize
from deepera_graph.schema import Summary
from deepera_graph.shown import shown_text
from deepera_graph.state import RankRecord, State, SummaryRecord, SummaryTask


def given_summaries(state: State, ranking: Sequence[RankRecord]) -> list[SummaryRecord]:
    """Return the summaries there are of kept passages, checked like those of a summarizer.

    A kept passage whose judge gave none is left to the summarizer.
    """
    found = {
        (one["index"], one["start"], one["end"]): one["summary"]
        for one in state["judgements"]
        if one.get("summary")
    }
    if not found:
        return []
    records: list[SummaryRecord] = []
    for one in ranking:
        start, end = one["window"] or (0, len(state["passages"][one["index"]].page_content))
        summary = found.get((one["index"], start, end))
        if one["kept"] and summary:
            task = _task(state, one, start, end)
            records += summarize.record(task, Summary(text=summary))["summaries"]
    return records


def _task(state: State, record: RankRecord, start: int, end: int) -> SummaryTask:
    shown = shown_text(state["passages"][record["index"]], start, end)
    return {
        "index": record["index"],
        "id": record["id"],
        "quote": record["quote"],
        "task": {
            "question": state["question"],
            "intent": state["intent"]["fields"],
            "text": shown["text"],
            "title": shown["title"],
            "section": shown["section"],
        },
    }
