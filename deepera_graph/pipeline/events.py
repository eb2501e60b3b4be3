"""What the nodes of the pipeline say while a run goes on, as a stream of events."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from langgraph.config import get_stream_writer

from deepera_graph.agents.run import Event
from deepera_graph.pipeline.state import State, Update
from deepera_graph.schema import POSSIBLE

_SCORED = ("id", "score", "status", "reason", "direction")
_SUMMARIZED = ("id", "summary", "status")
_ANSWERED = ("text", "citations", "status")


def _event(name: str, record: Mapping[str, Any], fields: Sequence[str]) -> Event:
    return {"event": name, **{one: record.get(one) for one in fields}}


def _selected(update: Update) -> Event:
    ranking = update["ranking"]
    return {
        "event": "selected",
        "threshold": update["threshold"],
        "kept": [one["id"] for one in ranking if one["kept"]],
        "possible": [one["id"] for one in ranking if one.get("band") == POSSIBLE],
        "outcome": update["outcome"],
        "warnings": update["warnings"],
    }


_EVENT_OF: dict[str, Callable[[Update], Event]] = {
    "intent": lambda update: {
        "event": "intent",
        "intent": update["intent"]["fields"],
        "status": update["intent"]["status"],
    },
    "select": _selected,
    "answer": lambda update: _event("answered", update["answer"], _ANSWERED),
}


def events_of(node: str, update: Update) -> list[Event]:
    """Return what a node has to say: on the stage, on each judgement, on each summary."""
    judged = [one for one in update.get("judgements", ()) if one["status"] != "candidate"]
    return [
        *([_EVENT_OF[node](update)] if node in _EVENT_OF else []),
        *(_event("scored", one, _SCORED) for one in judged),
        *(_event("summarized", one, _SUMMARIZED) for one in update.get("summaries", ())),
    ]


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
