"""The table of studies, as a whole.

judge -> fill, or ask a chat model (one branch a study that is kept) -> report. Nothing kept: judge
-> report. A result that was judged before begins with the second.
"""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from deepera_graph.agents.role import CheckedRole, RoleNode
from deepera_graph.agents.run import AgentRun, hash_plain
from deepera_graph.errors import SettingsError
from deepera_graph.evidence.asking import Asked, Steps, choose_reranker, steps_node
from deepera_graph.evidence.plain import PlainRecord
from deepera_graph.evidence.table.cells import RULED
from deepera_graph.evidence.table.rows import (
    Extracted,
    ExtractTask,
    StudyRow,
    StudyTask,
    fill_row,
    in_order,
    llm_extractor,
)
from deepera_graph.passages import PassageLike, check_question
from deepera_graph.passages import read_passages as read_given
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.settings.budget import Limiter
from deepera_graph.settings.ranges import suggest_value
from deepera_graph.usage import Usage, UsageRecord, merge_usage

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from deepera_graph.agents.journal import Journal

COLUMNS = ("n", "design", "effect", "interval", "p", "direction")
_FREE = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTable(PlainRecord):
    """A row a study that the judge keeps.

    Attributes:
        question: What was asked.
        columns: Their names, in order.
        rows: Best first.
        notes: What holds for all of it, a sentence each.
        usage: What judging and filling cost.
        judge: Who judged.
    """

    kind = "table"
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
        filled = [fill_row(names, one) for one in listed["studies"]]
        rows = [row for one in filled for row in one["rows"]]
        state: Any = {**listed, "rows": rows}
        return _join_rows(state, names, str(result.manifest.get("backend", "")))


class TableInput(TypedDict):
    """What the graph is given: a question and passages, as plain data."""

    question: str
    passages: list[dict[str, Any]]


