"""A row of the table: the cells of a study, by rules or by a chat model, verified."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NotRequired

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from deepera_graph.agents.role import LlmRole
from deepera_graph.chat.client import request_reply
from deepera_graph.chat.parsing import ReplyModel, sanitize_line
from deepera_graph.errors import RoleError
from deepera_graph.evidence.plain import PlainRecord
from deepera_graph.evidence.table.cells import FINDING, RULED, find_outcome, read_cells
from deepera_graph.evidence.table.designs import find_design, is_finer
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.backend import open_roles_model
from deepera_graph.literature.citation import find_pages
from deepera_graph.prompts import messages_of
from deepera_graph.result import RankedPassage
from deepera_graph.schema import Backend, RoleAnswer
from deepera_graph.text.quotes import find_quote
from deepera_graph.text.terms import write_numbers

_PACKAGE = "deepera_graph.evidence.table.prompts"
_NUMBER = re.compile(r"(?<![A-Za-z\d])(?<![A-Za-z]-)\d+(?:[.,]\d+)*")  # not that of IL-6
_OF_NUMBERS = ("n", "effect", "interval", "p")
_NO_MODEL = "rules cannot fill this column; it needs a chat model"
_UNTOLD = "not found by the rules"
_FULL_TEXT = 3  # passages, from which on the abstract is compared with the rest


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
    """Have a chat model fill cells."""
    # Raises `SettingsError` if the model cannot be made, or a backend has no chat model.
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
        reply, notes = await request_reply(self.model, messages, RowReply, config)
        cells = [
            ExtractedCell(
                column=sanitize_line(one.column), value=sanitize_line(one.value), quote=one.quote
            )
            for one in reply.cells
        ]
        return Extracted(cells=cells, **notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """A cell, or why it is empty."""

    value: str = ""  # what is shown; empty if it is not known
    words: str = ""  # the words of the study that it is taken from, verbatim
    passage: str = ""  # the id of the passage that has them
    page: str = ""  # that they stand on, if known
    by: str = ""  # ``rules`` or ``model``; empty for an empty cell
    note: str = ""  # why it is empty, or what in the study speaks against it


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRow(PlainRecord):
    """A study that the judge keeps."""

    source: str  # how it is cited, in a line
    name: str  # its authors in short, else its title
    link: str  # where it can be looked up; empty if not known
    year: str  # of the study, if known
    status: str  # what became of it: ``retracted``, ...; empty if nothing is known
    band: str  # ``evidence``, or ``possible`` below the judge's point of evidence
    score: float  # of its best passage, in [0, 1]
    says: str  # what its best passage says to a yes/no question or a claim; empty for others
    quote: str  # its sentence that decides
    cells: Mapping[str, TableCell]  # by the names of columns, in their order
    # what rules find for other columns, for the map
    more: Mapping[str, TableCell] = field(default_factory=dict)

    def find(self, column: str) -> TableCell:
        """Return what is known for a column, whether it is shown or not."""
        return self.cells.get(column) or self.more.get(column) or TableCell()


class StudyTask(TypedDict):
    """A study to fill the cells of: how it is cited, its passages, and what was found before."""

    number: int
    question: str
    about: dict[str, Any]
    passages: list[dict[str, Any]]
    found: NotRequired[dict[str, Any] | None]


def in_order(passages: Sequence[RankedPassage]) -> list[RankedPassage]:
    """Return the passages of a study: the best first, then the others as they stand in it."""
    best = max(passages, key=lambda one: one.score or 0)
    others = [one for one in passages if one is not best]
    return [best, *sorted(others, key=lambda one: (one.metadata.get("part", 0), one.id))]


def fill_by_rules(
    passages: Sequence[RankedPassage], columns: Sequence[str], question: str = ""
) -> dict[str, TableCell]:
    """Return the cells that rules find; what is of one finding is of one passage."""
    outcome = find_outcome(question)
    title = passages[0].citation.title if passages else ""
    read = [
        (
            one,
            read_cells(one.text, one.quote_span, outcome=outcome, title=title, question=question),
        )
        for one in passages
    ]
    whole = max(read, key=lambda pair: sum(name in pair[1] for name in FINDING), default=None)
    cells: dict[str, TableCell] = {}
    for column in columns:
        if column not in RULED:
            continue
        places = [whole] if column in FINDING and whole else read
        found = next(((one, said[column]) for one, said in places if column in said), None)
        if found is not None:
            one, cell = found
            words = one.text[slice(*cell.span)]
            cells[column] = TableCell(
                value=cell.value,
                words=words,
                passage=one.id,
                page=find_pages(one.metadata, cell.span),
                by="rules",
                note=_find_conflict(column, one, words, passages),
            )
        if column == "design" and passages:
            cells |= _read_title(passages[0], cells.get(column))
    return cells


def _read_title(one: RankedPassage, told: TableCell | None) -> dict[str, TableCell]:
    """Return the design that the title of a study names, unless its text tells more than it."""
    title = one.citation.title
    found = find_design(title)
    if found is None or (told is not None and is_finer(told.value, found.value)):
        return {}
    words = title[slice(*found.span)]
    return {
        "design": TableCell(
            value=found.value, words=words, passage=one.id, by="rules", note="from the title"
        )
    }


def _find_conflict(
    column: str, one: RankedPassage, words: str, passages: Sequence[RankedPassage]
) -> str:
    """Say that the numbers of an abstract stand nowhere in the rest of a full text."""
    rest = [other.text for other in passages if other is not one]
    if column not in _OF_NUMBERS or len(rest) + 1 < _FULL_TEXT or not _is_abstract(one):
        return ""
    there = set(_NUMBER.findall(" ".join(rest)))
    missing = [number for number in _NUMBER.findall(words) if number not in there]
    return f"the rest of the text does not have {', '.join(missing)}" if missing else ""


def _is_abstract(one: RankedPassage) -> bool:
    section = str(one.metadata.get("section", "")).lower()
    return section in ("abstract", "summary") or one.metadata.get("part") == 1


def verify_extracted(
    found: Extracted, passages: Sequence[RankedPassage], columns: Sequence[str]
) -> dict[str, TableCell]:
    """Return what a model filled; a value whose quote no passage has is left out, and says so."""
    named = {one.column.casefold(): one for one in found.cells}
    cells = {}
    for column in columns:
        one = named.get(column.casefold())
        if one is None or not one.value.strip():
            cells[column] = TableCell(note="the study does not say it")
        else:
            cells[column] = _verify(one.value.strip(), one.quote, passages)
    return cells


def _verify(value: str, quote: str, passages: Sequence[RankedPassage]) -> TableCell:
    for one in passages:
        place = find_quote(one.text, quote, any_length=True)
        if place.start is not None and place.end is not None:
            words = one.text[place.start : place.end]
            there = f"{words} {write_numbers(words)}"
            missing = [number for number in _NUMBER.findall(value) if number not in there]
            if missing:
                return TableCell(note=f"its quote does not have {', '.join(missing)}")
            page = find_pages(one.metadata, (place.start, place.end))
            return TableCell(value=value, words=words, passage=one.id, page=page, by="model")
    return TableCell(note="its quote is not in the study")


def fill_row(
    columns: Sequence[str], task: StudyTask, found: Extracted | RoleError | None = None
) -> dict[str, Any]:
    """Fill a row by what a model *found*, or why it did not, and by rules where that is empty."""
    # None is no model, or what the journal has of one.
    passages = [RankedPassage.from_dict(one) for one in task["passages"]]
    by_rules = fill_by_rules(passages, RULED, task["question"])
    if found is None and (kept := task.get("found")):
        found = Extracted.model_validate(kept)
    if isinstance(found, Extracted):
        cells = verify_extracted(found, passages, columns)
    else:
        why = "" if found is None else str(found)
        cells = {
            name: TableCell(note=why or (_UNTOLD if name in RULED else _NO_MODEL))
            for name in columns
        }
    for name, cell in cells.items():
        if not cell.value and name in by_rules:
            cells[name] = by_rules[name]
    row = {
        **task["about"],
        "cells": {name: asdict(cell) for name, cell in cells.items()},
        "more": {name: asdict(cell) for name, cell in by_rules.items() if name not in cells},
    }
    return {"rows": [{"number": task["number"], "row": row}]}
