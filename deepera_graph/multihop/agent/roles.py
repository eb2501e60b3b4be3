"""Who plans, answers, samples, compares and concludes: the roles of the agent, played by a model.

Every role is a LangChain `Runnable`, given plain data and giving a `RoleAnswer`, so that a function
can stand in for any of them. None sees an id, a score or the place of a passage.
"""

from dataclasses import dataclass
from typing import Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from deepera_graph.agents.role import LlmRole, fill_messages
from deepera_graph.chat.client import request_reply
from deepera_graph.chat.parsing import Number, ReplyModel, sanitize_line, schemas_hash
from deepera_graph.errors import SettingsError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.backend import LlmKwargs, open_roles_model
from deepera_graph.multihop.path import (
    CitedText,
    EvidenceText,
    PathStep,
    ShownEvidence,
    Support,
    path_block,
)
from deepera_graph.multihop.settings import Label
from deepera_graph.prompts import Domain, prompts_hash
from deepera_graph.schema import Backend, RoleAnswer, RoleSet

SAMPLE_TEMPERATURE = 0.3  # of the authors' code, VenkteshV/SUNAR, `run_sunar.py`
NODES = ("decompose", "reply", "sample", "entail", "reason")


class HopPlanTask(TypedDict):
    """What the planner is given; `steps_left` >= 1 is how many may still be asked."""

    question: str
    path: list[PathStep]
    steps_left: int


class Plan(RoleAnswer):
    """What to ask next (SUNAR, section on decomposition).

    Sub-questions are numbered on from the path; ``#2`` in one stands for the answer of step 2, and
    it waits for that step. Those that wait are given up where a step has no answer.
    """

    questions: list[str] = Field(description="Sub-questions to ask, in their order.")
    is_retry: bool = Field(
        default=False,
        description="Whether they ask again, in other words, for what a step did not find.",
    )
    is_complete: bool = Field(
        default=False, description="Whether nothing is to be asked once these have answers."
    )
    thought: str = Field(default="", description="What is known, and what is still open.")


class ReplyTask(TypedDict):
    """What answers a step: its question and the passages found for it, best first, at least one."""

    question: str
    evidence: list[EvidenceText]


class StepAnswer(RoleAnswer):
    """The answer of one step; empty when the passages do not have it."""

    text: str = Field(description="As short as the question allows; empty if there is none.")
    cited: list[CitedText] = Field(default_factory=list, description="What carries it.")
    support: Support = Field(default="proven", description="How well the passages support it.")
    reason: str = Field(default="", description="Why, in a few words.")


class SampleTask(ReplyTask):
    """What one of several sampled answers is drawn from; `sample` is its number from 1."""

    sample: int


class Sample(RoleAnswer):
    """One sampled answer."""

    text: str = Field(description="The short answer alone.")


class EntailTask(TypedDict):
    """Two answers to a question."""

    question: str
    premise: str
    hypothesis: str


class Entailment(RoleAnswer):
    """What the first of two answers says about the second."""

    label: Label = Field(description="What follows for the second, if the first is right.")


class ReasonTask(TypedDict):
    """What the question is answered from in the end (SUNAR, meta evidence reasoner)."""

    question: str
    path: list[PathStep]
    evidence: list[EvidenceText]


