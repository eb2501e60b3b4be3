"""The table of studies, as a whole.

judge -> fill (one branch a study that is kept) -> report. Nothing kept: judge -> report. A result
that was judged before begins with fill.
"""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from deepera_graph.agents.role import CheckedRole
from deepera_graph.agents.run import share_limits
from deepera_graph.budget import Limiter
from deepera_graph.errors import RoleError, SettingsError
from deepera_graph.evidence.table.cells import RULED
from deepera_graph.evidence.table.extract import Extracted, ExtractTask, llm_extractor
from deepera_graph.evidence.table.rows import (
    StudyRow,
    TableCell,
    fill_by_rules,
    in_order,
    verify_extracted,
)
from deepera_graph.passages import PassageLike, check_question
from deepera_graph.passages import read_passages as read_given
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.usage import Usage, UsageRecord

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

FORMAT = 1
COLUMNS = ("n", "design", "effect", "interval", "p", "direction")
_NO_MODEL = "rules cannot fill this column; it needs a chat model"
_UNTOLD = "not found by the rules"
_FREE = Usage()
_STEPS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTable:
    """A row a study that the judge keeps.

    Attributes:
        question: What was asked.
        columns: Their names, in order.
        rows: Best first.
        notes: What holds for all of it, a sentence each.
        usage: What judging and filling cost.
        judge: Who judged.
    """

    question: str
    columns: tuple[str, ...]
    rows: tuple[StudyRow, ...]
    notes: tuple[str, ...] = ()
    usage: Usage = _FREE
    judge: str = ""

    @classmethod
    def of_result(cls, result: RerankResult, columns: Sequence[str] = COLUMNS) -> "EvidenceTable":
        """Tabulate by rules what was kept for a question that has been asked.

        Raises:
            SettingsError: A column is blank or named twice.
        """
        names, listed = _check_columns(columns), _list_studies(result)
        filled = [_fill_row(one, names, None) for one in listed["studies"]]
        rows = [row for one in filled for row in one["rows"]]
        state: Any = {**listed, "rows": rows}
        return _join_rows(state, names, str(result.manifest.get("backend", "")))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data that `from_dict` reads."""
        return {
            "format": FORMAT,
            "question": self.question,
            "columns": list(self.columns),
            "rows": [one.to_dict() for one in self.rows],
            "notes": list(self.notes),
            "usage": self.usage.record(),
            "judge": self.judge,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            ValueError: It was written in another format.
        """
        if plain.get("format") != FORMAT:
            raise ValueError(f"table format must be {FORMAT}, got {plain.get('format')!r}")
        return cls(
            question=plain["question"],
            columns=tuple(plain["columns"]),
            rows=tuple(map(StudyRow.from_dict, plain["rows"])),
            notes=tuple(plain["notes"]),
            usage=Usage.of(plain["usage"]),
            judge=plain["judge"],
        )


class TableInput(TypedDict):
    """What the graph is given: a question and passages, as plain data."""

    question: str
    passages: list[dict[str, Any]]


class StudyTask(TypedDict):
    """A study to fill the cells of: its number, how it is cited, and its passages."""

    number: int
    question: str
    about: dict[str, Any]
    passages: list[dict[str, Any]]


class TableState(TableInput, total=False):
    """What the nodes write."""

    studies: list[StudyTask]
    rows: Annotated[list[dict[str, Any]], operator.add]
    costs: Annotated[list[UsageRecord], operator.add]
    notes: list[str]
    table: dict[str, Any]


