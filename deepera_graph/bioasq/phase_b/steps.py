"""The steps of phase B, one function or node each; `answer.py` is the wiring and the front door."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, NotRequired

from langgraph.graph import END
from typing_extensions import TypedDict

from deepera_graph.bioasq.phase_b.extract import extract_exact, extract_ideal
from deepera_graph.bioasq.phase_b.replies import fit_ideal, fit_names
from deepera_graph.bioasq.phase_b.roles import (
    ExactAnswered,
    IdealAnswered,
    Part,
    TypedAnswerTask,
    TypedBackend,
)
from deepera_graph.bioasq.questions import QuestionType
from deepera_graph.bioasq.settings import TypedSettings
from deepera_graph.errors import BudgetError, CallError, RoleError
from deepera_graph.pipeline.state import append
from deepera_graph.schema import with_repair_note
from deepera_graph.usage import UsageRecord, merge_usage

PartStatus = Literal[
    "answered", "extracted", "failed", "skipped_budget", "no_snippets", "not_asked"
]
LONG_SNIPPET = 600  # characters; a sentence has about 150


class PartRecord(TypedDict):
    """One of the two answers: its names (or its text alone), how it came about, and notes."""

    names: list[str]
    status: PartStatus
    cause: str
    notes: list[str]


class TypedInput(TypedDict):
    """What goes in: the type and the body of a question, and the texts of its snippets.

    `documents` says for each snippet what it is from; without it each is from one of its own.
    """

    type: QuestionType
    question: str
    snippets: list[str]
    documents: NotRequired[list[str]]


class TypedOutput(TypedDict):
    """What comes out."""

    exact: PartRecord
    ideal: PartRecord
    problems: Annotated[list[str], append]
    usage: Annotated[dict[str, UsageRecord], merge_usage]


class TypedState(TypedInput, TypedOutput):
    """Everything that travels; `shown` are the snippets that are read."""

    shown: list[str]


def _part(
    status: PartStatus, names: Sequence[str] = (), cause: str = "", notes: Sequence[str] = ()
) -> PartRecord:
    return {"names": [*names], "status": status, "cause": cause, "notes": [*notes]}


def receive(state: TypedState, *, settings: TypedSettings) -> dict[str, Any]:
    """Choose the snippets that are read, see `choose_read`."""
    texts = [" ".join(one.split()) for one in state["snippets"]]
    documents = state.get("documents") or [str(place) for place in range(len(texts))]
    distinct = _without_repeats(texts)
    chosen = choose_read(texts, documents, distinct, settings)
    shown = [texts[place][: settings.max_characters] for place in chosen]
    problems = []
    if len(shown) < len(distinct):
        problems.append(
            f"{len(distinct)} snippets: {len(shown)} are read, one of each document first, and "
            f"those above {LONG_SNIPPET} characters last"
        )
    elif shown and len(shown[0]) < len(texts[chosen[0]]):
        problems.append(f"the snippet has {len(texts[chosen[0]])} characters: the first are read")
    has_exact = state["type"] != "summary"
    status: PartStatus = "failed" if shown else "no_snippets"
    cause = "" if shown else "the question has no snippet"
    return {
        "shown": shown,
        "exact": _part(status, cause=cause) if has_exact else _part("not_asked"),
        "ideal": _part(status, cause=cause),
        "problems": problems if shown else ["the question has no snippet to answer it from"],
        "usage": None,
    }


def choose_read(
    texts: Sequence[str],
    documents: Sequence[str],
    distinct: Sequence[int],
    settings: TypedSettings,
) -> list[int]:
    """Return the places of the snippets that are read, in their order."""
    # Where not all have room, every document keeps one first, its first that is not long; then come
    # the others, the long ones last. One that has no room for its characters is passed over.
    kept: dict[str, int] = {}
    for place in sorted(distinct, key=lambda one: (_is_long(texts[one]), one)):
        kept.setdefault(documents[place], place)
    keepers = {*kept.values()}
    wanted = sorted(distinct, key=lambda one: (one not in keepers, _is_long(texts[one]), one))
    chosen: list[int] = []
    room = settings.max_characters
    for place in wanted:
        if len(chosen) < settings.max_snippets and (not chosen or len(texts[place]) <= room):
            chosen.append(place)
            room -= len(texts[place])
    return sorted(chosen)


def _without_repeats(texts: Sequence[str]) -> list[int]:
    """Return the places of texts that say something: none twice, none that is part of another."""
    # Of a long text a part is kept beside it, as the long one may not be read.
    first: dict[str, int] = {}
    for place, one in enumerate(texts):
        if one:
            first.setdefault(one.casefold(), place)
    whole = "\n".join(one for one in first if not _is_long(one))
    return [place for one, place in first.items() if whole.count(one) <= (not _is_long(one))]


def _is_long(text: str) -> bool:
    return len(text) > LONG_SNIPPET


def first_roles(state: TypedState, *, hints: bool) -> list[str] | str:
    """Say which roles come first; *hints*: whether the ideal answer waits for the exact one."""
    if not state["shown"]:
        return END
    if state["type"] == "summary":
        return "ideal"
    return "exact" if hints else ["exact", "ideal"]


def ask(state: TypedState) -> TypedAnswerTask:
    """Show a role the question and its snippets, and the exact answer if there is one."""
    return {
        "type": state["type"],
        "question": state["question"],
        "snippets": state["shown"],
        "exact": state["exact"]["names"] or None,
    }


def record_exact(
    state: TypedState, answer: ExactAnswered, *, roles: TypedBackend
) -> dict[str, Any]:
    """Keep an exact answer as a submission may have it, and what was mended."""
    names, notes = _fit_exact(state["type"], answer.names)
    if not names:
        return _failed("exact", "no usable name")
    told = [*answer.notes, *notes, with_repair_note("", answer)]
    return _recorded("exact", names, roles.status, told)


def _fit_exact(kind: QuestionType, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return an exact answer as a submission may have it; none if there is nothing usable."""
    if kind == "yesno":
        said = [one.strip().lower() for one in names[:1]]
        return (said, []) if said in (["yes"], ["no"]) else ([], [])
    return fit_names(names, factoid=kind == "factoid")


