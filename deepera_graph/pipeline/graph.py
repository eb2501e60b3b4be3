"""The whole pipeline.

receive -> intent -> score (one branch a batch) -> plan -> score ... -> select -> summarize (one
branch a kept passage that its judge has not summarized) -> collect -> answer, if asked for.
Nothing left to judge, or enough found: plan -> select. Nothing kept: select -> abstain or the end.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph

from deepera_graph.agents.cached import CachedBatches
from deepera_graph.agents.role import Edge, RoleNode, wrap_role
from deepera_graph.errors import SettingsError
from deepera_graph.judges import load_backend
from deepera_graph.judges.base import Judge, Prepares, as_judge
from deepera_graph.pipeline import answer, intent, score, summarize
from deepera_graph.pipeline.intent import check_keys, receive
from deepera_graph.pipeline.select import collect, select
from deepera_graph.pipeline.state import Output, Question, State, announced, tell
from deepera_graph.schema import Answer, Backend, Batch, Intent, Summary, Verdict
from deepera_graph.settings import Settings, SettingsKwargs
from deepera_graph.settings.budget import Limiter
from deepera_graph.settings.ranges import check_share
from deepera_graph.stores.judgements import JudgementCache

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph


def build_graph(
    backend: Backend | str | Mapping[str, Any] = "local",
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    checkpointer: "BaseCheckpointSaver[Any] | bool | None" = None,
    cache: JudgementCache | None = None,
    limiter: Limiter | None = None,
    **changes: Unpack[SettingsKwargs],
) -> "CompiledStateGraph[State, None, Question, Output]":
    """Compile the DeepEra state machine for one backend (DeepEra, algorithm 1).

    In goes a `question` with its `passages`; out come `documents`, the `ranking` of all passages,
    `outcome`, `answer` and more: docs/langgraph.md has every key, and how to use it as a subgraph.
    A round of judging is two steps of LangGraph's `recursion_limit`.

    Args:
        backend: Who judges, as for `EvidenceReranker`: a `Backend`, or its name.
        settings: How to filter: `Settings`, or some of them by name; the defaults if None.
        checkpointer: As for `StateGraph.compile`; None takes the parent's when used as a subgraph.
        cache: Where judgements are kept; none are if None.
        limiter: Shared with other graphs, to limit the calls of all of them together; one of its
            own, for `max_concurrency` calls, if None.
        changes: Settings by name, which count more than *settings*.

    Raises:
        SettingsError: The backend cannot be built, a setting is unknown or out of range, an answer
            is asked for and the backend has no answerer, or a cache is given and the backend cannot
            be told from others.
    """
    backend = load_backend(backend)
    judge = as_judge(backend.judge)
    given = Settings.of(settings) if isinstance(settings, Mapping) else settings or Settings()
    if changes:
        Settings.check_names(changes, also=("settings", "checkpointer", "cache", "limiter"))
        given = Settings.of({**given.to_dict(), **changes})
    settings = with_threshold(given, judge)
    check_parts(backend, settings, cache)
    limiter = limiter or Limiter(settings.max_concurrency)
    wrapped = partial(wrap_role, limiter=limiter, cache=cache, fingerprint=backend.fingerprint)
    evidence = score.evidence_wanted(backend, settings)
    prepare = judge.prepare if isinstance(judge, Prepares) and cache is None else None
    graph = StateGraph(State, input_schema=Question, output_schema=Output)

    graph.add_node("receive", partial(receive, settings=settings, prepare=prepare))
    graph.add_node(
        "intent",
        RoleNode(
            "intent",
            ask=lambda state: {"question": state["question"], "problem": ""},
            role=intent.GuardedIntent(wrapped("intent", backend.intent, Intent)),
            record=intent.record,
            on_failure=intent.on_failure,
            run_name=lambda state: "recognise intent",
            tell=tell,
        ),
    )
    planner = score.Planner(
        judge=judge,
        settings=settings,
        evidence=evidence,
        has_cache=cache is not None,
    )
    graph.add_node("plan", planner.plan, destinations=("score", "select"))
    graph.add_node(
        "score",
        RoleNode(
            "score",
            ask=lambda task: task["batch"],  # never an id, a place or a label
            role=_checked_judge(judge, limiter=limiter, cache=cache, backend=backend),
            record=score.record,
            on_failure=score.on_failure,
            run_name=score.name_run,
            tell=tell,
        ),
    )
    select_node = partial(
        select,
        settings=settings,
        evidence=evidence,
        names_evidence=backend.names_evidence,
        judge=judge,
    )
    graph.add_node("select", announced("select", select_node))
    graph.add_node(
        "summarize",
        RoleNode(
            "summarize",
            ask=lambda task: task["task"],
            role=wrapped("summarizer", backend.summarizer, Summary),
            record=summarize.record,
            on_failure=summarize.on_failure,
            run_name=lambda task: f"summarize {task['index'] + 1}",
            tell=tell,
        ),
    )
    graph.add_node("collect", partial(collect, settings=settings))

    graph.add_edge(START, "receive")
    graph.add_conditional_edges(  # nothing to judge needs no call at all
        "receive",
        Edge(lambda state, _: "intent" if state["passages"] else "select"),
        ["intent", "select"],
    )
    graph.add_conditional_edges("intent", Edge(planner.start), ["score", "select", "plan"])
    graph.add_edge("score", "plan")  # waits for every branch
    graph.add_conditional_edges(
        "select",
        Edge(lambda state, _: summarize.any_kept(state, settings=settings)),
        ["summarize", "collect", "abstain" if settings.answer else END],
    )
    graph.add_edge("summarize", "collect")
    if not settings.answer or backend.answerer is None:
        graph.add_edge("collect", END)
    else:
        graph.add_node(
            "answer",
            RoleNode(
                "answer",
                ask=answer.ask,
                role=wrapped("answerer", backend.answerer, Answer),
                record=answer.record,
                on_failure=answer.on_failure,
                run_name=lambda state: "answer",
                tell=tell,
            ),
        )
        graph.add_node("abstain", announced("answer", answer.abstain))
        graph.add_conditional_edges(
            "collect",
            Edge(lambda state, _: "answer" if answer.answerable_records(state) else "abstain"),
            ["answer", "abstain"],
        )
        graph.add_edge("answer", END)
        graph.add_edge("abstain", END)
    compiled = graph.compile(checkpointer=checkpointer, name="DeepEra")
    compiled.nodes[START].mapper = check_keys
    return compiled


def check_parts(backend: Backend, settings: Settings, cache: JudgementCache | None) -> None:
    """Refuse what no graph can be made of."""
    if settings.answer and backend.answerer is None:
        raise SettingsError(f"answer is on, but backend {backend.name!r} has no answerer")
    if cache is not None:
        if not isinstance(cache, JudgementCache):
            raise SettingsError(
                f"cache must be a JudgementCache, e.g. JudgementCache(Path('judgements.db')), "
                f"got {cache!r:.80}"
            )
        backend.fingerprint()  # it says why, if a backend cannot be told from others


def with_threshold(settings: Settings, judge: Judge) -> Settings:
    """Return settings with a threshold: that of the judge, if they name none."""
    if judge.evidence_point is not None:
        check_share("evidence_point of the judge", judge.evidence_point)
    if settings.threshold is not None:
        return settings
    check_share("operating_point of the judge", judge.operating_point)
    return replace(settings, threshold=judge.operating_point)


def _checked_judge(
    judge: Judge, *, limiter: Limiter, cache: JudgementCache | None, backend: Backend
) -> Runnable[Batch, list[Verdict]]:
    """Do what `wrap_role` does with a judge; its verdicts are cached window by window."""
    checked = score.CheckedJudge(judge, limiter)
    if cache is None:
        return checked
    return CachedBatches(checked, cache=cache, fingerprint=backend.fingerprint())