class EvidenceTabulator:
    """Fills a table of the studies that answer a question.

    ``EvidenceTabulator().tabulate(question, passages).rows``

    Args:
        reranker: Who judges; the local judge, with at most 100 passages kept, if None.
        columns: Their names: ``n``, ``design``, ``effect``, ``unit``, ``measure``, ``interval``,
            ``p`` and ``direction``, which rules can fill, or any phrase, for which a chat model is
            needed.
        extractor: A chat model, its name or its backend; or a runnable from `ExtractTask` to
            `Extracted`. What it leaves empty of the columns above is filled by rules. If None,
            rules fill all.

    Raises:
        SettingsError: A column is blank or named twice, or the model cannot be made.
    """

    def __init__(
        self,
        reranker: EvidenceReranker | None = None,
        *,
        columns: Sequence[str] = COLUMNS,
        extractor: Any = None,
    ) -> None:
        self.reranker = reranker or EvidenceReranker("local", content="passage", top_n=100)
        self.columns = _check_columns(columns)
        role = _find_role(extractor)
        limiter = Limiter(self.reranker.settings.max_concurrency)
        self._role = None if role is None else CheckedRole(role, Extracted, limiter)
        self.graph = self._build()

    @property
    def fills_by_model(self) -> bool:
        """Whether an extractor is asked, once a study."""
        return self._role is not None

    def tabulate(self, question: str, passages: Iterable[PassageLike]) -> EvidenceTable:
        """Judge passages, and fill a row for each study that is kept.

        Raises:
            InputError: The question or a passage cannot be used.
        """
        state = self.graph.invoke(_read_input(question, passages), self._config())
        return EvidenceTable.from_dict(state["table"])

    async def atabulate(self, question: str, passages: Iterable[PassageLike]) -> EvidenceTable:
        """Do what `tabulate` does, in the running loop."""
        state = await self.graph.ainvoke(_read_input(question, passages), self._config())
        return EvidenceTable.from_dict(state["table"])

    def tabulate_result(self, result: RerankResult) -> EvidenceTable:
        """Fill a row for each study that was kept for a question that has been asked."""
        return EvidenceTable.from_dict(
            self.graph.invoke(_list_studies(result), self._config())["table"]
        )

    async def atabulate_result(self, result: RerankResult) -> EvidenceTable:
        """Do what `tabulate_result` does, in the running loop."""
        state = await self.graph.ainvoke(_list_studies(result), self._config())
        return EvidenceTable.from_dict(state["table"])

    def _build(self) -> "CompiledStateGraph[Any, None, Any, Any]":
        graph: StateGraph[Any, None, Any, Any] = StateGraph(TableState)
        graph.add_node("judge", RunnableLambda(self._judge, afunc=self._ajudge))
        graph.add_node("fill", RunnableLambda(self._fill, afunc=self._afill))
        graph.add_node("report", self._report)
        graph.add_conditional_edges(START, _begin, ["judge", "fill", "report"])
        graph.add_conditional_edges("judge", _one_per_study, ["fill", "report"])
        graph.add_edge("fill", "report")  # waits for every branch
        graph.add_edge("report", END)
        return graph.compile(name="EvidenceTabulator")

    def _config(self) -> RunnableConfig:
        given: RunnableConfig = {
            "max_concurrency": self.reranker.questions_at_once,
            "recursion_limit": _STEPS,
        }
        return share_limits(given, self.reranker.settings)

    def _judge(self, state: TableState, config: RunnableConfig) -> dict[str, Any]:
        return _list_studies(
            self.reranker.rerank(state["question"], state["passages"], config=config)
        )

    async def _ajudge(self, state: TableState, config: RunnableConfig) -> dict[str, Any]:
        return _list_studies(
            await self.reranker.arerank(state["question"], state["passages"], config=config)
        )

    def _fill(self, task: StudyTask, config: RunnableConfig) -> dict[str, Any]:
        if self._role is None:
            return _fill_row(task, self.columns, None)
        try:
            found: Extracted | str = self._role.invoke(self._ask(task), config)
        except RoleError as error:
            found = str(error)
        return _fill_row(task, self.columns, found)

    async def _afill(self, task: StudyTask, config: RunnableConfig) -> dict[str, Any]:
        if self._role is None:
            return _fill_row(task, self.columns, None)
        try:
            found: Extracted | str = await self._role.ainvoke(self._ask(task), config)
        except RoleError as error:
            found = str(error)
        return _fill_row(task, self.columns, found)

    def _ask(self, task: StudyTask) -> ExtractTask:
        texts = [one["text"] for one in task["passages"]]
        return {"question": task["question"], "columns": list(self.columns), "passages": texts}

    def _report(self, state: TableState) -> dict[str, Any]:
        table = _join_rows(state, self.columns, self.reranker.backend.name)
        return {"table": table.to_dict()}


