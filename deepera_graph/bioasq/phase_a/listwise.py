"""What a chat model does for phase A: it rewrites the question, and sorts the best documents.

Both are roles, LangChain `Runnable`s that are given plain data: a function can stand in for either.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field
from typing_extensions import TypedDict

from deepera_graph.agents.llm_role import LlmRole, how
from deepera_graph.chat.parsing import ReplyModel, sanitize_line, schemas_hash
from deepera_graph.chat.structured import request_reply
from deepera_graph.errors import AnswerError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.backend import LlmKwargs, open_roles_model
from deepera_graph.judges.llm.listwise import FilledOrder, fill_listwise, read_order
from deepera_graph.prompts import messages_of
from deepera_graph.schema import Backend, RoleAnswer, RoleSet, Window

PROMPTS = "deepera_graph.bioasq.prompts"
MOST_WORDS = 60  # of a query, twice what is asked for: a reply beyond is no query


class SortTask(TypedDict):
    """What the sorter is given: documents, best first as far as is known."""

    question: str
    passages: list[Window]


class Order(RoleAnswer):
    """An order of all documents, and what of it had to be mended."""

    order: list[int] = Field(description="Numbers from 1, each once, the most relevant first.")
    n_missing: int = Field(default=0, ge=0, description="Not named; they come last, as before.")
    n_repeated: int = Field(default=0, ge=0, description="Named again; the first place counts.")
    n_invented: int = Field(default=0, ge=0, description="Numbers of no document; left out.")

    @property
    def mended(self) -> str:
        """What was wrong, in words; empty if nothing was."""
        counts = {
            "not named": self.n_missing,
            "named again": self.n_repeated,
            "invented": self.n_invented,
        }
        return ", ".join(f"{n} {what}" for what, n in counts.items() if n)


class RewriteQueryTask(TypedDict):
    """What the rewriter is given."""

    question: str


class Query(RoleAnswer):
    """A query for a search engine."""

    text: str = Field(min_length=1, description="Names and their synonyms, in one line.")


class QueryReply(ReplyModel):
    """A query."""

    query: str = Field(description="The query, in one line, at most 30 words.")


class LlmSorter(LlmRole[SortTask, Order]):
    """Sorts documents in one prompt (BioASQ 13b: the best 30 of a cross-encoder)."""

    async def _play(self, task: SortTask, config: RunnableConfig | None) -> Order:
        messages = fill_listwise(task["question"], task["passages"])
        filled = await request_reply(self.model, messages, FilledOrder, config)
        read = read_order(filled.answer.order, len(task["passages"]))
        if read.names_none:
            n = len(filled.answer.order)
            problem = f"the reply names none of the documents, of {n} numbers"
            raise AnswerError(problem, usage=filled.usage)
        return Order(**read._asdict(), **how(filled))


class LlmQueryRewriter(LlmRole[RewriteQueryTask, Query]):
    """Puts a question into the words of a search engine."""

    async def _play(self, task: RewriteQueryTask, config: RunnableConfig | None) -> Query:
        messages = _fill_rewrite(task["question"])
        filled = await request_reply(self.model, messages, QueryReply, config)
        text = sanitize_line(filled.answer.query)
        if not text or len(text.split()) > MOST_WORDS:
            n = len(text.split())
            raise AnswerError(f"the reply is no query, of {n} words", usage=filled.usage)
        return Query(text=text, **how(filled))


def _fill_rewrite(question: str) -> list[BaseMessage]:
    line = show.one_line(question)
    return messages_of(PROMPTS, "rewrite", question=line, marker=show.marker(line))


@dataclass(frozen=True, kw_only=True)
class SearchRoles(RoleSet):
    """What a chat model does in a search; `dataclasses.replace` puts a function in its place.

    Attributes:
        name: Short name for people.
        sorter: Sorts the best documents.
        rewriter: Rewrites the question.
        about: What the manifest records: model, prompts.
        spec: Plain data that tells these roles from all others; None if they are live objects.
    """

    sorter: Runnable[SortTask, Order]
    rewriter: Runnable[RewriteQueryTask, Query]


def search_roles(
    model: Backend | BaseChatModel | str, **how_to_ask: Unpack[LlmKwargs]
) -> SearchRoles:
    """Have a chat model sort documents and rewrite questions.

    Args:
        model: A LangChain chat model, or its name, ``provider:model``; or the backend that
            `llm_backend` made of one.
        how_to_ask: `base_url`, `api_key_env`, `retry` and `limits`, as for `llm_backend`.

    Raises:
        SettingsError: The model cannot be made, or the backend has no chat model.
    """
    needed = "documents are sorted by a chat model, and backend {name} has none"
    opened = open_roles_model(model, needed=needed, **how_to_ask)
    return SearchRoles(
        name="llm",
        sorter=LlmSorter(opened.chat),
        rewriter=LlmQueryRewriter(opened.chat),
        about={
            "model": opened.chat.name,
            "prompts": _hash_prompts(),
            "schemas": schemas_hash((FilledOrder, QueryReply)),
        },
        spec=opened.spec,
    )


def _hash_prompts() -> str:
    """Return 12 hex digits that change when what the roles show changes."""
    window: Window = {"text": "$text", "title": "$title", "section": ""}
    shown = [*fill_listwise("$question", [window]), *_fill_rewrite("$question")]
    return sha256("\0".join(str(one.content) for one in shown).encode()).hexdigest()[:12]
