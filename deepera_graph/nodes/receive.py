"""Receive node: a question that can be asked, and a clean state to work in."""

from deepera_graph.errors import InputError
from deepera_graph.nodes.intent import UNKNOWN
from deepera_graph.state import State, Update


def receive(state: State) -> Update:
    """Check the question and forget what an earlier turn on the same thread left behind.

    Raises:
        InputError: The question is not a string or is blank.
    """
    question: object = state.get("question")
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"question must not be empty, got {question!r}")
    if not isinstance(state.get("passages"), list):
        raise InputError(f"passages must be a list, got {state.get('passages')!r:.80}")
    return {
        "intent": {"fields": UNKNOWN, "status": "fallback", "cause": "no passages"},
        "judgements": None,
        "summaries": None,
        "usage": None,
        "ranking": [],
        "documents": [],
        "answer": None,
        "fallback": None,
    }