class Correction(BaseModel):
    """Another answer for a step of the path."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    step: int = Field(ge=1, description="Which step, counted from 1.")
    answer: str = Field(description="What it should be.")


class Conclusion(RoleAnswer):
    """The answer to the question itself; empty if the evidence does not suffice."""

    text: str = Field(description="As short as the question allows; empty if there is none.")
    cited: list[CitedText] = Field(default_factory=list, description="What carries it.")
    support: Support = Field(default="proven", description="How well the evidence supports it.")
    corrections: list[Correction] = Field(default_factory=list, description="Steps that err.")
    check: str = Field(default="", description="What of the path holds, and what does not.")


@dataclass(frozen=True, kw_only=True)
class MultiHopBackend(RoleSet):
    """The roles of the agent.

    `dataclasses.replace` puts a function in the place of any of them:
    ``replace(multihop_backend("openai:gpt-5-mini"), planner=RunnableLambda(my_planner))``.

    Attributes:
        name: Short name for people.
        planner: Says what to ask next.
        replier: Answers one step from its passages.
        reasoner: Answers the question from the path and all evidence.
        sampler: Draws one answer, at a temperature above 0; None if uncertainty is not measured.
        entailer: Compares two answers; None if only normalised answers are compared.
        about: What the manifest records: model, prompt hash.
        spec: Plain data that tells these roles from all others; None if they are live objects.
    """

    planner: Runnable[HopPlanTask, Plan]
    replier: Runnable[ReplyTask, StepAnswer]
    reasoner: Runnable[ReasonTask, Conclusion]
    sampler: Runnable[SampleTask, Sample] | None = None
    entailer: Runnable[EntailTask, Entailment] | None = None


def multihop_backend(
    model: Backend | BaseChatModel | str,
    *,
    sample_temperature: float = SAMPLE_TEMPERATURE,
    **how_to_ask: Unpack[LlmKwargs],
) -> MultiHopBackend:
    """Have a chat model plan, answer, sample, compare and conclude.

    Args:
        model: A LangChain chat model, or its name, ``provider:model``; or the backend that
            `llm_backend` made of one.
        sample_temperature: At which answers are sampled, > 0; a model that takes no temperature
            samples at its own.
        how_to_ask: `base_url`, `api_key_env`, `retry`, `limits` and `domain`, as for
            `llm_backend`; the rules of a domain for answers are those of the steps, too.

    Raises:
        SettingsError: The model cannot be made, or the temperature is not above 0.
    """
    if not sample_temperature > 0:
        raise SettingsError(f"sample_temperature must be > 0, got {sample_temperature!r}")
    needed = (
        "questions of several hops need a chat model, and backend {name} has none; "
        "without one, `expand_hops` finds the passages"
    )
    chat, domain, spec = open_roles_model(model, needed=needed, **how_to_ask)
    if spec is not None:
        spec = {**spec, "sampled_at": sample_temperature}
    return MultiHopBackend(
        name="llm",
        planner=LlmPlanner(chat, domain),
        replier=LlmReplier(chat, domain),
        reasoner=LlmReasoner(chat, domain),
        sampler=LlmSampler(chat.with_temperature(sample_temperature), domain),
        entailer=LlmEntailer(chat, domain),
        about={
            "model": chat.name,
            "prompts": prompts_hash(*NODES),
            "schemas": schemas_hash(_FILLED),
        },
        spec=spec,
    )


class PlanReply(ReplyModel):
    """What to ask next; the thought comes first, so that the questions follow from it."""

    thought: str = Field(description="What is known and what is open, in at most 40 words.")
    questions: list[str] = Field(description="The sub-questions; empty if none is needed.")
    is_retry: bool = Field(description="Whether they ask again for what a step did not find.")
    is_complete: bool = Field(description="Whether their answers are all that is needed.")


class StepReply(ReplyModel):
    """The answer of a step."""

    reason: str = Field(description="Why, in at most 25 words.")
    answer: str = Field(description="The answer alone; empty if the passages do not have it.")
    evidence: list[Number] = Field(description="Numbers of the sentences that carry the answer.")
    support: Support = Field(description="proven, likely or none.")


class SampleReply(ReplyModel):
    """A sampled answer."""

    reason: str = Field(description="Reasoning, in at most 40 words.")
    answer: str = Field(description='The answer alone, or "unknown".')


class EntailReply(ReplyModel):
    """What one answer says about another."""

    label: Label = Field(description="What the first says about the second.")


class CorrectionReply(ReplyModel):
    """Another answer for a step."""

    step: Number = Field(description="The number of the step.")
    answer: str = Field(description="The right answer.")


class ReasonReply(ReplyModel):
    """The answer to the whole question; what was checked comes first."""

    check: str = Field(description="What of the path holds, in at most 60 words.")
    corrections: list[CorrectionReply] = Field(description="Steps that are wrong.")
    answer: str = Field(description="The answer alone; empty if the evidence does not suffice.")
    evidence: list[Number] = Field(description="Numbers of the sentences that carry the answer.")
    support: Support = Field(description="proven, likely or none.")


_FILLED = (PlanReply, StepReply, SampleReply, EntailReply, ReasonReply)


def fill_plan(node: str, task: HopPlanTask, path: str) -> list[BaseMessage]:
    """Fill the templates of a role that says what to ask next."""
    question = show.one_line(task["question"])
    asked = {"question": question, "steps_left": str(task["steps_left"]), "path": path}
    return fill_messages(None, node, (), **asked, marker=show.marker(path, question))


class LlmPlanner(LlmRole[HopPlanTask, Plan]):
    """Says what to ask next."""

    async def _play(self, task: HopPlanTask, config: RunnableConfig | None) -> Plan:
        messages = fill_plan("decompose", task, path_block(task["path"], causes=True))
        said, notes = await request_reply(self.model, messages, PlanReply, config)
        return Plan(
            questions=[sanitize_line(one) for one in said.questions if one.strip()],
            is_retry=said.is_retry,
            is_complete=said.is_complete,
            thought=sanitize_line(said.thought),
            **notes,
        )


def _show(domain: Domain | None, node: str, shown: ShownEvidence, **more: str) -> list[BaseMessage]:
    """Fill the templates of a role that answers from evidence."""
    asked = {"question": shown.question, "marker": shown.marker, "evidence": shown.block}
    return fill_messages(domain, node, ("answer",), **asked, **more)


class LlmReplier(LlmRole[ReplyTask, StepAnswer]):
    """Answers one step."""

    async def _play(self, task: ReplyTask, config: RunnableConfig | None) -> StepAnswer:
        shown = ShownEvidence(task)
        messages = _show(self.domain, "reply", shown)
        said, notes = await request_reply(self.model, messages, StepReply, config)
        return StepAnswer(
            text=sanitize_line(said.answer),
            cited=shown.cited(said.evidence),
            support=said.support,
            reason=sanitize_line(said.reason),
            **notes,
        )


class LlmSampler(LlmRole[SampleTask, Sample]):
    """Draws one answer."""

    async def _play(self, task: SampleTask, config: RunnableConfig | None) -> Sample:
        shown = ShownEvidence(task)
        messages = _show(self.domain, "sample", shown)
        reply, notes = await request_reply(self.model, messages, SampleReply, config)
        return Sample(text=sanitize_line(reply.answer), **notes)


class LlmEntailer(LlmRole[EntailTask, Entailment]):
    """Compares two answers."""

    async def _play(self, task: EntailTask, config: RunnableConfig | None) -> Entailment:
        shown = {name: show.one_line(str(value)) for name, value in task.items()}
        marker = show.marker("\n".join(shown.values()))
        messages = fill_messages(None, "entail", (), **shown, marker=marker)
        reply, notes = await request_reply(self.model, messages, EntailReply, config)
        return Entailment(label=reply.label, **notes)


class LlmReasoner(LlmRole[ReasonTask, Conclusion]):
    """Answers the question from the path and all evidence."""

    async def _play(self, task: ReasonTask, config: RunnableConfig | None) -> Conclusion:
        path = path_block(task["path"])
        shown = ShownEvidence(task, path)
        messages = _show(self.domain, "reason", shown, path=path)
        said, notes = await request_reply(self.model, messages, ReasonReply, config)
        n_steps = len(task["path"])
        return Conclusion(
            text=sanitize_line(said.answer),
            cited=shown.cited(said.evidence),
            support=said.support,
            corrections=[
                Correction(step=one.step, answer=sanitize_line(one.answer))
                for one in said.corrections
                if 1 <= one.step <= n_steps
            ],
            check=sanitize_line(said.check),
            **notes,
        )
