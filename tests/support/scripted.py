"""A backend and a chat model of an agent whose answers are scripted."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import Field

from deepera_graph import Backend, Intent, Judgement, Summary
from deepera_graph.schema import IntentTask, PassageTask
from deepera_graph.testing import look_up

Scores = Mapping[str, float | Exception]
TEA_SCORES: Scores = {
    "lowered fasting": 0.93,
    "smaller rise in glucose": 0.88,
    "glucose fell": 0.85,
    "no difference in fasting": 0.81,
    "are debated": 0.43,
}


@dataclass
class Script:
    """Scores by what a text holds, and what was asked; every judgement takes *seconds*."""

    scores: Scores
    seconds: float = 0.0
    default: float = 0.1
    judged: list[str] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    lock: Lock = field(default_factory=Lock)

    def backend(self, spec: Mapping[str, Any] | None = None) -> Backend:
        judge: Runnable[PassageTask, Judgement] = RunnableLambda(self._judge, afunc=self._ajudge)
        return Backend(
            name="scripted",
            intent=RunnableLambda(_intent),
            judge=judge,
            summarizer=RunnableLambda(_summary),
            spec=spec,
        )

    def _judge(self, task: PassageTask) -> Judgement:
        with self._flight():
            time.sleep(self.seconds)
        return self._judgement(task["text"])

    async def _ajudge(self, task: PassageTask) -> Judgement:
        with self._flight():
            await asyncio.sleep(self.seconds)
        return self._judgement(task["text"])

    def _judgement(self, text: str) -> Judgement:
        self.judged.append(text)
        return Judgement(score=look_up(self.scores, text, self.default), reason="scripted")

    @contextmanager
    def _flight(self) -> Iterator[None]:
        with self.lock:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            yield
        finally:
            with self.lock:
                self.in_flight -= 1


def tea_backend() -> Backend:
    """The factory ``support.scripted:tea_backend``."""
    return Script(TEA_SCORES).backend()


def cracked_tea_backend() -> Backend:
    """The factory ``support.scripted:cracked_tea_backend``; it fails at one passage."""
    return Script({**TEA_SCORES, "in the morning": RuntimeError("out of order")}).backend()


def broken_backend() -> Backend:
    """The factory ``support.scripted:broken_backend``; it fails at every passage."""
    return Script({"": RuntimeError("out of order")}).backend()


def _intent(task: IntentTask) -> Intent:
    return Intent(
        topic="testing",
        entity_type=f"subject: {task['question']}",
        intent="causal inference",
        expected_answer_type="categorical",
    )


def _summary(task: PassageTask) -> Summary:
    return Summary(text=f"{task['text'].split('. ')[0].rstrip('.')}.")


class ScriptedAgentModel(BaseChatModel):
    """A chat model that gives one message after the other, and keeps what it was shown."""

    replies: list[AIMessage]
    shown: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted-agent"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> "ScriptedAgentModel":
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.shown.append(list(messages))
        reply = self.replies[len(self.shown) - 1]
        return ChatResult(generations=[ChatGeneration(message=reply)])