def _fill_row(
    task: StudyTask, columns: Sequence[str], found: Extracted | str | None
) -> dict[str, Any]:
    """Fill a row by what a model *found*, or why it did not, and by rules where that is empty.

    None is no model.
    """
    passages = [RankedPassage.from_dict(one) for one in task["passages"]]
    by_rules = fill_by_rules(passages, RULED)
    if isinstance(found, Extracted):
        cells = verify_extracted(found, passages, columns)
    else:
        cells = {
            name: TableCell(note=found or (_UNTOLD if name in RULED else _NO_MODEL))
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
    cost = found.usage if isinstance(found, Extracted) and found.usage else Usage()
    return {"rows": [{"number": task["number"], "row": row}], "costs": [cost.record()]}


def _join_rows(state: TableState, columns: tuple[str, ...], judge: str) -> EvidenceTable:
    rows = sorted(state.get("rows", []), key=lambda one: one["number"])
    return EvidenceTable(
        question=state["question"],
        columns=columns,
        rows=tuple(StudyRow.from_dict(one["row"]) for one in rows),
        notes=tuple(state.get("notes", [])),
        usage=sum((Usage.of(one) for one in state.get("costs", [])), Usage()),
        judge=judge,
    )


def _check_columns(columns: Sequence[str]) -> tuple[str, ...]:
    names = tuple(" ".join(one.split()) for one in columns)
    if not names or not all(names):
        raise SettingsError(f"columns must be names, got {list(columns)!r}")
    if len({one.casefold() for one in names}) < len(names):
        raise SettingsError(f"columns must be different names, got {list(columns)!r}")
    known = {one.casefold(): one for one in RULED}
    return tuple(known.get(one.casefold(), one) for one in names)


def _find_role(extractor: Any) -> Runnable[ExtractTask, Extracted] | None:
    from langchain_core.language_models import BaseChatModel  # noqa: PLC0415 - takes a while

    if isinstance(extractor, Runnable) and not isinstance(extractor, BaseChatModel):
        return extractor
    return None if extractor is None else llm_extractor(extractor)


def _read_input(question: str, passages: Iterable[PassageLike]) -> TableInput:
    check_question(question, passages)
    given = [
        {"id": one.id, "text": one.text, "metadata": one.metadata} for one in read_given(passages)
    ]
    return {"question": question, "passages": given}


def _list_studies(result: RerankResult) -> dict[str, Any]:
    """Return the studies that are kept, each with all passages of it that were judged."""
    kept = result.studies if result.fallback is None else ()
    studies = []
    for number, group in enumerate(kept, start=1):
        best = group[0]
        source = result.cite(best)
        passages = [one for one in result.all_passages if one.study == best.study]
        about = {
            "source": str(source),
            "name": source.name,
            "link": source.link,
            "year": source.year,
            "status": best.paper_status or "",
            "band": best.band or "",
            "score": best.score or 0.0,
            "says": best.direction or "",
            "quote": best.quote,
        }
        studies.append(
            StudyTask(
                number=number,
                question=result.question,
                about=about,
                passages=[asdict(one) for one in in_order(passages)],
            )
        )
    notes = [*result.warnings]
    if not studies:
        notes.append(f"no study of {len(result.all_passages)} passages is evidence")
    return {
        "question": result.question,
        "studies": studies,
        "notes": notes,
        "costs": [result.total_usage.record()],
    }


def _begin(state: TableState) -> list[Send] | str:
    return _one_per_study(state) if "studies" in state else "judge"


def _one_per_study(state: TableState) -> list[Send] | str:
    return [Send("fill", one) for one in state["studies"]] or "report"
