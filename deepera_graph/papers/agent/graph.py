"""A search for papers as a LangGraph state machine, whoever plans and whoever selects.

receive -> understand -> plan -> call (a branch each) -> merge -> [screen ->] judge (a branch a
batch) -> gather -> plan ... -> rank [-> reorder]. A selector that gives no scores judges the best
at the end alone; a costly one is spared what is too far from the topic.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from deepera_graph.agents.role import CheckedRole, RoleNode, wrap_role
from deepera_graph.agents.run import AgentRun, Event, hash_plain, versions, without_limits
from deepera_graph.errors import SettingsError
from deepera_graph.papers.agent import planning, steps
from deepera_graph.papers.agent.asking import acarry_out, carry_out
from deepera_graph.papers.agent.found import Found, find_outside
from deepera_graph.papers.agent.planners import LEAST, PARALLEL, Style, make_planner
from deepera_graph.papers.agent.roles import PaperRoles, paper_roles
from deepera_graph.papers.agent.selectors import make_selector, nearness_to_topic
from deepera_graph.papers.agent.settings import PaperSearchKwargs, PaperSearchSettings
from deepera_graph.papers.agent.state import (
    LimitsRead,
    PaperSearchInput,
    PaperSearchOutput,
    PaperSearchState,
    PlanTask,
    Reordered,
    SearchPlan,
    Selected,
)
from deepera_graph.papers.base import PaperBase
from deepera_graph.papers.paper import venue_key
from deepera_graph.papers.results import Scope, SearchMode, check_venues
from deepera_graph.passages import check_question
from deepera_graph.schema import Backend, RoleAnswer
from deepera_graph.settings.budget import Limiter
from deepera_graph.stores.judgements import JudgementCache

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

AnswerT = TypeVar("AnswerT", bound=RoleAnswer)
_STEPS_A_ROUND = 6  # plan, call, merge, screen, judge, gather
_STEPS_APART = 9
_SCREEN = 0.25  # cosine from which on a paper is worth a call of a model
# roles that a chat model has, if any
_ASKED = ("understand", "pasa", "spar", "scout", "llm", "reorder")


class _AskedHow(TypedDict, total=False):
    """How a question is asked; see `PaperSearch.search`."""

    scope: Scope | None
    config: RunnableConfig | None
    resume: bool


class PaperSearch:
    """Searches a base of papers in several steps, and says of every paper why it is there.

    ``PaperSearch(PaperBase.open("nlp.papers")).search("parsing without treebanks").to_text()``

    Args:
        base: Where the papers are.
        planner: A chat model, its name, a backend or `PaperRoles` of it; or queries that are
            searched for in order; or a function or runnable from `PlanTask` to `SearchPlan`. None:
            the search plans by rules.
        style: ``rules``, the default without a planner: labels and papers like the best, no
            key. ``sparse``, ``dense``, ``hybrid``: one search. ``pasa``, ``spar`` and, the default
            with a planner, ``scout``: in the style of those systems.
        selector: ``deepera``: this package's own graph with the local judge; an `EvidenceReranker`
            or a `Backend`: the same with another judge. ``vectors``, ``rules``: what breaks a
            limit, by sentences. ``llm``: the chat model. Or a function or runnable from
            `SelectTask` to `Selected`. None: the chat model if there is one, else ``vectors``.
        checkpointer: A LangGraph saver that keeps the state after every step; needs a
            ``thread_id`` in the config.
        cache: Where the replies of a chat model are kept, so that an equal one is not paid for
            twice; a search asked again after a kill then goes on where it was.
        settings: See `PaperSearchSettings`: `max_steps`, `max_actions`, `budget` and others.

    Raises:
        SettingsError: A setting is out of range, or a style lacks its planner.
    """

    def __init__(
        self,
        base: PaperBase,
        *,
        planner: Any = None,
        style: Style | None = None,
        selector: Any = None,
        checkpointer: "BaseCheckpointSaver[Any] | None" = None,
        cache: JudgementCache | None = None,
        **settings: Unpack[PaperSearchKwargs],
    ) -> None:
        self.base = base
        self.settings = PaperSearchSettings.of(settings)
        roles = _roles_of(planner)
        self.style: Style = style or ("rules" if planner is None else "scout")
        if self.style in ("dense", "hybrid") and not base.has_vectors:
            raise SettingsError(
                f"style {self.style!r} needs vectors, and {base.place!r} has none; "
                "deepera papers build --embeddings local makes them"
            )
        self.planner = make_planner(self.style, None if roles else planner, roles)
        self.selector = make_selector(selector, roles)
        self.model = roles.name if roles else ""
        self._understand: Runnable[Any, LimitsRead] = (
            roles.understand if roles else RunnableLambda(steps.limits_by_rules)
        )
        self._roles, self._cache = roles, cache
        self._has_saver = checkpointer is not None
        self._venues = base.venues()
        self.graph = self._build(checkpointer)

    def _build(
        self, checkpointer: "BaseCheckpointSaver[Any] | None"
    ) -> "CompiledStateGraph[PaperSearchState, None, PaperSearchInput, PaperSearchOutput]":
        chosen, limiter = self.settings, Limiter(self.settings.max_concurrency)
        selector, is_scout = self.selector, self.style == "scout"
        planned = chosen
        if is_scout and self._roles is not None:
            planned = replace(chosen, max_parallel=min(chosen.max_parallel, PARALLEL))
        venues = self._venues
        modes: list[SearchMode] = ["sparse"]
        if self.base.has_vectors:
            modes += ["dense", "hybrid"]

        def checked(name: str, role: Runnable[Any, Any], schema: type[AnswerT]) -> Any:
            return self._checked(name, role, schema, limiter)

        graph = StateGraph(
            PaperSearchState, input_schema=PaperSearchInput, output_schema=PaperSearchOutput
        )
        graph.add_node("receive", steps.receive)
        graph.add_node(
            "understand",
            RoleNode(
                "understand",
                ask=partial(steps.ask_limits, venues=venues),
                role=checked("understand", self._understand, LimitsRead),
                record=partial(steps.record_limits, venues=venues),
                on_failure=partial(steps.limits_failed, venues=venues),
                run_name=lambda state: "read the limits",
            ),
        )
        graph.add_node(
            "plan",
            RoleNode(
                "plan",
                ask=partial(
                    planning.ask_plan, settings=planned, modes=modes, judged_first=selector.scores
                ),
                role=checked(self.style, self.planner, SearchPlan),
                record=partial(planning.record_plan, settings=planned),
                on_failure=partial(planning.plan_failed, settings=planned),
                run_name=lambda state: f"plan round {state['step'] + 1}",
            ),
        )
        call = RunnableLambda(
            partial(carry_out, base=self.base), partial(acarry_out, base=self.base), name="call"
        )
        graph.add_node("call", call)
        graph.add_node("merge", partial(steps.merge, settings=chosen))
        graph.add_node(
            "judge",
            RoleNode(
                "judge",
                ask=lambda task: task,
                role=self._checked_selector(limiter),
                record=steps.record_verdicts,
                on_failure=steps.judge_failed,
                run_name=lambda task: f"judge {len(task['papers'])} papers",
            ),
        )
        graph.add_node("gather", partial(steps.gather, settings=chosen))
        graph.add_node("rank", partial(steps.rank, least=LEAST if is_scout else 0.0))
        after_merge = self._add_screen(graph)
        after_rank = self._add_reorder(graph, limiter)

        how: Any = {"settings": chosen, "lazy": not selector.scores}
        graph.add_edge(START, "receive")
        graph.add_edge("receive", "understand")
        graph.add_edge("understand", "plan")
        graph.add_conditional_edges(
            "plan", partial(steps.after_plan, **how), ["call", "plan", "judge", "rank"]
        )
        graph.add_edge("call", "merge")  # waits for every branch
        graph.add_conditional_edges(
            after_merge, partial(steps.after_merge, **how), ["judge", "gather"]
        )
        graph.add_edge("judge", "gather")
        graph.add_conditional_edges(
            "gather", partial(steps.after_gather, **how), ["plan", "judge", "rank"]
        )
        graph.add_edge(after_rank, END)
        return graph.compile(checkpointer=checkpointer, name="DeepEra papers")

    def _add_screen(self, graph: "StateGraph[Any, None, Any, Any]") -> str:
        """Add the node that spares a costly selector what is far from the topic; name the last."""
        least = self.settings.screen
        if least is None and not self.selector.is_costly:
            return "merge"
        how: Any = {"least": _SCREEN if least is None else least, "near": nearness_to_topic}
        graph.add_node("screen", partial(steps.screen, settings=self.settings, **how))
        graph.add_edge("merge", "screen")
        return "screen"

    def _add_reorder(self, graph: "StateGraph[Any, None, Any, Any]", limiter: Limiter) -> str:
        """Add the node in which a chat model orders the best, as in SPAR; name the last."""
        role = None if self._roles is None or self.style != "spar" else self._roles.reorder
        if role is None:
            return "rank"
        node: RoleNode[Any, Any, Reordered] = RoleNode(
            "reorder",
            ask=steps.ask_order,
            role=self._checked("reorder", role, Reordered, limiter),
            record=steps.record_order,
            on_failure=steps.order_failed,
            run_name=lambda state: "order the best papers",
        )
        graph.add_node("reorder", node)
        graph.add_edge("rank", "reorder")
        return "reorder"

    def _checked_selector(self, limiter: Limiter) -> Runnable[Any, Selected]:
        """Return the selector checked; a reranker checks, limits and charges its own calls."""
        if self.selector.name == "deepera":
            return self.selector.role
        return self._checked(self.selector.name, self.selector.role, Selected, limiter)

    def _checked(
        self, name: str, role: Runnable[Any, Any], schema: type[AnswerT], limiter: Limiter
    ) -> Runnable[Any, AnswerT]:
        """Return a role checked and limited, behind the cache if a chat model plays it."""
        if self._roles is None or name not in _ASKED:
            return CheckedRole(role, schema, limiter)
        kept = f"papers {name}"
        return wrap_role(
            kept,
            role,
            schema,
            limiter=limiter,
            cache=self._cache,
            fingerprint=self._roles.fingerprint,
        )

    def search(
        self,
        question: str,
        *,
        scope: Scope | None = None,
        config: RunnableConfig | None = None,
        resume: bool = False,
    ) -> Found:
        """Search for the papers that a question asks for.

        Args:
            question: What is asked, with its limits in words; not blank.
            scope: What may be seen at all; the limits of the question only narrow it.
            config: A LangChain config: callbacks, tags, metadata; with a checkpointer the
                ``thread_id``.
            resume: Whether to go on with what the checkpointer has of this thread: no call that
                was finished is made again.

        Raises:
            InputError: The question is blank, or the thread to resume is of another one.
            SettingsError: There is no checkpointer to resume from, or the thread was begun with
                other settings or another scope; or the base does not know a venue of the scope.
        """
        return _Run(self, question, scope, config).finish(resume=resume)

    async def asearch(self, question: str, **how: Unpack[_AskedHow]) -> Found:
        """Do what `search` does, in the running loop."""
        return await self._run(question, how).afinish(resume=how.get("resume", False))

    def stream(self, question: str, **how: Unpack[_AskedHow]) -> Iterator[Event]:
        """Yield an event for all that gets done; the last one holds the result.

        ``understood`` (the limits), ``planned`` (the calls of a round), ``called`` (a call and its
        yield), ``judged`` (how many papers) and ``result``.
        """
        return self._run(question, how).stream(resume=how.get("resume", False))

    def astream(self, question: str, **how: Unpack[_AskedHow]) -> AsyncIterator[Event]:
        """Do what `stream` does, in the running loop."""
        return self._run(question, how).astream(resume=how.get("resume", False))

    def _run(self, question: str, how: "_AskedHow") -> "_Run":
        return _Run(self, question, how.get("scope"), how.get("config"))

    def describe(self) -> dict[str, Any]:
        """Return who plans and selects, with which settings, as plain data."""
        return {
            "style": self.style,
            "model": self.model,
            "selector": self.selector.name,
            "judge": self.selector.about,
            "base": self.base.place,
            "settings": self.settings.to_dict(),
        }

    def made_by(self, scope: Scope | None = None) -> str:
        """Return 16 hex digits that name how is searched, and in what scope."""
        plain = self.describe()
        plain["settings"] = without_limits(plain["settings"])
        return hash_plain([plain, (scope or Scope()).to_dict()])

    @property
    def keeps_replies(self) -> bool:
        """Whether the replies of a chat model are kept for another time."""
        return self._roles is not None and self._cache is not None


def _roles_of(planner: Any) -> PaperRoles | None:
    if isinstance(planner, PaperRoles):
        return planner
    if isinstance(planner, str | BaseChatModel | Backend):
        return paper_roles(planner)
    return None


class _Run(AgentRun[Found]):
    name, kind, begun = "DeepEra papers", "search", "step"
    differs = "with other settings or another scope"

    def __init__(
        self, search: PaperSearch, question: str, scope: Scope | None, config: RunnableConfig | None
    ) -> None:
        check_question(question, ())
        self._search, self._scope = search, scope or Scope()
        check_venues(self._scope, {venue_key(one): one for one in search._venues})
        super().__init__(
            search.graph,
            {"question": question, "scope": self._scope.to_dict()},
            config,
            search.settings,
            n_steps=_STEPS_A_ROUND * search.settings.max_steps + _STEPS_APART,
            has_saver=search._has_saver,
        )

    def made_by(self) -> str:
        return self._search.made_by(self._scope)

    def _n_threads(self, asked: int | None, *, in_loop: bool) -> int | None:
        """Return how many calls of the base LangGraph may make at once, and one thread to wait."""
        return (asked or self._settings.max_concurrency) + 1

    def result(self) -> Found:
        state = self._state
        if not state.get("stopped"):
            raise RuntimeError("the graph ended without a reason")
        return Found.of(
            state,
            outside=find_outside(self._search.base, state),
            usage=self.usage,
            seconds=self.seconds,
            manifest={
                **self._search.describe(),
                "scope": self._scope.to_dict(),
                "searched": state["searched"],
                "versions": dict(versions()),
            },
        )

    def _told(self, node: str, update: Mapping[str, Any]) -> Iterator[Event]:
        if node == "understand":
            yield {"event": "understood", "limits": update["limits"]}
        if node == "plan":
            opened: Sequence[Mapping[str, Any]] = update.get("actions") or ()
            yield {
                "event": "planned",
                "step": update["step"],
                "actions": [{name: one[name] for name in ("id", "tool", "text")} for one in opened],
                "thought": update.get("thought", ""),
                "stopped": update.get("stopped", ""),
            }
        if node == "merge":
            for one in update["actions"]:
                yield {"event": "called", **one}
        if node == "judge":
            yield {"event": "judged", "papers": len(update.get("pool") or ())}


__all__ = ["PaperSearch", "PlanTask", "SearchPlan"]
