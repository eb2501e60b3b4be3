"""Who plans a search: one search, rules, or the styles of PaSa, SPAR and PaperScout."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

from langchain_core.runnables import Runnable, RunnableLambda

from deepera_graph.errors import SettingsError
from deepera_graph.papers.agent.planners.pasa import PasaPlanner
from deepera_graph.papers.agent.planners.rules import plan_by_rules
from deepera_graph.papers.agent.planners.scout import ScriptedScout
from deepera_graph.papers.agent.planners.single import plan_once
from deepera_graph.papers.agent.planners.spar import SparPlanner
from deepera_graph.papers.agent.roles import PaperRoles
from deepera_graph.papers.agent.state import Action, PlanTask, SearchPlan
from deepera_graph.settings import suggest_value
from deepera_graph.usage import Usage

Style = Literal["rules", "sparse", "dense", "hybrid", "pasa", "spar", "scout"]
_WITHOUT_MODEL: tuple[Style, ...] = ("rules", "sparse", "dense", "hybrid")


def make_planner(
    style: Style,
    planner: Runnable[PlanTask, SearchPlan] | Sequence[str] | None,
    roles: PaperRoles | None,
) -> Runnable[PlanTask, SearchPlan]:
    """Return the planner of a style.

    Args:
        style: Which.
        planner: Queries that are searched for in order, five a round, or a runnable that writes
            them; None if the roles do, or for a style that needs no model.
        roles: Those of a chat model, or None.

    Raises:
        SettingsError: There is no such style, or nobody writes its queries.
    """
    if style not in get_args(Style):
        known = get_args(Style)
        raise SettingsError(
            f"style must be one of {', '.join(known)}, got {style!r}{suggest_value(style, known)}"
        )
    if style in _WITHOUT_MODEL:
        if planner is not None:
            raise SettingsError(f"style {style!r} plans by itself, and takes no planner")
        return RunnableLambda(plan_by_rules if style == "rules" else _once(style))
    if planner is not None:
        return _of_planner(style, planner)
    if roles is None:
        raise SettingsError(
            f"style {style!r} needs a chat model or a planner; 'rules' needs neither"
        )
    return _of_roles(style, roles)


def _of_roles(style: Style, roles: PaperRoles) -> Runnable[PlanTask, SearchPlan]:
    if style == "scout":
        return roles.scout
    if style == "pasa":
        return PasaPlanner(roles.queries)
    return SparPlanner(roles.fuse or roles.queries, roles.evolve or roles.queries)


def _of_planner(style: Style, planner: Any) -> Runnable[PlanTask, SearchPlan]:
    queries = _queries_in(planner)
    if style == "scout":
        return _runnable(planner) if queries is None else ScriptedScout(queries)
    writer = _runnable(planner) if queries is None else script(queries)
    return PasaPlanner(writer) if style == "pasa" else SparPlanner(writer, writer)


def script(queries: Sequence[str]) -> Runnable[PlanTask, SearchPlan]:
    """Return a writer that gives the next five of some queries, each once."""
    kept = list(queries)

    def write(task: PlanTask) -> SearchPlan:
        done = {one["text"] for one in task["history"]}
        rest = [one for one in kept if one not in done][:5]
        return SearchPlan(
            usage=Usage(),
            actions=[Action(tool="search", text=one) for one in rest],
            is_complete=not rest,
        )

    return RunnableLambda(write)


def _once(style: Any) -> Any:
    return lambda task: plan_once(task, style)


def _queries_in(planner: Any) -> Sequence[str] | None:
    """Return the queries that a planner is made of; None if it is something else."""
    listed = isinstance(planner, Sequence) and not isinstance(planner, str)
    return planner if listed else None


def _runnable(planner: Any) -> Runnable[PlanTask, SearchPlan]:
    if isinstance(planner, Runnable):
        return planner
    if callable(planner):
        return RunnableLambda(planner)
    raise SettingsError(
        f"planner must be queries, a function or a runnable, got {type(planner).__name__}"
    )
