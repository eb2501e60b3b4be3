"""The whole pipeline.

receive -> intent -> survey, if the backend has a surveyor -> score (one branch a passage, or a
group of them) -> select -> summarize (one branch a kept passage that its judge has not summarized)
-> collect -> answer, if asked for. Nothing kept: select -> abstain or the end. In waves: score ->
wave -> score, until nothing is left or the rest is not asked about -> select.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from deepera_graph.cache.role import CachedGroups, CachedRole
from deepera_graph.cache.store import JudgementCache
from deepera_graph.concurrency import Limiter
from deepera_graph.errors import SettingsError
from deepera_graph.pipeline import answer, intent, score, summarize, survey
from deepera_graph.pipeline import score as score_group
from deepera_graph.pipeline import score as wave
from deepera_graph.pipeline.call import CheckedRole, RoleNode, announced
from deepera_graph.pipeline.edges import (
    any_kept,
    any_passages,
    any_windows,
    last_step,
    next_wave,
    one_per_group,
    one_per_window,
    place_of_passage,
    text_of,
)
from deepera_graph.pipeline.intent import receive
from deepera_graph.pipeline.select import collect, select
from deepera_graph.pipeline.state import Output, Question, State, Update
from deepera_graph.schema import (
    Answer,
    Backend,
    GroupJudgement,
    GroupTask,
    Intent,
    Judgement,
    JudgesGroups,
    PassageTask,
    ReadsAhead,
    RoleAnswer,
    Summary,
    Survey,
    gives_summaries,
    takes_place_of,
)
from deepera_graph.settings import Settings

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph


MappingT = TypeVar("MappingT", bound=Mapping[str, Any])
AnswerT = TypeVar("AnswerT", bound=RoleAnswer)


def checked_role(
    name: str,
    role: Runnable[MappingT, Any],
    schema: type[AnswerT],
    *,
    limiter: Limiter,
    cache: JudgementCache | None,
    backend: Backend,
    find_problem: Callable[[MappingT, AnswerT], str] = lambda task, answer: "",
) -> Runnable[MappingT, AnswerT]:
    """Return a role that is checked and limited, behind the cache if there is one.

    What does not fit its task, by *find_problem*, is no answer, and is not cached.

    Raises:
        SettingsError: There is a cache, and the backend cannot be told from others.
    """
    checked = CheckedRole(role, schema, limiter, find_problem=find_problem)
    if cache is None:
        return checked
    return CachedRole(
        checked, name=name, schema=schema, cache=cache, fingerprint=backend.fingerprint()
    )


def checked_groups(
    judge: JudgesGroups, *, limiter: Limiter, cache: JudgementCache | None, backend: Backend
) -> Runnable[GroupTask, GroupJudgement]:
    """Do what `checked_role` does with the role that judges groups; cached passage by passage.

    Raises:
        SettingsError: There is a cache, and the backend cannot be told from others.
    """
    role = CheckedRole(
        judge.of_groups(), GroupJudgement, limiter, find_problem=score_group.find_problem
    )
    if cache is None:
        return role
    single: CachedRole[PassageTask, Judgement] = CachedRole(
        CheckedRole(backend.judge, Judgement, limiter),
        name="judge",
        schema=Judgement,
        cache=cache,
        fingerprint=backend.fingerprint(),
    )
    return CachedGroups(role, single)


Edge = Callable[[State], Sequence[Send] | str]


def score_edge(backend: Backend, settings: Settings) -> Edge:
    """Return the edge to the judge; in waves it is asked again after each, for the next one.

    A wave holds whole groups: a judge of groups of 10 is sent 10 texts where 8 are asked for.
    """
    judge, size = backend.judge, settings.passages_a_round
    takes_place = takes_place_of(judge)
    edge = partial(one_per_window, settings=settings, with_summaries=gives_summaries(judge))
    wave = partial(next_wave, place_of=place_of_passage, takes_place=takes_place)
    if isinstance(judge, JudgesGroups):
        n = judge.group_size
        edge = partial(one_per_group, group_size=n, takes_place=takes_place, **edge.keywords)
        wave = partial(next_wave, place_of=text_of, takes_place=takes_place)
        size = size and -(-size // n) * n
    return edge if size is None else partial(edge, choose=partial(wave, size=size))


def score_node(
    backend: Backend, *, limiter: Limiter, cache: JudgementCache | None
) -> RoleNode[Any, Any, Any]:
    """Return the node that judges a window, or a group of them.

    Raises:
        SettingsError: There is a cache, and the backend cannot be told from others.
    """
    if isinstance(backend.judge, JudgesGroups):
        return RoleNode(
            "score",
            ask=score_group.ask_group,
            role=checked_groups(backend.judge, limiter=limiter, cache=cache, backend=backend),
            record=score_group.record_group,
            rescue=score_group.rescue_group,
            run_name=lambda group: f"score {len(group['members'])} passages",
        )
    role = checked_role(
        "judge", backend.judge, Judgement, limiter=limiter, cache=cache, backend=backend
    )
    return RoleNode(
        "score",
        ask=score.ask,
        role=role,
        record=score.record,
        rescue=score.rescue,
        run_name=lambda task: f"score {task['index'] + 1}",
    )


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
    if settings.passages_a_round is None:
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
