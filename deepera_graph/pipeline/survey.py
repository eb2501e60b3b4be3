"""Survey node: all passages of a question seen together, with notes on each for its judge."""

from collections.abc import Callable, Sequence
from operator import itemgetter

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig

from deepera_graph.budget import meter_of
from deepera_graph.errors import BudgetError, RoleError
from deepera_graph.passages import judged_windows, shown_text
from deepera_graph.pipeline.intent import receive
from deepera_graph.pipeline.state import State, SurveyRecord, Update
from deepera_graph.schema import PassageText, Survey, SurveyTask
from deepera_graph.settings import Settings

_Key = tuple[str, str, str]
ReadAhead = Callable[[Sequence[PassageText]], None]
_key = itemgetter("title", "section", "text")


def receive_unsurveyed(
    state: State,
    config: RunnableConfig,
    *,
    settings: Settings,
    read_ahead: ReadAhead | None = None,
) -> Update:
    """Begin as without a surveyor, and forget the survey of an earlier turn, too.

    A surveyor that can *read_ahead* begins, while the intent is asked for; not if the budget is
    spent, as it will not be asked then.

    Raises:
        InputError: The question is blank, or a passage cannot be used.
    """
    none: SurveyRecord = {"status": "none", "cause": "nothing to judge"}
    received = receive(state)
    if read_ahead is not None and not meter_of(config).reached:
        read_ahead(list(_distinct(received["passages"], settings).values()))
    return {**received, "survey": none, "notes": []}


def ask(state: State, *, settings: Settings) -> SurveyTask:
    """Show the surveyor what is judged, each text once, sorted: no place, no id, no count."""
    distinct = _distinct(state["passages"], settings)
    return {
        "question": state["question"],
        "intent": state["intent"]["fields"],
        "passages": [distinct[key] for key in sorted(distinct)],
    }


def record(state: State, survey: Survey, *, settings: Settings) -> Update:
    """Keep the notes, one set for every window that is judged; equal windows have equal ones."""
    keys: list[_Key] = [_key(text) for text in _texts(state["passages"], settings)]
    notes_of = dict(zip(sorted(set(keys)), survey.notes, strict=True))
    status = "repaired" if survey.repaired else "read"
    return {
        "survey": {"status": status, "cause": survey.problem},
        "notes": [{name: float(value) for name, value in notes_of[key].items()} for key in keys],
    }


def rescue(state: State, error: RoleError) -> Update:
    """Go on without notes: a judge does without them."""
    status = "skipped_budget" if isinstance(error, BudgetError) else "failed"
    return {"survey": {"status": status, "cause": str(error)}, "notes": []}


def find_problem(task: SurveyTask, survey: Survey) -> str:
    """Say why a survey does not fit its passages, or nothing."""
    n_notes, n_passages = len(survey.notes), len(task["passages"])
    if n_notes == n_passages:
        return ""
    return f"unusable answer: {n_notes} notes on {n_passages} passages"


def _distinct(passages: Sequence[Document], settings: Settings) -> dict[_Key, PassageText]:
    return {_key(text): text for text in _texts(passages, settings)}


def _texts(passages: Sequence[Document], settings: Settings) -> list[PassageText]:
    found = judged_windows(passages, settings.max_passage_chars)
    return [shown_text(passages[one.place], one.start, one.end) for one in found]
