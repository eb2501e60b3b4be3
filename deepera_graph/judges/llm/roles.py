"""A chat model in the roles of one reply each: it reads, summarizes and answers."""

from langchain_core.runnables import RunnableConfig

from deepera_graph.agents.role import LlmRole, how
from deepera_graph.chat.parsing import AnswerReply, IntentReply, SummaryReply
from deepera_graph.chat.structured import request_reply
from deepera_graph.judges.llm import prompt as show
from deepera_graph.schema import Answer, AnswerTask, Intent, IntentTask, PassageTask, Summary


class LlmIntent(LlmRole[IntentTask, Intent]):
    """Reads a question."""

    async def _play(self, task: IntentTask, config: RunnableConfig | None) -> Intent:
        useless = show.one_line(task["problem"]).replace("entity_type", "entities")
        problem = f"\n\nYour first reading was useless: {useless}" if task["problem"] else ""
        messages = self._messages(
            "intent", question=show.one_line(task["question"]), problem=problem
        )
        filled = await request_reply(self.model, messages, IntentReply, config)
        return Intent(**filled.answer.model_dump(), **how(filled))


class LlmSummarizer(LlmRole[PassageTask, Summary]):
    """Shortens one kept passage."""

    async def _play(self, task: PassageTask, config: RunnableConfig | None) -> Summary:
        values = show.passage_values(task, show.plain(task["text"]))
        filled = await request_reply(
            self.model, self._messages("summarize", **values), SummaryReply, config
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
        filled = await request_reply(self.model, messages, AnswerReply, config)
        return Answer(
            text=filled.answer.text,
            citations=filled.answer.citations,
            **how(filled),
        )


def summary_of(said: str) -> str:
    """Return a summary; one that says NONE is empty."""
    text = said.strip()
    return "" if text.upper() in {"NONE", "NONE."} else text
