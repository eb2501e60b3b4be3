"""The tools for tables and for checking: what an agent reads, and what the program gets."""

import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from deepera_graph import (
    EvidenceReranker,
    EvidenceTabulator,
    ManuscriptCheck,
    SettingsError,
    WorkLibrary,
    export_table,
)
from deepera_graph.evidence.table.rows import Extracted, ExtractedCell
from deepera_graph.evidence.table.table import EvidenceTable
from langchain_deepera import DeepEraRetriever, create_check_tool, create_table_tool
from support.scripted import Script

QUESTION = "Does green tea lower fasting glucose?"
TRIAL = Document(
    id="t",
    page_content="In a randomised trial of 210 adults green tea lowered fasting glucose by 4%.",
    metadata={"title": "Green tea and glucose", "year": 2019},
)
DRAFT = """# Tea

Green tea lowered fasting glucose by 4% in adults [1]. It was drunk by nobody [2].

## References

1. Lee A. Green tea and glucose. 2019.
2. Roy B. Tea that nobody drinks. 2001.
"""


def call(tool, **given):
    """The tool's message, after checking that async gives the same."""
    asked = {"name": tool.name, "args": given, "id": "1", "type": "tool_call"}
    message = tool.invoke(asked)
    other = asyncio.run(tool.ainvoke(asked))
    assert (other.content, other.status) == (message.content, message.status)
    return message


def retriever(**settings):
    reranker = EvidenceReranker(Script({"lowered": 0.9}).backend(), **settings)
    return DeepEraRetriever(source=RunnableLambda(lambda _: [TRIAL]), reranker=reranker)


def test_an_agent_reads_a_table_and_the_program_gets_it():
    message = call(create_table_tool(retriever()), question=QUESTION)
    assert "1. Green tea and glucose. 2019" in message.content
    assert isinstance(message.artifact, EvidenceTable)
    assert message.artifact.rows[0].cells["n"].words == "210 adults"
    assert export_table(message.artifact, "markdown") == message.content


def test_a_tabulator_fills_columns_of_its_own():
    cell = ExtractedCell(column="population", value="adults", quote="210 adults")
    tabulator = EvidenceTabulator(
        columns=("population",), extractor=RunnableLambda(lambda _: Extracted(cells=[cell]))
    )
    message = call(create_table_tool(retriever(), tabulator=tabulator), question=QUESTION)
    assert message.artifact.rows[0].cells["population"].value == "adults"


@pytest.mark.full
def test_an_agent_reads_verdicts_on_what_it_wrote():
    tool = create_check_tool(ManuscriptCheck(library=WorkLibrary([TRIAL])))
    message = call(tool, manuscript=DRAFT)
    assert {one.key: one.verdict for one in message.artifact.pairs} == {
        "1": "supported",
        "2": "unavailable",
    }
    assert "[1] supported (read: abstract)" in message.content


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Tea is good.", "check_citations failed: manuscript: no references found"),
        ("---\nbibliography: /etc/refs.bib\n---\nTea [@lee].", "no file '/etc/refs.bib'"),
    ],
)
def test_what_cannot_be_checked_is_told_and_no_file_is_read(text, said):
    message = call(create_check_tool(ManuscriptCheck()), manuscript=text)
    assert (message.status, said in message.content) == ("error", True)
    assert "/tmp" not in message.content


def test_a_question_that_cannot_be_asked_is_told():
    message = call(create_table_tool(retriever()), question=" ")
    assert (message.status, "tabulate_studies failed:" in message.content) == ("error", True)


def test_what_is_no_tabulator_or_check_is_refused():
    with pytest.raises(SettingsError, match="tabulator must be an EvidenceTabulator, got 3"):
        create_table_tool(retriever(), tabulator=3)
    with pytest.raises(SettingsError, match="the tool needs a ManuscriptCheck, got 3"):
        create_check_tool(3)
