"""The agent for questions of several hops, as a LangGraph state machine.

receive -> plan -> retrieve (one branch a sub-question) -> gather -> reply (one branch a
sub-question with passages) -> gather -> retrieve (what waited for an answer), reply (what was not
read yet) or plan ... -> reason. Nothing found at all: -> abstain.

Source:
    SUNAR (Venktesh, Rathee and Anand): decomposition, neighbourhood-aware retrieval for each
    sub-question, answers on the way, and a meta evidence reasoner at the end.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from deepera_graph.agents.role import RoleNode, wrap_role
from deepera_graph.agents.run import AgentRun, Event, made_by, make_manifest
from deepera_graph.multihop.agent import steps
from deepera_graph.multihop.agent.roles import (
    Conclusion,
    MultiHopBackend,
    Plan,
    StepAnswer,
    multihop_backend,
)
from deepera_graph.multihop.agent.state import (
    MultiHopInput,
    MultiHopOutput,
    MultiHopResult,
    MultiHopState,
)
from deepera_graph.multihop.agent.step_search import RetrieveStep, measuring
from deepera_graph.multihop.settings import MultiHopKwargs, MultiHopSettings
from deepera_graph.passages import check_question
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.schema import Backend
from deepera_graph.settings.budget import Limiter
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.stores.words import name_passage

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

Find = Callable[[str], Sequence[Document]]
_STEPS_A_ROUND = 3  # plan, retrieve, gather; and two, reply and gather, for each reading
_STEPS_APART = 8  # receive, the last plan, reason, the end, and some to spare


def build_multihop_graph(
    backend: MultiHopBackend | Backend | BaseChatModel | str,
    retriever: Any,
    settings: MultiHopSettings | Mapping[str, Any] | None = None,
    *,
    judge: EvidenceReranker | None = None,
    checkpointer: "BaseCheckpointSaver[Any] | bool | None" = None,
    cache: JudgementCache | None = None,
) -> "CompiledStateGraph[MultiHopState, None, MultiHopInput, MultiHopOutput]":
    """Compile the agent for one backend and one retriever.

    In goes a `question`; out come the `steps` of the path, the `answer`, the `evidence` that it was
    drawn from, and why the path `stopped`.

    Args:
        backend: The roles, or the chat model that plays all of them.
        retriever: Where the passages of a sub-question are looked for: a LangChain retriever or
            vector store, a passage store, or a function of the sub-question.
        settings: How far the agent goes: `MultiHopSettings`, or some of them by name.
        judge: Keeps of the passages of a step those that give evidence, told the earlier answers of
            the path; None keeps what the retriever found, in its order.
        checkpointer: As for `StateGraph.compile`.
        cache: Where replies are kept; none are if None.

    Raises:
        SettingsError: The backend cannot be built, the retriever cannot be searched, a setting is
            out of range, or uncertainty is wanted and cannot be measured.
    """
    roles = as_multihop_backend(backend)
    chosen = MultiHopSettings.of(settings)
    wrapped = partial(
        wrap_role,
        limiter=Limiter(chosen.max_concurrency),
        cache=cache,
        fingerprint=roles.fingerprint,
    )

    graph = StateGraph(MultiHopState, input_schema=MultiHopInput, output_schema=MultiHopOutput)
    graph.add_node("receive", steps.receive)
    graph.add_node(
        "plan",
        RoleNode(
            "plan",
            ask=partial(steps.ask_plan, settings=chosen),
            role=wrapped("planner", roles.planner, Plan),
            record=partial(steps.record_plan, settings=chosen),
            on_failure=steps.plan_failed,
            run_name=lambda state: f"plan from step {len(state['steps']) + 1}",
        ),
    )
    graph.add_node(
        "retrieve",
        RetrieveStep(
            retriever,
            judge=judge,
            settings=chosen,
            uncertainty=measuring(roles, chosen, wrapped, retriever),
        ),
    )
    graph.add_node("gather", steps.gather)
    graph.add_node(
        "reply",
        RoleNode(
            "reply",
            ask=partial(steps.ask_reply, settings=chosen),
            role=wrapped("replier", roles.replier, StepAnswer),
            record=partial(steps.record_reply, settings=chosen),
            on_failure=steps.reply_failed,
            run_name=lambda task: f"answer step {task['step']['number']}",
        ),
    )
    graph.add_node(
        "reason",
        RoleNode(
            "reason",
            ask=partial(steps.ask_reason, settings=chosen),
            role=wrapped("reasoner", roles.reasoner, Conclusion),
            record=partial(steps.record_conclusion, settings=chosen),
            on_failure=partial(steps.reason_failed, settings=chosen),
            run_name=lambda state: "answer from the path",
        ),
    )
    graph.add_node("abstain", steps.abstain)

    onward = partial(steps.next_steps, settings=chosen)
    graph.add_edge(START, "receive")
    graph.add_edge("receive", "plan")
    graph.add_conditional_edges("plan", onward, ["retrieve", "plan", "reason", "abstain"])
    graph.add_edge("retrieve", "gather")  # waits for every branch
    graph.add_conditional_edges(
        "gather",
        partial(steps.next_replies, settings=chosen),
        ["reply", "retrieve", "plan", "reason", "abstain"],
    )
    graph.add_edge("reply", "gather")
    graph.add_edge("reason", END)
    graph.add_edge("abstain", END)
    return graph.compile(checkpointer=checkpointer, name="DeepEra multihop")


def as_multihop_backend(given: MultiHopBackend | Backend | BaseChatModel | str) -> MultiHopBackend:
    """Return roles as they are, and those of a chat model."""
    return given if isinstance(given, MultiHopBackend) else multihop_backend(given)


class MultiHopAgent:
    """Answers questions whose evidence lies in several passages that no single search finds.

    ``MultiHopAgent("openai:gpt-5-mini", store, max_steps=6).solve(question).text``

    Args:
        backend: The roles, `multihop_backend`; or the chat model that is to play all of them, its
            name, or a backend of it.
        retriever: Where passages are looked for: an `AdaptiveRetriever`, any LangChain retriever or
            vector store, a passage store, or a function of the question.
        judge: Keeps of the passages of a step those that give evidence; it is told the earlier
            answers. None keeps all that were found.
        checkpointer: A LangGraph saver that keeps the state after every step; needs a
            ``thread_id`` in the config.
        cache: Where replies are kept, so that an equal one is not paid for twice.
        settings: See `MultiHopSettings`: `max_steps`, `budget`, `uncertainty` and others.

    Raises:
        SettingsError: As `build_multihop_graph`.
    """

    def __init__(
        self,
        backend: MultiHopBackend | Backend | BaseChatModel | str,
        retriever: Any,
        *,
        judge: EvidenceReranker | None = None,
        checkpointer: "BaseCheckpointSaver[Any] | None" = None,
        cache: JudgementCache | None = None,
        **settings: Unpack[MultiHopKwargs],
    ) -> None:
        self.backend = as_multihop_backend(backend)
        self.settings = MultiHopSettings.of(settings)
        self._retriever, self._judge = retriever, judge
        self._has_saver = checkpointer is not None
        self.graph = build_multihop_graph(
            self.backend,
            retriever,
            self.settings,
            judge=judge,
            checkpointer=checkpointer,
            cache=cache,
        )

    def solve(
        self, question: str, *, config: RunnableConfig | None = None, resume: bool = False
    ) -> MultiHopResult:
        """Answer one question.

        Args:
            question: What is asked; not blank.
            config: A LangChain config: callbacks, tags, metadata, `max_concurrency`; with a
                checkpointer the ``thread_id``.
            resume: Whether to go on with what the checkpointer has of this thread: no call of a
                step that was finished is made again.

        Raises:
            InputError: The question is blank, or the thread to resume is of another one.
            SettingsError: There is no checkpointer to resume from, or the thread was begun by other
                roles or with other settings.
        """
        return _Run(self, question, config).finish(resume=resume)

    async def asolve(
        self, question: str, *, config: RunnableConfig | None = None, resume: bool = False
    ) -> MultiHopResult:
        """Do what `solve` does, in the running loop."""
        return await _Run(self, question, config).afinish(resume=resume)

    def stream(
        self, question: str, *, config: RunnableConfig | None = None, resume: bool = False
    ) -> Iterator[Event]:
        """Yield an event for every step that gets done; the last one holds the result.

        ``planned`` (the sub-questions; ``#1`` in one stands for the answer of a step), ``searched``
        (a step and the ids of its passages), ``step`` (the record of a step that was answered, or
        not), ``answered`` (the final record) and ``result``.
        """
        return _Run(self, question, config).stream(resume=resume)

    def astream(
        self, question: str, *, config: RunnableConfig | None = None, resume: bool = False
    ) -> AsyncIterator[Event]:
        """Do what `stream` does, in the running loop."""
        return _Run(self, question, config).astream(resume=resume)

    def most_calls(self) -> dict[str, int]:
        """Return the most model calls a question can take by role, if every reply is usable.

        With `uncertainty` every batch that the retriever scores takes m samples and, if the chat
        model compares them, up to m (m - 1) comparisons. What a judge or the scorer of the
        retriever asks is not counted here.
        """
        n, measure = self.settings.max_steps, self.settings.uncertainty
        most = {"plan": n, "reply": n * self.settings.readings, "reason": 1}
        if measure is not None:
            n_batches = -(-self._retriever.budget // self._retriever.batch_size)
            most |= measure.most_calls(n * n_batches)
        return most

    def made_by(self) -> str:
        """Return 16 hex digits that name the roles and how far they go, without any secret."""
        return made_by(self.backend, self.settings)


class _Run(AgentRun[MultiHopResult]):
    name, kind, begun = "DeepEra multihop", "agent", "steps"
    differs = "by other roles or with other settings"

    def __init__(self, agent: MultiHopAgent, question: str, config: RunnableConfig | None) -> None:
        check_question(question, ())
        self._agent, settings = agent, agent.settings
        a_round = _STEPS_A_ROUND + 2 * settings.readings
        super().__init__(
            agent.graph,
            {"question": question},
            config,
            settings,
            n_steps=a_round * settings.max_steps + _STEPS_APART,
            has_saver=agent._has_saver,
        )

    def made_by(self) -> str:
        return self._agent.made_by()

    def result(self) -> MultiHopResult:
        state, agent = self._state, self._agent
        if not state.get("answer"):
            raise RuntimeError("the graph ended without an answer")
        return MultiHopResult(
            question=state["question"],
            answer=state["answer"],
            steps=tuple(state["steps"]),
            evidence=tuple(state["evidence"]),
            stopped=state["stopped"],
            problems=tuple(state["problems"]),
            usage=self.usage,
            seconds=self.seconds,
            manifest=make_manifest(agent.backend, agent.settings),
        )

    def _told(self, node: str, update: Mapping[str, Any]) -> Iterator[Event]:
        opened = update.get("steps") or []
        if node == "plan":
            yield {
                "event": "planned",
                "questions": [*(one["question"] for one in opened), *update["pending"]],
                "thought": update.get("thought", ""),
                "stopped": update.get("stopped", ""),
            }
        if node == "retrieve":
            for one in opened:
                found = [name_passage(passage) for passage in one.get("passages", ())]
                yield {"event": "searched", "step": one["number"], "passages": found}
        for one in opened:
            if one.get("status") not in ("open", "found", None):
                yield {"event": "step", **{name: one[name] for name in one if name != "passages"}}
        if answer := update.get("answer"):
            yield {"event": "answered", **answer}
