"""What the graph says while it runs, one event a node, as plain data.

| event | keys |
|---|---|
| ``intent`` | ``intent`` (four fields), ``status`` |
| ``scored`` | ``id``, ``score`` in [0, 1] or None, ``status``, ``reason`` |
| ``selected`` | ``threshold``, ``kept`` (ids), ``outcome`` |
| ``summarized`` | ``id``, ``summary``, ``status`` |
| ``answered`` | ``text``, ``citations`` (ids), ``status`` |
| ``result`` | ``result``, a `RerankResult`; only from the front door, last |
"""

from collections.abc import Callable
from typing import Any

from deepera_graph.state import Update

Event = dict[str, Any]


def _intent(update: Update) -> Event:
    record = update["intent"]
    return {"event": "intent", "intent": record["fields"], "status": record["status"]}


def _scored(update: Update) -> Event:
    record = update["judgements"][0]
    return {"event": "scored", **{key: record[key] for key in ("id", "score", "status", "reason")}}


def _selected(update: Update) -> Event:
    kept = [record["id"] for record in update["ranking"] if record["kept"]]
    return {
        "event": "selected",
        "threshold": update["threshold"],
        "kept": kept,
        "outcome": update["outcome"],
    }


def _summarized(update: Update) -> Event:
    record = update["summaries"][0]
    return {"event": "summarized", **{key: record[key] for key in ("id", "summary", "status")}}


def _answered(update: Update) -> Event:
    record = update["answer"]
    return {"event": "answered", **{key: record[key] for key in ("text", "citations", "status")}}


EVENT_OF: dict[str, Callable[[Update], Event]] = {
    "intent": _intent,
    "score": _scored,
    "select": _selected,
    "summarize": _summarized,
    "answer": _answered,
}
