"""The nodes of a search for papers: pure functions of the state."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph.types import Send

from deepera_graph.errors import RoleError
from deepera_graph.papers.agent.limits import Limits, breaks_by_facts
from deepera_graph.papers.agent.limits.reading import read_limits
from deepera_graph.papers.agent.planning import bound, is_in, is_screened, look, order
from deepera_graph.papers.agent.settings import PaperSearchSettings
from deepera_graph.papers.agent.state import (
    ActionRecord,
    CallTask,
    LimitsRead,
    LimitsTask,
    PaperSearchState,
    PaperSeen,
    PaperVerdict,
    PooledPaper,
    RankTask,
    Reordered,
    Selected,
    SelectTask,
)
from deepera_graph.papers.results import Scope
from deepera_graph.retrieval.fusion import CORMACK_K, sum_reciprocals
from deepera_graph.usage import Usage

Update = dict[str, Any]
_EXPLAINED = 30  # papers that get a reason where nothing is excluded and no model judges
_FOLLOWED = 20  # papers that planners take titles and citations of at most
_REORDERED = 20  # papers that a reranker is given
_SCREENED = 2  # times as many papers are looked at as may still be judged
FIT = 0.5  # a score above it says that a paper fits, unless the selector says so itself
TOO_FAR = "too far from the topic to be judged"
Near = Callable[[Sequence[PaperSeen], Sequence[str]], list[float]]


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
        "names": [],
        "refused": [],
        "results": None,
    }


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
    return {"pool": pool, "actions": records, "results": None, "fresh": fresh, "problems": problems}


def _new_paper(paper: dict[str, Any], limits: Limits) -> PooledPaper:
    against, quote = breaks_by_facts(paper, limits)
    return {
        "paper": paper,
        "found_by": [],
        "fused": 0.0,
        "score": None,
        "verdict": "out" if against else "unjudged",
        "fits": None,
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
    """Have the new papers judged, unless that is left for the end."""
    # Where something is excluded the best are judged at once whoever selects, so that a planner
    # neither takes up nor follows what will be left out.
    if lazy and not state["limits"].get("exclude"):
        return "gather"
    first = _FOLLOWED if lazy else None
    return judge_sends(state, settings=settings, lazy=lazy, first=first) or "gather"


def judge_sends(
    state: PaperSearchState, *, settings: PaperSearchSettings, lazy: bool, first: int | None = None
) -> list[Send]:
    """Return a batch for each `judged` papers that nobody judged, the best first."""
    # *first* are the best of the pool that are looked at; None for all.
    most = settings.max_judged
    if lazy and not state["limits"].get("exclude"):
        most = min(most, _EXPLAINED)  # there is nothing to find out but the reasons
    open_ids = _open_ids(state, first)[: max(0, most - _n_asked(state))]
    seen, size = look(state["pool"], state["actions"]), settings.judged
    batches = [open_ids[at : at + size] for at in range(0, len(open_ids), size)]
    tasks: list[SelectTask] = [
        {"limits": state["limits"], "names": state["names"], "papers": [seen[id] for id in batch]}
        for batch in batches
    ]
    return [Send("judge", one) for one in tasks]


def _open_ids(state: PaperSearchState, first: int | None = None) -> list[str]:
    """Return the papers that nobody was asked about, best first."""
    pool = state["pool"]
    return [
        id
        for id in order(pool)[:first]
        if pool[id]["verdict"] == "unjudged" and not pool[id]["reason"]
    ]


def _n_asked(state: PaperSearchState) -> int:
    return sum(bool(one["reason"]) and not is_screened(one) for one in state["pool"].values())


def screen(
    state: PaperSearchState, *, settings: PaperSearchSettings, least: float, near: Near
) -> Update:
    """Mark papers that are too far from the topic, and all queries, to be worth a judgement."""
    # Source: The cosine is ours: on planted worlds and on three sets of real questions no answer
    # was below .25, docs/paper-search.md.
    room = max(0, settings.max_judged - _n_asked(state))
    ids = _open_ids(state)[: _SCREENED * room]
    if not ids:
        return {}
    queries = [one["text"] for one in state["actions"] if one["tool"] == "search"]
    asked = [state["limits"]["topic"], *state["names"], *queries]
    seen = look(state["pool"], state["actions"])
    found = near([seen[id] for id in ids], [*dict.fromkeys(asked)])
    far = [id for id, cosine in zip(ids, found, strict=True) if cosine < least]
    return {"pool": {id: {"fits": False, "reason": TOO_FAR} for id in far}}


def record_verdicts(task: SelectTask, selected: Selected) -> Update:
    """Write the verdicts; papers without one stay, and are named."""
    asked = {one["id"] for one in task["papers"]}
    said = {one.id: one for one in selected.papers if one.id in asked}
    pool: dict[str, Any] = {
        id: {
            "score": one.score,
            "verdict": one.verdict,
            "fits": _fits(one),
            "reason": one.reason or "judged",
            "quote": one.quote,
            "against": one.against,
            "doubt": one.doubt,
        }
        for id, one in said.items()
    }
    failed = {id: cause for id, cause in selected.failures.items() if id in asked - said.keys()}
    pool |= {id: {"reason": f"not judged: {cause}"} for id, cause in failed.items()}
    problems = [f"{id} was not judged: {cause}" for id, cause in failed.items()]
    missing = [one["id"] for one in task["papers"] if one["id"] not in {*said, *failed}]
    pool |= {id: {"reason": "not judged: the selector said nothing of it"} for id in missing}
    problems += [f"the selector said nothing of {', '.join(missing)}"] if missing else []
    return {"pool": pool, "problems": problems}


def _fits(one: PaperVerdict) -> bool | None:
    if one.fits is not None or one.score is None:
        return one.fits
    return one.score > FIT


def judge_failed(task: SelectTask, error: RoleError) -> Update:
    """Keep the papers, and say that nobody judged them."""
    ids = [one["id"] for one in task["papers"]]
    pool = {id: {"reason": f"not judged: {error}"} for id in ids}
    return {"pool": pool, "problems": [f"{len(ids)} papers were not judged: {error}"]}


def gather(state: PaperSearchState, *, settings: PaperSearchSettings) -> Update:
    """Count what each call of the round was worth, and see whether to go on."""
    fresh = {id for id in state["fresh"] if _counts(state["pool"][id])}
    owner = {id: state["pool"][id]["found_by"][0]["call"] for id in state["pool"]}
    records = []
    for one in state["actions"]:
        kept = sum(owner[id] == one["id"] and _counts(state["pool"][id]) for id in one["ids"])
        records.append({"id": one["id"], "kept": kept})
    update: Update = {"actions": records, "fresh": []}
    if state["stopped"]:
        return update
    idle = 0 if fresh else state["idle"] + 1
    stopped = bound(state["step"], state["actions"], settings)
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


def _counts(one: PooledPaper) -> bool:
    """Whether a paper is worth keeping, as far as is known."""
    return is_in(one) and one["fits"] is not False


def rank(state: PaperSearchState, *, least: float) -> Update:
    """Order the papers that break no limit, and leave out those that score below *least*."""
    pool = state["pool"]
    low = [
        id
        for id, one in pool.items()
        if is_in(one) and one["fits"] is False and (one["score"] or 0.0) < least
    ]
    ranking = [id for id in order(pool) if is_in(pool[id]) and id not in {*low}]
    said = {id: f"scored below {least:g}: {pool[id]['reason']}" for id in low}
    said |= {id: TOO_FAR for id in low if is_screened(pool[id])}
    return {"ranking": ranking, "pool": {id: {"reason": why} for id, why in said.items()}}


def ask_order(state: PaperSearchState) -> RankTask:
    """Ask for the order of the best."""
    seen = look(state["pool"], state["actions"])
    best = [seen[id] for id in state["ranking"][:_REORDERED]]
    return {"limits": state["limits"], "names": state["names"], "papers": best}


def record_order(state: PaperSearchState, said: Reordered) -> Update:
    """Put the best into the new order."""
    known = state["ranking"][:_REORDERED]
    first = [id for id in dict.fromkeys(said.ids) if id in known]
    return {"ranking": [*first, *(id for id in state["ranking"] if id not in {*first})]}


def order_failed(state: PaperSearchState, error: RoleError) -> Update:
    """Keep the order that the scores gave."""
    return {"problems": [f"the best papers keep the order of their scores: {error}"]}