class TableState(TableInput, total=False):
    """What the nodes write."""

    studies: list[StudyTask]
    rows: Annotated[list[dict[str, Any]], operator.add]
    usage: Annotated[dict[str, UsageRecord], merge_usage]
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
        journal: Keeps what was judged and filled, so that a table that was cut short goes on;
            opened by the caller.

    Raises:
        SettingsError: A column is blank or named twice, or the model cannot be made.
    """

    def __init__(
        self,
        reranker: EvidenceReranker | None = None,
        *,
        columns: Sequence[str] = COLUMNS,
        extractor: Any = None,
        journal: "Journal | None" = None,
    ) -> None:
        self.reranker = choose_reranker(reranker, content="passage", top_n=100)
        self.columns, self._journal = _check_columns(columns), journal
        self._role = _find_role(extractor)
        self.graph = self._build()

    @property
    def fills_by_model(self) -> bool:
        """Whether an extractor is asked, once a study."""
        return self._role is not None

    def tabulate(
        self, question: str, passages: Iterable[PassageLike], config: RunnableConfig | None = None
    ) -> EvidenceTable:
        """Judge passages, and fill a row for each study that is kept; one budget holds for both.

        Raises:
            InputError: The question or a passage cannot be used.
        """
        return TableRun(self, _read_input(question, passages), config).finish()

    async def atabulate(
        self, question: str, passages: Iterable[PassageLike], config: RunnableConfig | None = None
    ) -> EvidenceTable:
        """Do what `tabulate` does, in the running loop."""
        return await TableRun(self, _read_input(question, passages), config).afinish()

    def tabulate_result(
        self, result: RerankResult, config: RunnableConfig | None = None
    ) -> EvidenceTable:
        """Fill a row for each study that was kept for a question that has been asked."""
        return TableRun(self, _list_studies(result), config).finish()

    async def atabulate_result(
        self, result: RerankResult, config: RunnableConfig | None = None
    ) -> EvidenceTable:
        """Do what `tabulate_result` does, in the running loop."""
        return await TableRun(self, _list_studies(result), config).afinish()

    def _build(self) -> "CompiledStateGraph[Any, None, Any, Any]":
        graph: StateGraph[Any, None, Any, Any] = StateGraph(TableState)
        graph.add_node("judge", steps_node(self._judge))
        graph.add_node("fill", partial(fill_row, self.columns))
        if self._role is not None:
            limiter = Limiter(self.reranker.settings.max_concurrency)
            ask: RoleNode[StudyTask, ExtractTask, Extracted] = RoleNode(
                "ask",
                ask=self._ask,
                role=CheckedRole(self._role, Extracted, limiter),
                record=self._record,
                on_failure=lambda task, error: fill_row(self.columns, task, error),
                run_name=lambda task: f"study {task['number']}",
            )
            graph.add_node("ask", ask)
            graph.add_edge("ask", "report")
        graph.add_node("report", self._report)
        nodes = ["ask", "fill", "report"] if self._role is not None else ["fill", "report"]
        graph.add_conditional_edges(START, self._begin, ["judge", *nodes])
        graph.add_conditional_edges("judge", self._one_per_study, nodes)
        graph.add_edge("fill", "report")  # waits for every branch
        graph.add_edge("report", END)
        return graph.compile(name="EvidenceTabulator")

    def _judge(self, state: TableState) -> Steps[dict[str, Any]]:
        """Judge the passages, and keep what was judged, unless some of it could not be."""
        if known := self._find_kept(name := _name_judged(state)):
            return _list_studies(RerankResult.from_dict(known["result"]))
        result = yield Asked(self.reranker, state["question"], state["passages"])
        if self._journal is not None and not result.failed and result.outcome != "budget_stop":
            self._journal.put(name, {"result": result.to_dict()})
        return _list_studies(result)

    def _find_kept(self, name: str) -> Mapping[str, Any] | None:
        return None if self._journal is None else self._journal.entries.get(name)

    def _begin(self, state: TableState) -> list[Send] | str:
        return self._one_per_study(state) if "studies" in state else "judge"

    def _one_per_study(self, state: TableState) -> list[Send] | str:
        """Have a model asked about each study that the journal does not have."""
        sends = []
        for one in state["studies"]:
            known = self._find_kept(_name_study(one))
            found = None if known is None else known["found"]
            asks = self._role is not None and found is None
            sends.append(Send("ask" if asks else "fill", {**one, "found": found}))
        return sends or "report"

    def _ask(self, task: StudyTask) -> ExtractTask:
        texts = [one["text"] for one in task["passages"]]
        return {"question": task["question"], "columns": list(self.columns), "passages": texts}

    def _record(self, task: StudyTask, found: Extracted) -> dict[str, Any]:
        if self._journal is not None:
            self._journal.put(_name_study(task), {"found": found.model_dump()})
        return fill_row(self.columns, task, found)

    def _report(self, state: TableState) -> dict[str, Any]:
        table = _join_rows(state, self.columns, self.reranker.backend.name)
        unfilled = [] if self._role else [one for one in self.columns if one not in RULED]
        notes = [
            f"only a chat model can fill the column {one!r}{suggest_value(one, RULED)}"
            for one in unfilled
        ]
        return {"table": replace(table, notes=(*table.notes, *notes)).to_dict()}


class TableRun(AgentRun[EvidenceTable]):
    """One table."""

    name, kind, begun = "table", "tabulator", "studies"
    differs = "by another judge, or with other settings"

    def __init__(
        self, tabulator: EvidenceTabulator, given: Any, config: RunnableConfig | None
    ) -> None:
        settings = tabulator.reranker.settings
        self._at_once = tabulator.reranker.questions_at_once
        super().__init__(tabulator.graph, given, config, settings)

    def _n_threads(self, asked: int | None, *, in_loop: bool) -> int | None:
        return min(asked or self._at_once, self._at_once)

    def result(self) -> EvidenceTable:
        """Return the table."""
        return EvidenceTable.from_dict(self._state["table"])


def _name_judged(state: TableState) -> str:
    passages = [(one["id"], one["text"]) for one in state["passages"]]
    return f"judged {hash_plain([state['question'], passages])}"


def _name_study(task: StudyTask) -> str:
    texts = [one["text"] for one in task["passages"]]
    return f"study {hash_plain([task['question'], texts])}"


def _join_rows(state: TableState, columns: tuple[str, ...], judge: str) -> EvidenceTable:
    rows = sorted(state.get("rows", []), key=lambda one: one["number"])
    return EvidenceTable(
        question=state["question"],
        columns=columns,
        rows=tuple(StudyRow.from_dict(one["row"]) for one in rows),
        notes=tuple(state.get("notes", [])),
        usage=sum((Usage.of(one) for one in state.get("usage", {}).values()), Usage()),
        judge=judge,
    )


def _check_columns(columns: Sequence[str]) -> tuple[str, ...]:
    is_list = not isinstance(columns, str) and all(isinstance(one, str) for one in columns)
    names = tuple(" ".join(one.split()) for one in columns) if is_list else ()
    if not names or not all(names):
        raise SettingsError(f"columns must be names, got {columns!r}")
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
        {"id": one.id, "text": one.page_content, "metadata": one.metadata}
        for one in read_given(passages)
    ]
    return {"question": question, "passages": given}


def _list_studies(result: RerankResult) -> dict[str, Any]:
    """Return the studies that are kept, each with the passages of its record that were judged."""
    kept = result.studies if result.fallback is None else ()
    studies = []
    for number, group in enumerate(kept, start=1):
        best = group[0]
        source = result.cite(best)
        passages = result.same_record(best)
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
        "usage": {"judge": result.total_usage.record()},
    }
