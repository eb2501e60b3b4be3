"""Kept passages as LangChain documents: new objects, the caller's metadata kept and extended."""

from copy import deepcopy
from typing import Any

from langchain_core.documents import Document

from deepera_graph.state import IntentRecord, RankRecord

_RECORD_KEYS = (
    "rank", "reason", "quote", "quote_span", "quote_status", "status", "window", "summary_status",
    "retrieval_rank", "retrieval_score",
)  # fmt: skip


def kept_document(passage: Document, record: RankRecord, intent: IntentRecord) -> Document:
    """Return a copy of a passage that carries its verdict.

    `page_content` is the summary if there is one, else the passage; `metadata` keeps every key
    and gains `relevance_score` in [0, 1] and one `deepera` key with the rest, JSON-serialisable.
    """
    metadata = deepcopy(passage.metadata)
    metadata.pop("retrieval_rank", None)
    metadata.pop("retrieval_score", None)
    verdict: dict[str, Any] = {key: record[key] for key in _RECORD_KEYS}  # type: ignore[literal-required]
    verdict["text"] = passage.page_content
    verdict["intent"] = dict(intent["fields"])
    metadata["relevance_score"] = record["score"]
    metadata["deepera"] = verdict
    return Document(
        id=passage.id, page_content=record["summary"] or passage.page_content, metadata=metadata
    )
