"""The local roles as LangChain runnables: each calls its rule at once, with no thread between."""

from typing import Self, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.backends.local.answer import answer
from deepera_graph.backends.local.intent import recognize
from deepera_graph.backends.local.judge import judge
from deepera_graph.backends.local.summary import summarize
from deepera_graph.roles import AnswerTask, IntentTask, PassageTask
from deepera_graph.schema import Answer, Intent, Judgement, Summary

TaskT = TypeVar("TaskT")
AnswerT = TypeVar("AnswerT")


class LocalRole(Runnable[TaskT, AnswerT]):
    """A role that makes no calls."""

    def counting(self) -> Self:
        """Return this role itself: asking it costs nothing."""
        return self


class RulesIntent(LocalRole[IntentTask, Intent]):
    """Reads a question with word lists."""

    def invoke(
        self, input: IntentTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Intent:
        """Recognise the intent."""
        return recognize(input)

    async def ainvoke(
        self, input: IntentTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Intent:
        """Recognise the intent in the running loop."""
        return recognize(input)


class RulesJudge(LocalRole[PassageTask, Judgement]):
    """Scores a passage by rules."""

    def invoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Judgement:
        """Judge the passage."""
        return judge(input)

    async def ainvoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Judgement:
        """Judge the passage in the running loop."""
        return judge(input)


class ExtractiveSummarizer(LocalRole[PassageTask, Summary]):
    """Picks a passage's own best sentences."""

    def invoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Summary:
        """Summarize the passage."""
        return summarize(input)

    async def ainvoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Summary:
        """Summarize the passage in the running loop."""
        return summarize(input)


class QuotingAnswerer(LocalRole[AnswerTask, Answer]):
    """Answers with the evidence sentences themselves."""

    def invoke(
        self, input: AnswerTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Answer:
        """Answer the question."""
        return answer(input)

    async def ainvoke(
        self, input: AnswerTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Answer:
        """Answer the question in the running loop."""
        return answer(input)
