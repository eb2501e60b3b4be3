"""What the nodes of the pipeline say while a run goes on, as a stream of events."""

from collections.abc import Callable
from typing import Protocol

from langgraph.config import get_stream_writer

from deepera_graph.agents.run import Event
from deepera_graph.pipeline.state import JudgementRecord, State, SummaryRecord, Update
from deepera_graph.schema import POSSIBLE


def _intent(update: Update) -> Event:
    record = update["intent"]
    return {"event": "intent", "intent": record["fields"], "status": record["status"]}


def _scored(record: JudgementRecord) -> Event:
    return {
        "event": "scored",
        "id": record["id"],
        "score": record["score"],
        "status": record["status"],
        "reason": record["reason"],
        "direction": record.get("direction"),
    }


def _selected(update: Update) -> Event:
    kept = [record["id"] for record in update["ranking"] if record["kept"]]
    possible = [record["id"] for record in update["ranking"] if record.get("band") == POSSIBLE]
    return {
        "event": "selected",
        "threshold": update["threshold"],
        "kept": kept,
        "possible": possible,
        "outcome": update["outcome"],
        "warnings": update["warnings"],
    }


def _summarized(record: SummaryRecord) -> Event:
    return {
        "event": "summarized",
        "id": record["id"],
        "summary": record["summary"],
        "status": record["status"],
    }


def _answered(update: Update) -> Event:
    record = update["answer"]
    return {"event": "answered", **{key: record[key] for key in ("text", "citations", "status")}}


_EVENT_OF: dict[str, Callable[[Update], Event]] = {
    "intent": _intent,
    "select": _selected,
    "answer": _answered,
}


def events_of(node: str, update: Update) -> list[Event]:
    """Return what a node has to say: on the stage, on each judgement, on each summary."""
    events = [_EVENT_OF[node](update)] if node in _EVENT_OF else []
    judgements = update.get("judgements", ())
    events += [_scored(one) for one in judgements if one["status"] != "candidate"]
    return [*events, *map(_summarized, update.get("summaries", ()))]


def tell(name: str, update: Update) -> None:
    """Write what a node has to say to the stream of events."""
    write = get_stream_writer()
    for event in events_of(name, update):
        write(event)


class PlainNode(Protocol):
    """A node that calls no role."""

    def __call__(self, state: State) -> Update:
        """Run the node."""
        ...


def announced(name: str, node: PlainNode) -> PlainNode:
    """Wrap a node that calls no role, so that it says what it did."""

    def run(state: State) -> Update:
        update = node(state)
        tell(name, update)
        return update

    return run
