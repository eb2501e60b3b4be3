"""A chat model that rewrites a query which brought too little evidence."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field

from deepera_graph.agents.llm_role import LlmRole, how
from deepera_graph.chat.parsing import ReplyModel, sanitize_line
from deepera_graph.chat.structured import request_reply
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.backend import open_roles_model
from deepera_graph.schema import Backend, RewriteTask, Rewritten

_SHOWN = 600  # characters of a passage


class QueryReply(ReplyModel):
    """Another query."""

    thought: str = Field(description="What the passages lack, in at most 25 words.")
    query: str = Field(description="The next query; empty if no other would help.")


def llm_rewriter(model: Backend | BaseChatModel | str) -> Runnable[RewriteTask, Rewritten]:
    """Have a chat model rewrite queries.

    Raises:
        SettingsError: The model cannot be made, or a backend has no chat model.
    """
    needed = "rewriting needs a chat model, and backend {name} has none; 'rules' needs none"
    return LlmRewriter(open_roles_model(model, needed=needed).chat)


class LlmRewriter(LlmRole[RewriteTask, Rewritten]):
    """Writes the next query, for the same question."""

    async def _play(self, task: RewriteTask, config: RunnableConfig | None) -> Rewritten:
        question = show.one_line(task["question"])
        tried = "\n".join(f"- {show.one_line(one)}" for one in task["tried"])
        texts = (show.one_line(one)[:_SHOWN] for one in task["nearest"])
        nearest = "\n".join(f"[{place}] {one}" for place, one in enumerate(texts, start=1))
        values: dict[str, Any] = {"question": question, "tried": tried, "nearest": nearest}
        values["marker"] = show.marker(nearest, question, tried)
        messages = self._messages("rewrite", **values)
        filled = await request_reply(self.model, messages, QueryReply, config)
        return Rewritten(text=sanitize_line(filled.answer.query), **how(filled))
