"""Tools with which an agent tabulates studies and checks the citations of what it wrote."""

from typing import Any

from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field

from deepera_graph import (
    EvidenceTabulator,
    ManuscriptCheck,
    SettingsError,
    export_check,
    export_table,
)
from deepera_graph.evidence.check.report import CheckReport
from deepera_graph.evidence.table.table import EvidenceTable
from langchain_deepera.base import check_judged
from langchain_deepera.tool import EvidenceQuestion, list_searches, make_tool

_OF_TABLE = (
    "Tabulate the studies that answer a scientific question: n, design, effect, interval, p and "
    "direction of each, with the words of the study that say so."
)
_OF_CHECK = (
    "Check whether the works that a text cites say what they are cited for. Returns a verdict on "
    "each pair of sentence and reference, with the sentence of the work that decides."
)
_NOTHING = "Nothing was found out"


class CitingText(BaseModel):
    """What the tool for checking is given."""

    manuscript: str = Field(
        description="Markdown with citations, [1] or [@key], and the references under a heading."
    )


def create_table_tool(
    retriever: Any,
    *,
    tabulator: EvidenceTabulator | None = None,
    name: str = "tabulate_studies",
    description: str = _OF_TABLE,
) -> BaseTool:
    """Return a tool: a table in Markdown for the agent, an `EvidenceTable` for the program.

    ``export_table(message.artifact, "svg")`` is its map. An error of ours becomes a message of
    status ``error``, as with `create_evidence_tool`.

    Args:
        retriever: Where to look, and who judges, as for `create_evidence_tool`.
        tabulator: Fills the cells; its judge is not asked. Rules fill them if None.
        name: What the agent calls it.
        description: Tells the agent when to call it.

    Raises:
        SettingsError: There is nothing to search, or the tabulator is none.
    """
    find, afind = list_searches(retriever)
    if not isinstance(tabulator, EvidenceTabulator | None):
        raise SettingsError(f"tabulator must be an EvidenceTabulator, got {tabulator!r:.80}")

    def fill(question: str) -> EvidenceTable:
        result = find(question)
        check_judged(result)
        return tabulator.tabulate_result(result) if tabulator else EvidenceTable.of_result(result)

    async def afill(question: str) -> EvidenceTable:
        result = await afind(question)
        check_judged(result)
        if tabulator is None:
            return EvidenceTable.of_result(result)
        return await tabulator.atabulate_result(result)

    def show(table: EvidenceTable) -> tuple[str, EvidenceTable]:
        return export_table(table, "markdown"), table

    named, told = (name, description), {"failed": name, "means": _NOTHING}
    return make_tool(fill, afill, show, EvidenceQuestion, named, **told)


def create_check_tool(
    checker: ManuscriptCheck, *, name: str = "check_citations", description: str = _OF_CHECK
) -> BaseTool:
    """Return a tool: verdicts as text for the agent, a `CheckReport` for the program.

    An error of ours becomes a message of status ``error``, as with `create_evidence_tool`.

    Args:
        checker: Has the works that may be cited.
        name: What the agent calls it.
        description: Tells the agent when to call it.

    Raises:
        SettingsError: It is no `ManuscriptCheck`.
    """
    if not isinstance(checker, ManuscriptCheck):
        raise SettingsError(f"the tool needs a ManuscriptCheck, got {checker!r:.80}")

    def show(report: CheckReport) -> tuple[str, CheckReport]:
        return export_check(report, "text"), report

    work, awork = checker.check_text, checker.acheck_text
    named, told = (name, description), {"failed": name, "means": _NOTHING}
    return make_tool(work, awork, show, CitingText, named, **told)
