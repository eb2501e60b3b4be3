"""What travels through a search for documents, as plain data."""

from typing import Annotated, Any, Literal

from langchain_core.documents import Document
from typing_extensions import TypedDict

from deepera_graph.pipeline.state import append
from deepera_graph.usage import UsageRecord, merge_usage

Pairs = list[list[Any]]  # [pmid, score], best first


class SearchInput(TypedDict):
    """What is asked."""

    question: str


class SnippetRecord(TypedDict):
    """The fields of a `Snippet`, and how likely it is one."""

    snippet: dict[str, Any]
    probability: float


class SearchOutput(TypedDict):
    """What was found, the rankings on the way, and what went wrong.

    `retrieved`, `judged` and `listed` are rankings of all documents that were retrieved, scored and
    sorted; `documents` is the last. `failed` says why there is none, `degraded` names the steps
    that fell back, `stopped` is ``budget`` if it was spent.
    """

    question: str
    query: str
    retrieved: Pairs
    judged: Pairs
    listed: Pairs
    documents: Pairs
    snippets: list[SnippetRecord]
    failed: str
    unusable: str
    stopped: Literal["", "budget"]
    degraded: Annotated[list[str], append]
    problems: Annotated[list[str], append]
    usage: Annotated[dict[str, UsageRecord], merge_usage]


class SearchState(SearchOutput):
    """Everything that travels; `passages` are the documents that were retrieved."""

    passages: list[Document]
