"""Going on with a run that was cut short: what is left of it, by what its saver has."""

from typing import TYPE_CHECKING, Literal

from deepera_graph.errors import InputError
from deepera_graph.passages import read_passages
from deepera_graph.state import Question

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

Left = Literal["all", "rest", "nothing"]


def left_of(saved: "StateSnapshot", asked: Question) -> Left:
    """Return what is still to be done of a question.

    Args:
        saved: The last state of its thread.
        asked: The question and its passages, as for a new run.

    Raises:
        InputError: The thread is of another question, or of other passages.
    """
    values = saved.values
    if "question" not in values or "passages" not in values:
        return "all"
    if values["question"] != asked["question"]:
        raise InputError(
            f"the thread to resume is of another question: {values['question']!r:.80}, "
            f"not {asked['question']!r:.80}"
        )
    before, now = read_passages(values["passages"]), read_passages(asked["passages"])
    if [(one.id, one.text) for one in before] != [(one.id, one.text) for one in now]:
        raise InputError("the thread to resume is of other passages")
    return "rest" if saved.next else "nothing"
