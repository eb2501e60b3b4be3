"""A chat model that fills the cells of a study, each with a quote."""

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from deepera_graph.agents.role import LlmRole, how
from deepera_graph.chat.parsing import ReplyModel, sanitize_line
from deepera_graph.chat.structured import request_reply
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.backend import open_roles_model
from deepera_graph.prompts import messages_of
from deepera_graph.schema import Backend, RoleAnswer

_PACKAGE = "deepera_graph.evidence.table.prompts"


class ExtractTask(TypedDict):
    """What the model is given: the question, the columns, and the passages of one study."""

    question: str
    columns: list[str]
    passages: list[str]


class ExtractedCell(BaseModel):
    """What a study says of one column."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    column: str = Field(description="Its name.")
    value: str = Field(description="What the study says; empty if it does not.")
    quote: str = Field(description="The words that say it.")


class Extracted(RoleAnswer):
    """The cells of a study."""

    cells: list[ExtractedCell] = Field(description="One a column.")


class CellReply(ReplyModel):
    """What a study says of one column."""

    column: str = Field(description="The name of the column, exactly as given.")
    value: str = Field(description="What the study says of it; empty if it does not.")
    quote: str = Field(description="The words of a passage that say it, letter by letter.")


class RowReply(ReplyModel):
    """One entry a column."""

    cells: list[CellReply] = Field(description="One entry a column, in their order.")


def llm_extractor(model: Backend | BaseChatModel | str) -> Runnable[ExtractTask, Extracted]:
    """Have a chat model fill cells.

    Raises:
        SettingsError: The model cannot be made, or a backend has no chat model.
    """
    needed = "filling such columns needs a chat model, and backend {name} has none"
    return LlmExtractor(open_roles_model(model, needed=needed).chat)


def chat_of(backend: Backend) -> Backend | None:
    """Return a backend if it has a chat model that can fill cells, else None."""
    return backend if isinstance(backend.intent, LlmRole) else None


class LlmExtractor(LlmRole[ExtractTask, Extracted]):
    """Fills the cells of one study."""

    async def _play(self, task: ExtractTask, config: RunnableConfig | None) -> Extracted:
        question = show.one_line(task["question"])
        columns = "; ".join(map(show.one_line, task["columns"]))
        passages = "\n\n".join(
            f"[{number}] {show.plain(one)}" for number, one in enumerate(task["passages"], start=1)
        )
        messages = messages_of(
            _PACKAGE,
            "extract",
            question=question,
            columns=columns,
            passages=passages,
            marker=show.marker(passages, question, columns),
        )
        filled = await request_reply(self.model, messages, RowReply, config)
        cells = [
            ExtractedCell(
                column=sanitize_line(one.column), value=sanitize_line(one.value), quote=one.quote
            )
            for one in filled.answer.cells
        ]
        return Extracted(cells=cells, **how(filled))
