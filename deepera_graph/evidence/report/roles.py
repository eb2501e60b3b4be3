"""A chat model that plans a report, writes its paragraphs, and writes sentences anew."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from deepera_graph.agents.role import LlmRole, fill_messages
from deepera_graph.chat.client import request_reply
from deepera_graph.chat.parsing import Number, ReplyModel, sanitize_line, schemas_hash
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.backend import open_roles_model
from deepera_graph.prompts import prompts_hash
from deepera_graph.schema import Backend, RoleAnswer, RoleSet

NODES = ("outline", "paragraph", "revise")


class StudyText(TypedDict):
    """A study as a role is shown it: number, title if known, what it says, and texts."""

    number: int
    title: str
    says: str
    texts: list[str]


class OutlineTask(TypedDict):
    """What the outliner is given."""

    question: str
    studies: list[StudyText]


class ParagraphTask(OutlineTask):
    """What the writer is given: the studies of one group, and what it is about."""

    point: str


class ReviseTask(OutlineTask):
    """What the reviser is given: a sentence, the studies that it cites, and what is wrong."""

    sentence: str
    cited: list[int]
    reasons: list[str]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StudyGroup(_Part):
    """Studies that make one paragraph."""

    point: str = Field(description="What it is about.")
    studies: list[int] = Field(description="Their numbers.")


class Outline(RoleAnswer):
    """How a report is divided."""

    groups: list[StudyGroup] = Field(description="In their order.")


class Draft(_Part):
    """A sentence that nobody has checked."""

    text: str = Field(description="Without citation marks.")
    studies: list[int] = Field(description="Numbers of the studies that it cites.")


class Paragraph(RoleAnswer):
    """The sentences of a paragraph, or one that was written anew."""

    sentences: list[Draft] = Field(description="In their order.")


class _GroupReply(ReplyModel):
    """One group."""

    point: str = Field(description="What it is about, in at most 12 words.")
    studies: list[Number] = Field(description="Numbers of its studies.")


class OutlineReply(ReplyModel):
    """Groups of studies."""

    groups: list[_GroupReply] = Field(description="Most important first.")


class SentenceReply(ReplyModel):
    """A sentence."""

    text: str = Field(description="The sentence, without citation marks.")
    studies: list[Number] = Field(description="Numbers of the studies that say all of it.")


class ParagraphReply(ReplyModel):
    """A paragraph."""

    sentences: list[SentenceReply] = Field(description="Three to six.")


@dataclass(frozen=True, kw_only=True)
class ReportRoles(RoleSet):
    """Who writes a report."""

    outliner: Runnable[OutlineTask, Outline]  # divides studies into groups
    writer: Runnable[ParagraphTask, Paragraph]  # writes the paragraph of a group
    # writes a sentence anew; none is left where it cannot be
    reviser: Runnable[ReviseTask, Paragraph]


def report_roles(model: Backend | BaseChatModel | str) -> ReportRoles:
    """Have a chat model write reports."""
    # Raises `SettingsError` if the model cannot be made, or a backend has no chat model.
    needed = "writing a report needs a chat model, and backend {name} has none; without, it quotes"
    chat, domain, spec = open_roles_model(model, needed=needed)
    schemas = schemas_hash((OutlineReply, ParagraphReply, SentenceReply))
    return ReportRoles(
        name="llm",
        outliner=LlmOutliner(chat, domain),
        writer=LlmParagraphWriter(chat, domain),
        reviser=LlmReviser(chat, domain),
        about={"model": chat.name, "prompts": prompts_hash(*NODES), "schemas": schemas},
        spec=spec,
    )


class _WriterRole(LlmRole[Any, Any]):
    async def _request(
        self, node: str, kind: type[Any], task: Any, config: RunnableConfig | None, **more: str
    ) -> tuple[Any, dict[str, Any]]:
        studies = _show_studies(task["studies"])
        beside = {"question": show.one_line(task["question"]), **more}
        marker = show.marker(studies, *beside.values())
        values = {**beside, "studies": studies, "marker": marker}
        messages = fill_messages(self.domain, node, ("answer",), **values)
        return await request_reply(self.model, messages, kind, config)


class LlmOutliner(_WriterRole):
    """Divides the studies of a report."""

    async def _play(self, task: OutlineTask, config: RunnableConfig | None) -> Outline:
        reply, notes = await self._request("outline", OutlineReply, task, config)
        groups = [
            StudyGroup(point=sanitize_line(one.point), studies=one.studies) for one in reply.groups
        ]
        return Outline(groups=groups, **notes)


class LlmParagraphWriter(_WriterRole):
    """Writes the paragraph of a group."""

    async def _play(self, task: ParagraphTask, config: RunnableConfig | None) -> Paragraph:
        point = show.one_line(task["point"])
        reply, notes = await self._request("paragraph", ParagraphReply, task, config, point=point)
        return Paragraph(sentences=_read(reply.sentences), **notes)


class LlmReviser(_WriterRole):
    """Writes a sentence anew."""

    async def _play(self, task: ReviseTask, config: RunnableConfig | None) -> Paragraph:
        more = {
            "sentence": show.one_line(task["sentence"]),
            "cited": ", ".join(map(str, task["cited"])) or show.NONE,
            "reasons": show.one_line("; ".join(task["reasons"])),
        }
        reply, notes = await self._request("revise", SentenceReply, task, config, **more)
        return Paragraph(sentences=_read([reply]), **notes)


def _read(sentences: Sequence[SentenceReply]) -> list[Draft]:
    return [Draft(text=sanitize_line(one.text), studies=one.studies) for one in sentences]


def _show_studies(studies: Sequence[StudyText]) -> str:
    """Write studies one below the other: a number in brackets, then texts in a line each."""
    blocks = []
    for one in studies:
        said = f" (direction: {one['says'].replace('_', ' ')})" if one["says"] else ""
        title = f"Title: {show.one_line(one['title'])}\n" if one["title"] else ""
        texts = "\n".join(map(show.one_line, one["texts"]))
        blocks.append(f"[{one['number']}]{said}\n{title}{texts}")
    return "\n\n".join(blocks)
