"""What the graph says while it runs, as plain data.

| event | keys |
|---|---|
| ``intent`` | ``intent`` (four fields), ``status`` |
| ``surveyed`` | ``status``, ``cause``; if the backend has a surveyor |
| ``scored`` | ``id``, ``score`` in [0, 1] or None, ``status`` (``not_needed``, too), ``reason`` |
| ``selected`` | ``threshold``, ``kept`` (ids), ``outcome`` |
| ``summarized`` | ``id``, ``summary``, ``status`` |
| ``answered`` | ``text``, ``citations`` (ids), ``status`` |
| ``result`` | ``result``, a `RerankResult`; only from the front door, last |
"""

from collections.abc import Callable
from typing import Any

from deepera_graph.state import JudgementRecord, SummaryRecord, Update

Event = dict[str, Any]


def _intent(update: Update) -> Event:
    record = update["intent"]
    return {"event": "intent", "intent": record["fields"], "status": record["status"]}


def _surveyed(update: Update) -> Event:
    return {"event": "surveyed", **update["survey"]}


def _scored(record: JudgementRecord) -> Event:
    return {
        "event": "scored",
        "id": record["id"],
        "score": record["score"],
        "status": record["status"],
        "reason": record["reason"],
    }


def _selected(update: Update) -> Event:
    kept = [record["id"] for record in update["ranking"] if record["kept"]]
    return {
        "event": "selected",
        "threshold": update["threshold"],
        "kept": kept,
        "outcome": update["outcome"],
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
    "survey": _surveyed,
    "select": _selected,
    "answer": _answered,
}


def events_of(node: str, update: Update) -> list[Event]:
    """Return what a node has to say: on the stage, on each judgement, on each summary."""
    told = [_EVENT_OF[node](update)] if node in _EVENT_OF else []
    told += map(_scored, update.get("judgements", ()))
    return [*told, *map(_summarized, update.get("summaries", ()))]
