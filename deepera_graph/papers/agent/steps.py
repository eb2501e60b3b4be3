"""The nodes of a search for papers: pure functions of the state."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.types import Send

from deepera_graph.errors import BudgetError, CallError, RoleError
from deepera_graph.papers.agent.constraints import Limits
from deepera_graph.papers.agent.limits.reading import read_limits
from deepera_graph.papers.agent.selector import breaks_by_facts
from deepera_graph.papers.agent.state import (
    Action,
    ActionRecord,
    CallTask,
    LimitsRead,
    LimitsTask,
    PaperSearchSettings,
    PaperSearchState,
    PaperSeen,
    PlanTask,
    PooledPaper,
    SearchPlan,
    Selected,
    SelectTask,
)
from deepera_graph.papers.results import SearchMode
from deepera_graph.papers.scope import Scope
from deepera_graph.retrieval.fusion import CORMACK_K, sum_reciprocals
from deepera_graph.usage import Usage

Update = dict[str, Any]
_LETTER = {"search": "S", "references": "R", "citations": "C"}
_SHOWN = 100  # papers of the pool that a planner is shown
_EXPLAINED = 30  # papers that get a reason where nothing is excluded and no model judges
_FOLLOWED = 20  # papers that planners take titles and citations of at most
_SHOWN_CHARS = 400  # of a query in a problem


def ask_limits(state: PaperSearchState, *, venues: Sequence[str]) -> LimitsTask:
    """Ask for the limits of the question."""
    as_of = str(state["scope"].get("as_of", ""))
    return {"question": state["question"], "as_of": as_of, "venues": list(venues)}


def record_limits(state: PaperSearchState, read: LimitsRead, *, venues: Sequence[str]) -> Update:
    """Begin the search: its limits are known, nothing else is."""
    limits = Limits.from_dict(read.limits)
    return _begin(state, limits, venues, [])


def limits_failed(state: PaperSearchState, error: RoleError, *, venues: Sequence[str]) -> Update:
    """Begin with the limits that rules read."""
    limits = limits_by_rules(ask_limits(state, venues=venues))
    problem = f"the limits were read by rules, as the model failed: {error}"
    return _begin(state, Limits.from_dict(limits.limits), venues, [problem])


def limits_by_rules(task: LimitsTask) -> LimitsRead:
    """Read the limits without a model."""
    found = read_limits(task["question"], as_of=task["as_of"], venues=task["venues"])
    return LimitsRead(limits=found.to_dict(), usage=Usage())


def _begin(
    state: PaperSearchState, limits: Limits, venues: Sequence[str], problems: list[str]
) -> Update:
    scope, notes = limits.narrow(Scope.from_dict(state["scope"]), venues)
    return {
        "limits": limits.to_dict(),
        "searched": scope.to_dict(),
        "problems": [*problems, *limits.notes, *notes],
    }


def receive(state: PaperSearchState) -> Update:
    """Clear what an earlier question of the same thread left."""
    return {
        "limits": {},
        "pool": None,
        "ranking": [],
        "actions": None,
        "stopped": "",
        "problems": None,
        "usage": None,
        "searched": {},
        "step": 0,
        "idle": 0,
        "thought": "",
        "fresh": [],
        "results": None,
    }


def ask_plan(
    state: PaperSearchState, *, settings: PaperSearchSettings, modes: Sequence[SearchMode]
) -> PlanTask:
    """Ask what to do next."""
    left = settings.max_actions - len(state["actions"])
    best = order(state["pool"])[:_SHOWN]
    return {
        "question": state["question"],
        "limits": state["limits"],
        "step": state["step"] + 1,
        "actions_left": min(left, settings.max_parallel),
        "modes": list(modes),
        "history": [
            {
                "id": one["id"],
                "tool": one["tool"],
                "text": one["text"],
                "status": one["status"],
                "found": one["found"],
                "new": one["new"],
                "kept": one["kept"],
            }
            for one in state["actions"]
        ],
        "pool": [_seen(id, state["pool"][id]) for id in best],
    }


def record_plan(
    state: PaperSearchState, plan: SearchPlan, *, settings: PaperSearchSettings
) -> Update:
    """Open the actions that can be carried out, and note those that cannot."""
    step = state["step"] + 1
    left = min(settings.max_actions - len(state["actions"]), settings.max_parallel)
    actions, problems = _open_actions(state, plan.actions, step)
    if len(actions) > left:
        problems.append(f"round {step}: {len(actions) - left} of {len(actions)} calls are not made")
        actions = actions[:left]
    update: Update = {
        "step": step,
        "thought": plan.thought,
        "actions": actions,
        "problems": problems,
        "stopped": "",
    }
    if actions:
        return update
    if plan.is_complete or not plan.actions:
        return {**update, "stopped": "complete"}
    idle = state["idle"] + 1
    stopped = "no_gain" if idle >= settings.patience else _bound(step, state["actions"], settings)
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
        "stopped": stopped or _bound(step, state["actions"], settings),
    }


def _open_actions(
    state: PaperSearchState, planned: Iterable[Action], step: int
) -> tuple[list[ActionRecord], list[str]]:
    done = {_key(one["tool"], one["text"], one["mode"]) for one in state["actions"]}
    opened: list[ActionRecord] = []
    problems: list[str] = []
    for one in planned:
        key, what = _key(one.tool, one.text, one.mode), f"{one.tool} {one.text[:_SHOWN_CHARS]!r}"
        if not one.text.strip():
            problems.append(f"round {step}: {one.tool} of nothing is not made")
        elif key in done:
            problems.append(f"round {step}: {what} was made before, and is not repeated")
        elif one.tool != "search" and one.text not in state["pool"]:
            problems.append(f"round {step}: {what} is not made: no such paper was found")
        else:
            done.add(key)
            number = len(state["actions"]) + len(opened) + 1
            opened.append(_open(one, f"{_LETTER[one.tool]}{number}", step))
    return opened, problems


def _key(tool: str, text: str, mode: str | None) -> tuple[str, str, str]:
    same = " ".join(text.casefold().split()) if tool == "search" else text
    return tool, same, mode or ""


def _open(one: Action, id: str, step: int) -> ActionRecord:
    return {
        "id": id,
        "step": step,
        "tool": one.tool,
        "text": one.text,
        "k": one.k,
        "mode": one.mode,
        "weight": one.weight,
        "status": "planned",
        "cause": "",
        "found": 0,
        "new": 0,
        "kept": 0,
        "left": 0,
        "ids": [],
    }


def _bound(step: int, actions: Sequence[ActionRecord], settings: PaperSearchSettings) -> str:
    """Return the limit that keeps another round from starting; empty if none does."""
    if len(actions) >= settings.max_actions:
        return "max_actions"
    return "max_steps" if step >= settings.max_steps else ""


def after_plan(
    state: PaperSearchState, *, settings: PaperSearchSettings, lazy: bool
) -> list[Send] | str:
    """Go to the calls of this round, to another plan, or to the end."""
    planned = [one for one in state["actions"] if one["status"] == "planned"]
    if planned:
        tasks: list[CallTask] = [{"action": one, "searched": state["searched"]} for one in planned]
        return [Send("call", one) for one in tasks]
    if not state["stopped"]:
        return "plan"
    return judge_sends(state, settings=settings, lazy=lazy) or "rank" if lazy else "rank"


def merge(state: PaperSearchState, *, settings: PaperSearchSettings) -> Update:
    """Take what the calls brought into the pool, in the order of the calls."""
    limits = Limits.from_dict(state["limits"])
    pool: dict[str, PooledPaper] = {}
    room = settings.max_papers - len(state["pool"])
    records: list[dict[str, Any]] = []
    fresh: list[str] = []
    for action in state["actions"]:
        if action["id"] not in state["results"]:
            continue
        new = left = 0
        ids = []
        for one in state["results"][action["id"]]:
            id = one["paper"]["id"]
            before = pool.get(id) or state["pool"].get(id)
            if before is None and len(fresh) >= room:
                left += 1
                continue
            if before is None:
                new += 1
                fresh.append(id)
                before = _new_paper(one["paper"], limits)
            ids.append(id)
            pool[id] = _add(before, action, one)
        records.append({"id": action["id"], "new": new, "left": left, "ids": ids})
    problems = [
        f"{one['id']}: {one['left']} papers were left out, as the pool is full"
        for one in records
        if one["left"]
    ]
    return {
        "pool": pool,
        "actions": records,
        "results": None,
        "fresh": fresh,
        "problems": problems,
    }


def _new_paper(paper: dict[str, Any], limits: Limits) -> PooledPaper:
    against, quote = breaks_by_facts(paper, limits)
    return {
        "paper": paper,
        "found_by": [],
        "fused": 0.0,
        "score": None,
        "verdict": "out" if against else "unjudged",
        "reason": f"breaks a limit: {against}" if against else "",
        "quote": quote,
        "against": against,
        "doubt": 0.0,
    }


def _add(before: PooledPaper, action: ActionRecord, one: Mapping[str, Any]) -> PooledPaper:
    ranks = (one["by"] or {"": one["rank"]}).values()
    share = action["weight"] * sum_reciprocals(ranks, k=CORMACK_K)
    found = [*before["found_by"], {"call": action["id"], "rank": one["rank"], "share": share}]
    return {**before, "found_by": found, "fused": before["fused"] + share}  # type: ignore[typeddict-item]


def after_merge(
    state: PaperSearchState, *, settings: PaperSearchSettings, lazy: bool
) -> list[Send] | str:
    """Have the new papers judged, unless that is left for the end.

    Where something is excluded the best are judged at once whoever selects, so that a planner
    neither takes up nor follows what will be left out.
    """
    if lazy and not state["limits"].get("exclude"):
        return "gather"
    first = _FOLLOWED if lazy else None
    return judge_sends(state, settings=settings, lazy=lazy, first=first) or "gather"


def judge_sends(
    state: PaperSearchState, *, settings: PaperSearchSettings, lazy: bool, first: int | None = None
) -> list[Send]:
    """Return a batch for each `judged` papers that nobody judged, the best first.

    *first* are the best of the pool that are looked at; None for all.
    """
    most = settings.max_judged
    if lazy and not state["limits"].get("exclude"):
        most = min(most, _EXPLAINED)  # there is nothing to find out but the reasons
    n_asked = sum(bool(one["reason"]) for one in state["pool"].values())
    open_ids = [
        id
        for id in order(state["pool"])[:first]
        if state["pool"][id]["verdict"] == "unjudged" and not state["pool"][id]["reason"]
    ][: max(0, most - n_asked)]
    size = settings.judged
    batches = [open_ids[at : at + size] for at in range(0, len(open_ids), size)]
    tasks: list[SelectTask] = [
        {"limits": state["limits"], "papers": [_seen(id, state["pool"][id]) for id in batch]}
        for batch in batches
    ]
    return [Send("judge", one) for one in tasks]


def ask_judge(task: SelectTask) -> SelectTask:
    """Pass a batch on."""
    return task


def record_verdicts(task: SelectTask, selected: Selected) -> Update:
    """Write the verdicts; papers without one stay, and are named."""
    asked = {one["id"] for one in task["papers"]}
    said = {one.id: one for one in selected.papers if one.id in asked}
    pool: dict[str, Any] = {
        id: {
            "score": one.score,
            "verdict": one.verdict,
            "reason": one.reason or "judged",
            "quote": one.quote,
            "against": one.against,
            "doubt": one.doubt,
        }
        for id, one in said.items()
    }
    missing = [one["id"] for one in task["papers"] if one["id"] not in said]
    pool |= {id: {"reason": "not judged: the selector said nothing of it"} for id in missing}
    problems = [f"the selector said nothing of {', '.join(missing)}"] if missing else []
    return {"pool": pool, "problems": problems}


def judge_failed(task: SelectTask, error: RoleError) -> Update:
    """Keep the papers, and say that nobody judged them."""
    ids = [one["id"] for one in task["papers"]]
    pool = {id: {"reason": f"not judged: {error}"} for id in ids}
    return {"pool": pool, "problems": [f"{len(ids)} papers were not judged: {error}"]}


def gather(state: PaperSearchState, *, settings: PaperSearchSettings) -> Update:
    """Count what each call of the round was worth, and see whether to go on."""
    fresh = {id for id in state["fresh"] if state["pool"][id]["verdict"] != "out"}
    owner = {id: state["pool"][id]["found_by"][0]["call"] for id in state["pool"]}
    records = []
    for one in state["actions"]:
        kept = sum(
            owner[id] == one["id"] and state["pool"][id]["verdict"] != "out" for id in one["ids"]
        )
        records.append({"id": one["id"], "kept": kept})
    update: Update = {"actions": records, "fresh": []}
    if state["stopped"]:
        return update
    idle = 0 if fresh else state["idle"] + 1
    stopped = _bound(state["step"], state["actions"], settings)
    if len(state["pool"]) >= settings.max_papers:
        stopped = "max_papers"
    elif idle >= settings.patience:
        stopped = "no_gain"
    return {**update, "idle": idle, "stopped": stopped}


def after_gather(
    state: PaperSearchState, *, settings: PaperSearchSettings, lazy: bool
) -> list[Send] | str:
    """Go on to the next plan, or to the end."""
    if not state["stopped"]:
        return "plan"
    return judge_sends(state, settings=settings, lazy=lazy) or "rank" if lazy else "rank"


def rank(state: PaperSearchState) -> Update:
    """Order the papers that break no limit."""
    return {"ranking": [id for id in order(state["pool"]) if _is_in(state["pool"][id])]}


def order(pool: Mapping[str, PooledPaper]) -> list[str]:
    """Return ids, best first; what is out comes last.

    By scores where there are any; a paper without one keeps the place that its searches gave it.
    Equal ones are in the order of the fused ranks, then by id.
    """
    ids = sorted(pool, key=lambda id: (not _is_in(pool[id]), -_weigh(pool[id]), id))
    scored = [id for id in ids if pool[id]["score"] is not None and _is_in(pool[id])]
    by_score = iter(sorted(scored, key=lambda id: -(pool[id]["score"] or 0.0)))
    moved = set(scored)
    return [next(by_score) if id in moved else id for id in ids]


def _weigh(one: PooledPaper) -> float:
    return one["fused"] * (1 - one["doubt"])


def _is_in(one: PooledPaper) -> bool:
    return one["verdict"] != "out"


def _seen(id: str, one: PooledPaper) -> PaperSeen:
    paper = one["paper"]
    return {
        "id": id,
        "title": paper["title"],
        "abstract": paper["abstract"],
        "year": paper["year"],
        "venue": paper["venue"],
        "score": one["score"],
        "verdict": one["verdict"],
        "calls": [each["call"] for each in one["found_by"]],
    }
