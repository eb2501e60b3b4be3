"""The whole pipeline.

receive -> intent -> survey, if the backend has a surveyor -> score (one branch a passage, or a
group of them) -> select -> summarize (one branch a kept passage that its judge has not summarized)
-> collect -> answer, if asked for. Nothing kept: select -> abstain or the end. In waves: score ->
wave -> score, until nothing is left or the rest is not asked about -> select.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from langgraph.graph import END, START, StateGraph

from deepera_graph.cache.store import JudgementCache
from deepera_graph.edges import any_kept, any_passages, any_windows, last_step
from deepera_graph.errors import SettingsError
from deepera_graph.limiter import Limiter
from deepera_graph.nodes import answer, intent, summarize, survey, wave
from deepera_graph.nodes.call import RoleNode, announced
from deepera_graph.nodes.checked import checked_role
from deepera_graph.nodes.collect import collect
from deepera_graph.nodes.receive import receive
from deepera_graph.nodes.select import select
from deepera_graph.roles import Backend, ReadsAhead
from deepera_graph.schema import Answer, Intent, Summary, Survey
from deepera_graph.scoring import score_edge, score_node
from deepera_graph.settings import Settings
from deepera_graph.state import Output, Question, State, Update

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph


def build_graph(
    backend: Backend,
    settings: Settings | None = None,
    *,
    checkpointer: "BaseCheckpointSaver[Any] | bool | None" = None,
    cache: JudgementCache | None = None,
    limiter: Limiter | None = None,
) -> "CompiledStateGraph[State, None, Question, Output]":
    """Compile the DeepEra state machine for one backend (DeepEra, algorithm 1).

    A wave is two steps of LangGraph's `recursion_limit`.

    Args:
        backend: The roles to call.
        settings: How to filter; the defaults if None.
        checkpointer: As for `StateGraph.compile`; None takes the parent's when used as a subgraph.
        cache: Where judgements are kept; none are if None.
        limiter: Shared with other graphs, to limit the calls of all of them together; one of its
            own, for `max_concurrency` calls, if None.

    Raises:
        SettingsError: An answer is asked for and the backend has no answerer, or a cache is given
            and the backend cannot be told from others.
    """
    settings = settings or Settings()
    if settings.answer and backend.answerer is None:
        raise SettingsError(f"answer is on, but backend {backend.name!r} has no answerer")
    limiter = limiter or Limiter(settings.max_concurrency)
    checked = partial(checked_role, limiter=limiter, cache=cache, backend=backend)
    graph = StateGraph(State, input_schema=Question, output_schema=Output)

    graph.add_node("receive", _begin(backend, settings, has_cache=cache is not None))
    graph.add_node(
        "intent",
        RoleNode(
            "intent",
            ask=intent.ask,
            role=intent.GuardedIntent(checked("intent", backend.intent, Intent)),
            record=intent.record,
            rescue=intent.rescue,
            run_name=lambda state: "recognise intent",
        ),
    )
    graph.add_node("score", score_node(backend, limiter=limiter, cache=cache))
    needs_evidence = settings.needs_evidence(by_default=backend.needs_evidence)
    select_node = partial(select, settings=settings, needs_evidence=needs_evidence)
    graph.add_node("select", announced("select", select_node))
    graph.add_node(
        "summarize",
        RoleNode(
            "summarize",
            ask=summarize.ask,
            role=checked("summarizer", backend.summarizer, Summary),
            record=summarize.record,
            rescue=summarize.rescue,
            run_name=lambda task: f"summarize {task['index'] + 1}",
        ),
    )
    graph.add_node("collect", partial(collect, settings=settings))

    graph.add_edge(START, "receive")
    graph.add_conditional_edges("receive", any_passages, ["intent", "select"])
    before_score = "intent"
    if backend.surveyor is not None:
        before_score = "survey"
        surveyor = checked("surveyor", backend.surveyor, Survey, find_problem=survey.find_problem)
        graph.add_node(
            "survey",
            RoleNode(
                "survey",
                ask=partial(survey.ask, settings=settings),
                role=surveyor,
                record=partial(survey.record, settings=settings),
                rescue=survey.rescue,
                run_name=lambda state: "survey passages",
            ),
        )
        graph.add_conditional_edges(
            "intent", partial(any_windows, settings=settings), ["survey", "select"]
        )
    to_score = score_edge(backend, settings)
    graph.add_conditional_edges(before_score, to_score, ["score", "select"])
    if settings.passages_a_wave is None:
        graph.add_edge("score", "select")  # waits for every branch
    else:
        close = partial(wave.close, settings=settings, needs_evidence=needs_evidence)
        graph.add_node("wave", partial(close, has_cache=cache is not None))
        graph.add_edge("score", "wave")
        graph.add_conditional_edges("wave", to_score, ["score", "select"])
    nothing_kept = "abstain" if settings.answer else END
    graph.add_conditional_edges(
        "select", partial(any_kept, settings=settings), ["summarize", "collect", nothing_kept]
    )
    graph.add_edge("summarize", "collect")
    graph.add_conditional_edges(
        "collect",
        partial(last_step, settings=settings),
        ["answer", "abstain"] if settings.answer else [END],
    )
    if settings.answer and backend.answerer is not None:
        graph.add_node(
            "answer",
            RoleNode(
                "answer",
                ask=answer.ask,
                role=checked("answerer", backend.answerer, Answer),
                record=answer.record,
                rescue=answer.rescue,
                run_name=lambda state: "answer",
            ),
        )
        graph.add_node("abstain", announced("answer", answer.abstain))
        graph.add_edge("answer", END)
        graph.add_edge("abstain", END)
    return graph.compile(checkpointer=checkpointer, name="DeepEra")


def _begin(backend: Backend, settings: Settings, *, has_cache: bool) -> Callable[..., Update]:
    """Return the first node; a surveyor reads ahead in it, unless its survey may be cached."""
    if backend.surveyor is None:
        return receive
    begin = partial(survey.receive_unsurveyed, settings=settings)
    if isinstance(backend.surveyor, ReadsAhead) and not has_cache:
        return partial(begin, read_ahead=backend.surveyor.read_ahead)
    return begin