def record_ideal(
    state: TypedState, answer: IdealAnswered, *, roles: TypedBackend
) -> dict[str, Any]:
    """Keep an ideal answer of at most 200 words."""
    text, notes = fit_ideal(" ".join(answer.text.split()))
    if not text:
        return {**_failed("ideal", "no words"), "problems": ["ideal: the answer is empty"]}
    told = [*answer.notes, *notes, with_repair_note("", answer)]
    return _recorded("ideal", [text], roles.status, told)


def _recorded(
    part: Part, names: list[str], status: PartStatus, notes: Iterable[str]
) -> dict[str, Any]:
    told = [one for one in notes if one]
    return {part: _part(status, names, notes=told), "problems": [f"{part}: {one}" for one in told]}


def exact_failed(state: TypedState, error: RoleError, *, settings: TypedSettings) -> dict[str, Any]:
    """Put an exact answer together from the snippets, or say that there is none, and why."""
    names: list[str] = []
    notes: list[str] = []
    if _may_stand_in(error, settings):
        names, notes = _fit_exact(state["type"], extract_exact(ask(state)).names)
    return _instead("exact", names, error, notes)


def ideal_failed(state: TypedState, error: RoleError, *, settings: TypedSettings) -> dict[str, Any]:
    """Put an ideal answer together from the snippets, or say that there is none, and why."""
    text, notes = "", list[str]()
    if _may_stand_in(error, settings):
        text, notes = fit_ideal(extract_ideal(ask(state)).text)
    return _instead("ideal", [text] if text else [], error, notes)


def _may_stand_in(error: RoleError, settings: TypedSettings) -> bool:
    """Whether rules may answer: not for a model that cannot be reached for any question."""
    return settings.fallback and not (isinstance(error, CallError) and error.unusable)


def _instead(
    part: Part, names: list[str], error: RoleError, notes: Sequence[str]
) -> dict[str, Any]:
    """Return what rules answered for a role that failed; that it failed, if they have nothing."""
    if not names:
        status: PartStatus = "skipped_budget" if isinstance(error, BudgetError) else "failed"
        return _failed(part, str(error), status)
    told = f"{part}: {error}; put together from the snippets by rules instead"
    record = _part("extracted", names, str(error), notes)
    return {part: record, "problems": [told, *(f"{part}: {one}" for one in notes)]}


def _failed(part: Part, cause: str, status: PartStatus = "failed") -> dict[str, Any]:
    return {part: _part(status, cause=cause), "problems": [f"{part}: {cause}"]}
