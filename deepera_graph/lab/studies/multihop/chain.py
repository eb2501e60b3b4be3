"""A chain of guesses that passages verify: a comparator in the way of SearChain.

The chat model writes the whole chain of sub-questions with its own answers. Each is searched for;
what the passages say takes the place of the guess, and where they say nothing the guess stays.

Source:
    Xu, Pang, Shen, Cheng and Chua (2024), Search-in-the-Chain. Like it, but for what is corrected:
    later sub-questions take the corrected answer, where SearChain has the rest of the chain written
    anew.
"""

import re
from dataclasses import replace

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import Field

from deepera_graph.agents.role import LlmRole, fill_messages, how
from deepera_graph.chat.parsing import ReplyModel, sanitize_line
from deepera_graph.chat.structured import request_reply
from deepera_graph.errors import SettingsError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.multihop.agent.roles import (
    HopPlanTask,
    MultiHopBackend,
    Plan,
    ReplyTask,
    StepAnswer,
)
from deepera_graph.multihop.path import path_block

_NUMBER = re.compile(r"\\#\d+")  # of a step, after `re.escape`


class LinkReply(ReplyModel):
    """One link of the chain."""

    question: str = Field(description="The sub-question.")
    answer: str = Field(description="Your own answer; empty if you have none.")


class ChainReply(ReplyModel):
    """The chain."""

    links: list[LinkReply] = Field(description="The links, in their order.")


class ChainPlanner(LlmRole[HopPlanTask, Plan]):
    """Writes a chain, and keeps its guesses; for one question, as guesses are of that."""

    guesses: dict[str, str]

    async def _play(self, task: HopPlanTask, config: RunnableConfig | None) -> Plan:
        question, path = show.one_line(task["question"]), path_block(task["path"])
        messages = fill_messages(
            None,
            "chain",
            (),
            question=question,
            steps_left=str(task["steps_left"]),
            marker=show.marker(path, question),
            path=path,
        )
        filled = await request_reply(self.model, messages, ChainReply, config)
        links = [one for one in filled.answer.links if one.question.strip()]
        self.guesses |= {_pattern(one.question): sanitize_line(one.answer) for one in links}
        asked = [sanitize_line(one.question) for one in links]
        return Plan(questions=asked, is_complete=True, **how(filled))

    def guess(self, question: str) -> str:
        """Return the model's own answer to a sub-question; empty if it has none."""
        found = (one for one in self.guesses if re.fullmatch(one, question))
        return next((self.guesses[one] for one in found), "")


def _pattern(question: str) -> str:
    """Return what a sub-question matches once the answers of others stand in it."""
    return _NUMBER.sub(".+", re.escape(sanitize_line(question)))


def chain_backend(backend: MultiHopBackend) -> MultiHopBackend:
    """Return the roles of a chain of guesses, for one question.

    Raises:
        SettingsError: No chat model plans, so that none can guess.
    """
    if not isinstance(backend.planner, LlmRole):
        raise SettingsError(f"a chain of guesses needs a chat model, got {backend.name!r}")
    planner = ChainPlanner(backend.planner.model)
    planner.guesses = {}
    replier: Runnable[ReplyTask, StepAnswer] = backend.replier

    def fill(task: ReplyTask, answer: StepAnswer) -> StepAnswer:
        guess = planner.guess(task["question"])
        if not guess or (answer.text and answer.support != "none"):
            return answer
        told = {"text": guess, "support": "likely", "cited": [], "reason": "no passage says so"}
        return answer.model_copy(update=told)

    def reply(task: ReplyTask, config: RunnableConfig) -> StepAnswer:
        return fill(task, replier.invoke(task, config))

    async def areply(task: ReplyTask, config: RunnableConfig) -> StepAnswer:
        return fill(task, await replier.ainvoke(task, config))

    return replace(
        backend,
        planner=planner,
        replier=RunnableLambda(reply, afunc=areply),
        spec=None,  # guesses are live, so that no reply of these roles is kept for another question
    )
