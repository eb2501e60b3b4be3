"""A summary of each kept passage, which says nothing that the passage does not."""

from collections.abc import Sequence

from langgraph.graph import END
from langgraph.types import Send

from deepera_graph.errors import BudgetError, RoleError
from deepera_graph.passages import shown_text
from deepera_graph.pipeline.state import (
    RankRecord,
    State,
    SummaryRecord,
    SummaryStatus,
    SummaryTask,
    Update,
)
from deepera_graph.schema import Summary, passage_task, with_repair_note
from deepera_graph.settings import Settings
from deepera_graph.text.drift import turned_changes, turned_findings
from deepera_graph.text.terms import missing_terms
from deepera_graph.text.words import split_sentences


def record(task: SummaryTask, summary: Summary) -> Update:
    """Keep the summary; one that is not the passage's is replaced by words of the passage.

    It may have no number or name of its own, and turn nothing around: "rose" for "fell", "is
    effective" for "is not effective".

    An empty summary says that nothing in the passage answers the question.
    """
    text, passage = summary.text.strip(), task["task"]["text"]
    status: SummaryStatus = "repaired" if summary.repaired else "ok"
    cause = ""
    if not text:
        status, cause = "none", "the summarizer found no answer in the passage"
    elif cause := _find_drift(text, f"{passage} {task['task']['title']}"):
        status = "drifted"
        text = task["quote"] if task["quote"] and task["quote"] in passage else passage
    cause = with_repair_note(cause, summary)
    made = SummaryRecord(
        index=task["index"], id=task["id"], summary=text, status=status, cause=cause
    )
    return {"summaries": [made]}


def on_failure(task: SummaryTask, error: RoleError) -> Update:
    """Return the passage's own text instead."""
    made = SummaryRecord(
        index=task["index"],
        id=task["id"],
        summary=task["task"]["text"],
        status="skipped_budget" if isinstance(error, BudgetError) else "failed",
        cause=str(error),
    )
    return {"summaries": [made]}


def _find_drift(summary: str, passage: str) -> str:
    """Say what a summary has that is not in its passage; nothing for whole sentences of it."""
    told, known = ({one.text for one in split_sentences(text)} for text in (summary, passage))
    if told <= known:
        return ""
    missing = missing_terms(summary, passage)
    if missing:
        return f"not in the passage: {', '.join(missing)}"
    turned = [*turned_changes(summary, passage), *turned_findings(summary, passage)]
    return f"turned around: {'; '.join(turned)}" if turned else ""


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
            records += record(summary_task(state, one), Summary(text=summary))["summaries"]
    return records


def summary_task(state: State, record: RankRecord) -> SummaryTask:
    """Return what the summarizer is asked about a kept passage: the window that counted."""
    passage = state["passages"][record["index"]]
    start, end = record["window"] or (0, len(passage.page_content))
    window = shown_text(passage, start, end)
    task = passage_task(state["question"], state["intent"]["fields"], window)
    if record["quote_span"]:
        task["quote"] = passage.page_content[slice(*record["quote_span"])]
    return {"index": record["index"], "id": record["id"], "quote": record["quote"], "task": task}


def any_kept(state: State, *, settings: Settings) -> Sequence[Send] | str:
    """The filter edge: summarize what was kept, where the judge has not done it already."""
    kept = [record for record in state["ranking"] if record["kept"]]
    if not kept:
        return "abstain" if settings.answer else END
    if settings.content == "passage":
        return "collect"
    done = {summary["index"] for summary in state.get("summaries", ())}
    rest = [record for record in kept if record["index"] not in done]
    return [Send("summarize", summary_task(state, record)) for record in rest] or "collect"
