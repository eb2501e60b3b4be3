"""Wave node: between two waves, whether the rest is still to be asked about."""

from typing import NamedTuple

from langchain_core.runnables import RunnableConfig

from deepera_graph.budget import meter_of
from deepera_graph.nodes.call import tell
from deepera_graph.nodes.place import passes
from deepera_graph.settings import Settings
from deepera_graph.shown import judged_windows
from deepera_graph.state import JudgementRecord, PassageStatus, State, Update
from deepera_graph.waves import sure_from


def close(
    state: State,
    config: RunnableConfig,
    *,
    settings: Settings,
    needs_evidence: bool,
    has_cache: bool,
) -> Update:
    """Leave the rest unasked, each passage with why; or nothing, if there is to be another wave.

    Args:
        state: What was judged so far.
        config: Carries the meter of the run.
        settings: What is enough.
        needs_evidence: Whether a passage needs a quote that occurs in it to pass.
        has_cache: Whether a verdict may be had for nothing, after the budget is spent too.
    """
    judged = {one["index"] for one in state["judgements"]}
    found = judged_windows(state["passages"], settings.max_passage_chars)
    rest = [index for index in dict.fromkeys(one.place for one in found) if index not in judged]
    if not rest:
        return {}
    left = _enough(state, settings, needs_evidence=needs_evidence) or _unusable(state)
    if left is None and not has_cache:
        left = _spent(config)
    if left is None:
        return {}
    update: Update = {"judgements": [_unasked(state, index, left) for index in rest]}
    tell("wave", update)
    return update


class _Left(NamedTuple):
    """Why passages are left unasked."""

    status: PassageStatus
    reason: str
    unusable: bool = False


def _enough(state: State, settings: Settings, *, needs_evidence: bool) -> _Left | None:
    if settings.enough is None:
        return None
    lowest = sure_from(settings, state["intent"]["fields"]["intent"])
    sure = {
        one["index"]
        for one in state["judgements"]
        if passes(
            state["passages"][one["index"]].page_content,
            one,
            lowest,
            needs_evidence=needs_evidence,
        )
    }
    if len(sure) < settings.enough:
        return None
    return _Left(
        "not_needed", f"not asked about: {len(sure)} scored {lowest:g} or more before its turn"
    )


def _unusable(state: State) -> _Left | None:
    """Ask a backend no more that let nobody in."""
    judgements = state["judgements"]
    if not judgements or not all(one["unusable"] for one in judgements):
        return None
    return _Left("failed", judgements[0]["reason"], unusable=True)


def _spent(config: RunnableConfig) -> _Left | None:
    reached = meter_of(config).reached
    return _Left("skipped_budget", f"budget reached: {reached}") if reached else None


def _unasked(state: State, index: int, left: _Left) -> JudgementRecord:
    passage = state["passages"][index]
    return {
        "index": index,
        "id": passage.id or str(index + 1),
        "start": 0,
        "end": len(passage.page_content),
        "score": None,
        "status": left.status,
        "reason": left.reason,
        "quote": "",
        "unusable": left.unusable,
    }
