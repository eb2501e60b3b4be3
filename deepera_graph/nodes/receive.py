"""Receive node: a question that can be asked, passages as documents, a clean state to work in."""

from langchain_core.documents import Document

from deepera_graph.errors import InputError
from deepera_graph.nodes.intent import UNKNOWN
from deepera_graph.passages import read_passages
from deepera_graph.state import State, Update


def receive(state: State) -> Update:
    """Check the question and forget what an earlier turn on the same thread left behind.

    Raises:
        InputError: The question is blank, or a passage cannot be used.
    """
    question: object = state.get("question")
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"question must not be empty, got {question!r}")
    return {
        "passages": _documents(state.get("passages")),
        "intent": {"fields": UNKNOWN, "status": "fallback", "cause": "no passages"},
        "judgements": None,
        "summaries": None,
        "usage": None,
        "ranking": [],
        "left_out": [],
        "documents": [],
        "answer": None,
        "fallback": None,
    }


def _documents(passages: object) -> list[Document]:
    """Take documents as they are; strings and dicts, as they come over HTTP, become documents."""
    if not isinstance(passages, list | tuple):
        raise InputError(f"passages must be a list, got {passages!r:.80}")
    if all(isinstance(passage, Document) for passage in passages):
        return list(passages)
    return [passage.to_document() for passage in read_passages(passages)]
