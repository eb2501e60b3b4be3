"""Collect node: join the summaries, and hand out the kept passages as documents."""

from deepera_graph.documents import kept_document
from deepera_graph.nodes.select import outcome
from deepera_graph.settings import Settings
from deepera_graph.state import RankRecord, State, SummaryRecord, Update


def collect(state: State, *, settings: Settings) -> Update:
    """Put each summary beside its passage; one whose summarizer found no answer is dropped.

    What `on_empty` put back stays: it was under the threshold, and asked for all the same.
    """
    summaries = {summary["index"]: summary for summary in state["summaries"]}
    may_drop = state["fallback"] is None
    ranking = [
        _with_summary(record, summaries.get(record["index"]), may_drop=may_drop)
        for record in state["ranking"]
    ]
    kept = [record for record in ranking if record["kept"]]
    return {
        "ranking": ranking,
        "documents": [
            kept_document(state["passages"][record["index"]], record, state["intent"])
            for record in kept
        ],
        "outcome": outcome(
            [*ranking, *state.get("left_out", ())],
            settings,
            over_filtered=state["fallback"] is not None or not kept,
            survey=state.get("survey"),
        ),
    }


def _with_summary(
    record: RankRecord, summary: SummaryRecord | None, *, may_drop: bool
) -> RankRecord:
    if summary is None:
        return record
    changed: RankRecord = {
        **record,
        "summary": summary["summary"],
        "summary_status": summary["status"],
    }
    if summary["cause"]:
        changed["reason"] = "; ".join(filter(None, (record["reason"], summary["cause"])))
    if summary["status"] == "none" and may_drop:
        changed["kept"] = False
    return changed
