"""Where the graph goes next."""

from collections.abc import Sequence

from langchain_core.documents import Document
from langgraph.graph import END
from langgraph.types import Send

from deepera_graph.passages import windows
from deepera_graph.roles import IntentFields, PassageTask
from deepera_graph.settings import Settings
from deepera_graph.state import ScoreTask, State, SummaryTask


def any_passages(state: State) -> str:
    """Nothing to judge needs no call at all."""
    return "intent" if state["passages"] else "select"


def one_per_window(state: State, *, settings: Settings) -> Sequence[Send] | str:
    """One score task for every passage, several for a very long one."""
    fields = state["intent"]["fields"]
    sends = [
        Send("score", _score_task(state["question"], fields, passage, index, window))
        for index, passage in enumerate(state["passages"])
        for window in windows(passage.page_content, settings.max_passage_chars)
        if passage.page_content[slice(*window)].strip()
    ]
    return sends or "select"


def any_kept(state: State, *, settings: Settings) -> Sequence[Send] | str:
    """The filter edge: summarize what was kept; with nothing kept, answer or end."""
    kept = [record for record in state["ranking"] if record["kept"]]
    if not kept:
        return last_step(state, settings=settings)
    if settings.content == "passage":
        return "collect"
    sends = []
    for record in kept:
        passage = state["passages"][record["index"]]
        start, end = record["window"] or (0, len(passage.page_content))
        summary_task: SummaryTask = {
            "index": record["index"],
            "id": record["id"],
            "quote": record["quote"],
            "task": _passage_task(
                state["question"], state["intent"]["fields"], passage, start, end
            ),
        }
        sends.append(Send("summarize", summary_task))
    return sends


def last_step(state: State, *, settings: Settings) -> str:
    """Answer if that was asked for."""
    if not settings.answer:
        return END
    return "answer" if any(record["kept"] for record in state["ranking"]) else "abstain"


def _score_task(
    question: str,
    fields: IntentFields,
    passage: Document,
    index: int,
    window: tuple[int, int],
) -> ScoreTask:
    start, end = window
    return {
        "index": index,
        "id": passage.id or str(index + 1),
        "start": start,
        "end": end,
        "task": _passage_task(question, fields, passage, start, end),
    }


def _passage_task(
    question: str, fields: IntentFields, passage: Document, start: int, end: int
) -> PassageTask:
    return {
        "question": question,
        "intent": fields,
        "text": passage.page_content[start:end],
        "title": str(passage.metadata.get("title") or ""),
        "section": str(passage.metadata.get("section") or ""),
    }
