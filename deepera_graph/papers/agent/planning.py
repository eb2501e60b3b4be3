"""Planning a round: what a planner is shown, and which of its calls are made."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deepera_graph.errors import BudgetError, CallError, RoleError
from deepera_graph.papers.agent.settings import PaperSearchSettings
from deepera_graph.papers.agent.state import (
    Action,
    ActionRecord,
    ActionSeen,
    JudgedPaper,
    PaperSearchState,
    PaperSeen,
    PlanTask,
    PooledPaper,
    SearchPlan,
    Tool,
)
from deepera_graph.papers.results import SearchMode

Update = dict[str, Any]
LETTERS = {"search": "S", "references": "R", "citations": "C"}
_SHOWN, _NEWEST = 100, 10  # papers of the pool that a planner is shown: the best, and the newest
_MOST_NAMES = 20
_NEAR = 0.5  # a score from which on SPAR follows a paper
_OF_ACTIONS = tuple(ActionSeen.__annotations__)
_OF_PAPERS = ("title", "abstract", "year", "venue")
JUDGED = tuple(JudgedPaper.__annotations__)
_SHOWN_CHARS = 400  # of a query in a problem


def ask_plan(
    state: PaperSearchState,
    *,
    settings: PaperSearchSettings,
    modes: Sequence[SearchMode],
    judged_first: bool,
) -> PlanTask:
    """Ask what to do next."""
    left = settings.max_actions - len(state["actions"])
    ranked, seen = order(state["pool"]), look(state["pool"], state["actions"])
    newest = sorted(ranked, key=lambda id: -seen[id]["step"])[:_NEWEST]
    return {
        "question": state["question"],
        "limits": state["limits"],
        "step": state["step"] + 1,
        "actions_left": min(left, settings.max_parallel),
        "calls_left": left,
        "judged_first": judged_first,
        "refused": state["refused"],
        "names": state["names"],
        "modes": list(modes),
        "history": [
            {name: one[name] for name in _OF_ACTIONS}  # type: ignore[literal-required, misc]
            for one in state["actions"]
        ],
        "pool": [seen[id] for id in dict.fromkeys([*ranked[:_SHOWN], *newest])],
    }


def record_plan(
    state: PaperSearchState, plan: SearchPlan, *, settings: PaperSearchSettings
) -> Update:
    """Open the actions that can be carried out, and note those that cannot."""
    step = state["step"] + 1
    left = min(settings.max_actions - len(state["actions"]), settings.max_parallel)
    actions, refused = _open_actions(state, plan.actions)
    refused = [*plan.refused, *refused]
    if len(actions) > left:
        refused.append(f"{len(actions) - left} of {len(actions)} calls are not made")
        actions = actions[:left]
    names = dict.fromkeys([*state["names"], *plan.names])
    update: Update = {
        "step": step,
        "thought": plan.thought,
        "actions": [{**one, "step": step} for one in actions],
        "problems": [f"round {step}: {one}" for one in refused],
        "refused": refused,
        "names": [*names][:_MOST_NAMES],
        "stopped": "",
    }
    if actions:
        return update
    if plan.is_complete or not (plan.actions or plan.refused):
        return {**update, "stopped": "complete"}
    idle = state["idle"] + 1
    stopped = "no_gain" if idle >= settings.patience else bound(step, state["actions"], settings)
    return {**update, "idle": idle, "stopped": stopped}


def plan_failed(
    state: PaperSearchState, error: RoleError, *, settings: PaperSearchSettings
) -> Update:
    """Ask once more in the next round; give up after `patience` failures, or if it is hopeless."""
    step, idle = state["step"] + 1, state["idle"] + 1
    stopped = "budget" if isinstance(error, BudgetError) else ""
    is_hopeless = isinstance(error, CallError) and error.unusable
    if not stopped and (is_hopeless or idle >= settings.patience):
        stopped = "plan_failed"
    problem = f"round {step} could not be planned: {error}"
    return {
        "step": step,
        "idle": idle,
        "problems": [problem],
        "stopped": stopped or bound(step, state["actions"], settings),
    }


def _open_actions(
    state: PaperSearchState, planned: Iterable[Action]
) -> tuple[list[ActionRecord], list[str]]:
    """Return the calls that can be made, and of the others what they were and why not."""
    made = {
        _key(one["tool"], one["text"], one["mode"], one["offset"]): one["id"]
        for one in state["actions"]
    }
    opened: list[ActionRecord] = []
    refused: list[str] = []
    for one in planned:
        key = _key(one.tool, one.text, one.mode, one.offset)
        what = f"{one.tool} {one.text[:_SHOWN_CHARS]!r}"
        if not one.text.strip():
            refused.append(f"{one.tool} of nothing is not made")
        elif key in made:
            refused.append(f"{what} was made before, as {made[key]}, and is not repeated")
        elif one.tool != "search" and one.text not in state["pool"]:
            refused.append(f"{what} is not made: no such paper was found")
        else:
            number = len(state["actions"]) + len(opened) + 1
            made[key] = f"{LETTERS[one.tool]}{number}"
            opened.append(_open(one, made[key]))
    return opened, refused


def _key(tool: str, text: str, mode: str | None, offset: int) -> tuple[str, str, str, int]:
    same = " ".join(text.casefold().split()) if tool == "search" else text
    return tool, same, mode or "", offset


def _open(one: Action, id: str) -> ActionRecord:
    return {
        "id": id,
        "step": 0,
        **one.model_dump(),  # type: ignore[typeddict-item]
        "status": "planned",
        "cause": "",
        "found": 0,
        "more": False,
        "new": 0,
        "kept": 0,
        "left": 0,
        "ids": [],
    }


def bound(step: int, actions: Sequence[ActionRecord], settings: PaperSearchSettings) -> str:
    """Return the limit that keeps another round from starting; empty if none does."""
    if len(actions) >= settings.max_actions:
        return "max_actions"
    return "max_steps" if step >= settings.max_steps else ""


def order(pool: Mapping[str, PooledPaper]) -> list[str]:
    """Return ids, best first; what was too far to be judged comes last but for what is out."""
    # By scores where there are any; a paper without one keeps the place that its searches gave it.
    # Equal ones are in the order of the fused ranks, then by id.
    ids = sorted(
        pool, key=lambda id: (not is_in(pool[id]), is_screened(pool[id]), -_weigh(pool[id]), id)
    )
    scored = [id for id in ids if pool[id]["score"] is not None and is_in(pool[id])]
    by_score = iter(sorted(scored, key=lambda id: -(pool[id]["score"] or 0.0)))
    moved = set(scored)
    return [next(by_score) if id in moved else id for id in ids]


def _weigh(one: PooledPaper) -> float:
    return one["fused"] * (1 - one["doubt"])


def is_in(one: PooledPaper) -> bool:
    """Whether a paper breaks no limit, as far as is known."""
    return one["verdict"] != "out"


def is_screened(one: PooledPaper) -> bool:
    """Whether a paper was too far from the topic to be judged."""
    return one["fits"] is False and one["score"] is None and is_in(one)


def look(pool: Mapping[str, PooledPaper], actions: Sequence[ActionRecord]) -> dict[str, PaperSeen]:
    """Return papers as planners and selectors see them, by id."""
    steps = {one["id"]: one["step"] for one in actions}
    followed: dict[str, list[Tool]] = {}
    for one in actions:
        if one["tool"] != "search":
            followed.setdefault(one["text"], []).append(one["tool"])
    return {
        id: {
            "id": id,
            **{name: one["paper"][name] for name in _OF_PAPERS},  # type: ignore[typeddict-item]
            **{name: one[name] for name in JUDGED},
            "calls": [each["call"] for each in one["found_by"]],
            "step": steps[one["found_by"][0]["call"]],
            "followed": [*dict.fromkeys(followed.get(id, ()))],
        }
        for id, one in pool.items()
    }


def is_kept(one: PaperSeen, task: PlanTask) -> bool:
    """Whether a paper may be followed: it fits, or nobody judges papers before they are."""
    # Where they are judged one without a judgement, as no more may be paid for, is not followed.
    if task["judged_first"] and one["verdict"] == "unjudged":
        return False
    return one["verdict"] != "out" and one["fits"] is not False


def find_seeds(task: PlanTask) -> list[PaperSeen]:
    """Return the papers that SPAR follows, best first: one that scores just .5 is among them."""
    return [
        one
        for one in task["pool"]
        if is_kept(one, task) or (one["verdict"] == "in" and (one["score"] or 0.0) >= _NEAR)
    ]
