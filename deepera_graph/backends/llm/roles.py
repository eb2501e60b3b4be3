"""The four roles played by a chat model; each is one call, two if the first reply is unusable."""

from collections.abc import Coroutine
from typing import Any, Generic, Self, TypeVar

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph import prompts
from deepera_graph.backends.llm import harmless, io_loop, show
from deepera_graph.backends.llm.answers import (
    FilledAnswer,
    FilledIntent,
    FilledJudgement,
    FilledSummary,
)
from deepera_graph.backends.llm.counting import CountingModel
from deepera_graph.backends.llm.model import ChatModel
from deepera_graph.backends.llm.pace import Limits
from deepera_graph.backends.llm.patience import Patience
from deepera_graph.backends.llm.structured import Filling, fill
from deepera_graph.domains import Domain
from deepera_graph.roles import AnswerTask, IntentTask, PassageTask
from deepera_graph.schema import Answer, Intent, Judgement, Summary

TaskT = TypeVar("TaskT")
AnswerT = TypeVar("AnswerT")


class LoopRole(Runnable[TaskT, AnswerT], Generic[TaskT, AnswerT]):
    """A role whose work runs in the loop of the model calls."""

    def invoke(self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any) -> AnswerT:
        """Play the role, waiting in this thread."""
        return io_loop.run(self._play(input, config))

    async def ainvoke(
        self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AnswerT:
        """Play the role, waiting in the running loop."""
        return await io_loop.arun(self._play(input, config))

    def _play(self, task: TaskT, config: RunnableConfig | None) -> Coroutine[Any, Any, AnswerT]:
        raise NotImplementedError


class LlmRole(LoopRole[TaskT, AnswerT], Generic[TaskT, AnswerT]):
    """A role played by a chat model."""

    def __init__(self, model: ChatModel, domain: Domain | None = None) -> None:
        self._model, self._domain = model, domain

    @property
    def model(self) -> ChatModel:
        """The model that plays the role."""
        return self._model

    def counting(self) -> Self:
        """Return this role on a model that counts its prompts and is never asked."""
        return type(self)(ChatModel(CountingModel(), Patience(), Limits()), self._domain)

    def _messages(self, node: str, /, **values: str) -> list[BaseMessage]:
        """Fill the templates of a node, with the rules of the field."""
        filled = prompts.messages(node, **values)
        return self._domain.added_to(node, filled) if self._domain else filled


class LlmIntent(LlmRole[IntentTask, Intent]):
    """Reads a question."""

    async def _play(self, task: IntentTask, config: RunnableConfig | None) -> Intent:
        useless = show.one_line(task["problem"]).replace("entity_type", "entities")
        problem = f"\n\nYour first reading was useless: {useless}" if task["problem"] else ""
        messages = self._messages(
            "intent", question=show.one_line(task["question"]), problem=problem
        )
        filled = await fill(self._model, messages, FilledIntent, config)
        return Intent(**filled.answer.model_dump(), **how(filled))


class LlmJudge(LlmRole[PassageTask, Judgement]):
    """Scores one passage; the evidence is named by sentence number and cut out by us."""

    async def _play(self, task: PassageTask, config: RunnableConfig | None) -> Judgement:
        sentences = show.sentences_of(task)
        values = show.passage_values(task, show.numbered(sentences))
        filled = await fill(self._model, self._messages("score", **values), FilledJudgement, config)
        return Judgement(
            score=filled.answer.score,
            reason=harmless.one_line(filled.answer.reason),
            quote=show.quoted(task["text"], sentences, filled.answer.evidence),
            **how(filled),
        )


class LlmSummarizer(LlmRole[PassageTask, Summary]):
    """Shortens one kept passage."""

    async def _play(self, task: PassageTask, config: RunnableConfig | None) -> Summary:
        values = show.passage_values(task, show.plain(task["text"]))
        filled = await fill(
            self._model, self._messages("summarize", **values), FilledSummary, config
        )
        return Summary(text=summary_of(filled.answer.text), **how(filled))


class LlmAnswerer(LlmRole[AnswerTask, Answer]):
    """Answers from the kept evidence."""

    async def _play(self, task: AnswerTask, config: RunnableConfig | None) -> Answer:
        block = show.evidence_block(task["evidence"])
        question = show.one_line(task["question"])
        form = show.intent_values(task["intent"])["expected_answer_type"]
        messages = self._messages(
            "answer",
            question=question,
            expected_answer_type=form,
            marker=show.marker(block, question, form),
            evidence=block,
        )
        filled = await fill(self._model, messages, FilledAnswer, config)
        return Answer(
            text=filled.answer.text,
            citations=filled.answer.citations,
            **how(filled),
        )


def summary_of(said: str) -> str:
    """Return a summary; one that says NONE is empty."""
    text = said.strip()
    return "" if text.upper() in {"NONE", "NONE."} else text


def how(filled: Filling[Any]) -> dict[str, Any]:
    """Return what is noted of an answer beside its content."""
    return {"usage": filled.usage, "repaired": filled.repaired, "problem": filled.problem}
