"""Phase B of BioASQ as a LangGraph graph: exact and ideal answers from a question's snippets.

receive -> exact -> ideal -> finish; with query template T1 exact and ideal at once, for a summary
ideal alone, and without snippets neither. What could not be answered is put together from the
snippets by rules, and told so (`fallback`).

Source:
    BioASQ task 13b, phase B: http://participants-area.bioasq.org/general_information/Task13b
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from deepera_graph.bioasq.extract import extract_exact, extract_ideal
from deepera_graph.bioasq.questions import (
    ExactAnswer,
    Question,
    QuestionType,
    list_questions,
)
from deepera_graph.bioasq.replies import fit_ideal, fit_names
from deepera_graph.bioasq.roles import (
    AnswerTask,
    ExactAnswered,
    IdealAnswered,
    Part,
    TypedBackend,
    typed_backend,
)
from deepera_graph.bioasq.shots import refuse_overlap
from deepera_graph.budget import Budget, Limiter, ado_many, do_many, stream_many
from deepera_graph.cache.store import JudgementCache
from deepera_graph.errors import AnswerError, BudgetError, CallError, InputError, RoleError
from deepera_graph.pipeline.call import RoleNode, wrap_role
from deepera_graph.pipeline.state import append
from deepera_graph.runner import made_by, make_manifest, share_limits
from deepera_graph.schema import Backend, with_repair_note
from deepera_graph.settings import check_at_least, read_fields
from deepera_graph.usage import Usage, UsageRecord, merge_usage

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

PartStatus = Literal[
    "answered", "extracted", "failed", "skipped_budget", "no_snippets", "not_asked"
]
Outcome = Literal["answered", "extracted", "partly_extracted", "failed"]
_USABLE = ("answered", "extracted", "not_asked")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedSettings:
    """How questions are answered.

    Attributes:
        max_snippets: Most snippets of a question that are read, >= 1, the first ones.
        max_characters: Most characters of them, >= 1000; at least one snippet is read.
        fallback: Whether an answer that failed, or that the budget did not allow, is put together
            from the snippets by rules instead, and called ``extracted``; never where the model
            cannot be reached at all, or refuses the key.
        max_concurrency: Most model calls in flight, >= 1.
        budget: What all questions of a batch may cost; None is no limit.

    Raises:
        SettingsError: A value is out of range.
    """

    max_snippets: int = 50
    max_characters: int = 24_000
    fallback: bool = True
    max_concurrency: int = 16
    budget: Budget | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_at_least("max_snippets", self.max_snippets, 1)
        check_at_least("max_characters", self.max_characters, 1000)
        check_at_least("max_concurrency", self.max_concurrency, 1)
        if self.budget is not None:
            object.__setattr__(self, "budget", read_fields("budget", Budget, self.budget))

    @property
    def limits(self) -> Budget | None:
        """The budget, read."""
        return self.budget if isinstance(self.budget, Budget) else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        return {
            "max_snippets": self.max_snippets,
            "max_characters": self.max_characters,
            "fallback": self.fallback,
            "max_concurrency": self.max_concurrency,
            "budget": self.limits.to_dict() if self.limits else None,
        }


class TypedKwargs(TypedDict, total=False):
    """The settings as keyword arguments; see `TypedSettings`."""

    max_snippets: int
    max_characters: int
    fallback: bool
    max_concurrency: int
    budget: Budget | Mapping[str, Any] | None


class PartRecord(TypedDict):
    """One of the two answers: its names (or its text alone), how it came about, and notes."""

    names: list[str]
    status: PartStatus
    cause: str
    notes: list[str]


class TypedInput(TypedDict):
    """What goes in: the type and the body of a question, and the texts of its snippets."""

    type: QuestionType
    question: str
    snippets: list[str]


class TypedOutput(TypedDict):
    """What comes out."""

    exact: PartRecord
    ideal: PartRecord
    problems: Annotated[list[str], append]
    usage: Annotated[dict[str, UsageRecord], merge_usage]


class TypedState(TypedInput, TypedOutput):
    """Everything that travels; `shown` are the snippets that are read."""

    shown: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedAnswer:
    """The answers to one question, and how they came about.

    Attributes:
        question: The question as it was asked.
        exact: ``yes`` or ``no``; entities, best first; None for a summary, or if there is none.
        ideal: At most 200 words; empty if there is none.
        exact_status, ideal_status: ``answered`` by the roles, ``extracted`` from the snippets by
            rules, ``failed``, ``skipped_budget``, ``no_snippets``; ``not_asked`` for the exact
            answer of a summary.
        problems: What a reader should know: what failed, what was left out or mended.
        usage: What each role cost.
        seconds: How long it took.
        manifest: Backend, style, prompts, settings, versions.
        stands_in: Whether rules answered for a role that failed or that the budget did not allow.
    """

    question: Question
    exact: ExactAnswer | None
    ideal: str
    exact_status: PartStatus
    ideal_status: PartStatus
    problems: tuple[str, ...]
    usage: Mapping[str, Usage]
    seconds: float
    manifest: Mapping[str, Any] = field(default_factory=dict)
    stands_in: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether a submission may have it: with an ideal answer, and the exact one if any."""
        return self.exact_status in _USABLE and self.ideal_status in _USABLE

    @property
    def is_settled(self) -> bool:
        """Whether asking again would change nothing: complete, and by the roles themselves."""
        return self.is_complete and not self.stands_in

    @property
    def outcome(self) -> Outcome:
        """How the question ended, in a word."""
        if not self.is_complete:
            return "failed"
        parts = {self.exact_status, self.ideal_status} - {"not_asked"}
        if len(parts) > 1:
            return "partly_extracted"
        return "answered" if parts == {"answered"} else "extracted"

    @property
    def total_usage(self) -> Usage:
        """What all roles cost together."""
        return sum(self.usage.values(), Usage())

    def to_question(self) -> Question:
        """Return the question with its answers, as a submission has it."""
        asked = self.question
        return Question(
            id=asked.id,
            type=asked.type,
            body=asked.body,
            documents=asked.documents,
            snippets=asked.snippets,
            exact_answer=self.exact,
            ideal_answers=(self.ideal,) if self.ideal else (),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: the answers with their status, without the snippets."""
        exact = self.exact
        plain = exact if exact is None or isinstance(exact, str) else [[*one] for one in exact]
        return {
            "id": self.question.id,
            "type": self.question.type,
            "outcome": self.outcome,
            "exact_answer": plain,
            "exact_status": self.exact_status,
            "ideal_answer": self.ideal,
            "ideal_status": self.ideal_status,
            "problems": [*self.problems],
            "usage": {name: used.record() for name, used in self.usage.items()},
            "seconds": self.seconds,
        }


def build_answer_graph(
    backend: TypedBackend | Backend | BaseChatModel | str,
    settings: TypedSettings | Mapping[str, Any] | None = None,
    *,
    cache: JudgementCache | None = None,
) -> "CompiledStateGraph[TypedState, None, TypedInput, TypedOutput]":
    """Compile phase B for one backend.

    Args:
        backend: The roles, or the chat model that plays both.
        settings: `TypedSettings`, or some of them by name.
        cache: Where replies are kept; none are if None.

    Raises:
        SettingsError: The backend cannot be built, or a setting is out of range.
    """
    roles = as_typed_backend(backend)
    chosen = read_fields("settings", TypedSettings, settings or {})
    limiter = Limiter(chosen.max_concurrency)
    kept = None if roles.name == EXTRACTIVE else cache
    wrapped = partial(wrap_role, limiter=limiter, cache=kept, roles=roles)

    graph = StateGraph(TypedState, input_schema=TypedInput, output_schema=TypedOutput)
    graph.add_node("receive", partial(_receive, settings=chosen))
    graph.add_node(
        "exact",
        RoleNode(
            "exact",
            ask=_ask,
            role=wrapped("bioasq exact", roles.exact, ExactAnswered),
            record=partial(_record_exact, roles=roles),
            on_failure=partial(_exact_failed, settings=chosen),
            run_name=lambda state: f"exact answer ({state['type']})",
        ),
    )
    graph.add_node(
        "ideal",
        RoleNode(
            "ideal",
            ask=_ask,
            role=wrapped("bioasq ideal", roles.ideal, IdealAnswered),
            record=partial(_record_ideal, roles=roles),
            on_failure=partial(_ideal_failed, settings=chosen),
            run_name=lambda state: f"ideal answer ({state['type']})",
        ),
    )
    graph.add_edge(START, "receive")
    graph.add_conditional_edges(
        "receive", partial(_first_roles, hints=roles.hints), ["exact", "ideal", END]
    )
    graph.add_conditional_edges("exact", lambda _: "ideal" if roles.hints else END, ["ideal", END])
    graph.add_edge("ideal", END)
    return graph.compile(name="DeepEra typed answers")


def as_typed_backend(given: TypedBackend | Backend | BaseChatModel | str) -> TypedBackend:
    """Return roles as they are, and those of a chat model."""
    return given if isinstance(given, TypedBackend) else typed_backend(given)


def _none(status: PartStatus, cause: str = "") -> PartRecord:
    return {"names": [], "status": status, "cause": cause, "notes": []}


def _receive(state: TypedState, *, settings: TypedSettings) -> dict[str, Any]:
    """Choose the snippets that are read: the first ones, each text once."""
    texts = [" ".join(one.split()) for one in state["snippets"]]
    distinct = [*dict.fromkeys(one for one in texts if one)]
    shown: list[str] = []
    for one in distinct[: settings.max_snippets]:
        if shown and sum(map(len, shown)) + len(one) > settings.max_characters:
            break
        shown.append(one[: settings.max_characters])
    problems = []
    if len(shown) < len(distinct):
        problems.append(f"{len(distinct)} snippets: the first {len(shown)} are read")
    elif shown and sum(map(len, shown)) < sum(map(len, distinct)):
        problems.append(f"the snippet has {len(distinct[0])} characters: the first are read")
    has_exact = state["type"] != "summary"
    status: PartStatus = "failed" if shown else "no_snippets"
    cause = "" if shown else "the question has no snippet"
    return {
        "shown": shown,
        "exact": _none(status, cause) if has_exact else _none("not_asked"),
        "ideal": _none(status, cause),
        "problems": problems if shown else ["the question has no snippet to answer it from"],
        "usage": None,
    }


def _first_roles(state: TypedState, *, hints: bool) -> list[str] | str:
    if not state["shown"]:
        return END
    if state["type"] == "summary":
        return "ideal"
    return "exact" if hints else ["exact", "ideal"]


def _ask(state: TypedState) -> AnswerTask:
    return {
        "type": state["type"],
        "question": state["question"],
        "snippets": state["shown"],
        "exact": state["exact"]["names"] or None,
    }


def _record_exact(
    state: TypedState, answer: ExactAnswered, *, roles: TypedBackend
) -> dict[str, Any]:
    names, notes = _fit_exact(state["type"], answer.names)
    if not names:
        return {"exact": _none("failed", "no usable name"), "problems": ["exact: no usable name"]}
    told = [*answer.notes, *notes, with_repair_note("", answer)]
    return _recorded("exact", names, roles.status, told)


def _fit_exact(kind: QuestionType, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return an exact answer as a submission may have it; none if there is nothing usable."""
    if kind == "yesno":
        said = [one.strip().lower() for one in names[:1]]
        return (said, []) if said in (["yes"], ["no"]) else ([], [])
    return fit_names(names, factoid=kind == "factoid")


def _record_ideal(
    state: TypedState, answer: IdealAnswered, *, roles: TypedBackend
) -> dict[str, Any]:
    text, notes = fit_ideal(" ".join(answer.text.split()))
    if not text:
        return {"ideal": _none("failed", "no words"), "problems": ["ideal: the answer is empty"]}
    told = [*answer.notes, *notes, with_repair_note("", answer)]
    return _recorded("ideal", [text], roles.status, told)


def _recorded(
    part: Part, names: list[str], status: PartStatus, notes: Iterable[str]
) -> dict[str, Any]:
    told = [one for one in notes if one]
    record: PartRecord = {"names": names, "status": status, "cause": "", "notes": told}
    return {part: record, "problems": [f"{part}: {one}" for one in told]}


def _exact_failed(
    state: TypedState, error: RoleError, *, settings: TypedSettings
) -> dict[str, Any]:
    """Put an exact answer together from the snippets, or say that there is none, and why."""
    if settings.fallback and not _is_unreachable(error):
        found = extract_exact(_ask(state))
        names, notes = _fit_exact(state["type"], found.names)
        if names:
            return _instead("exact", names, error, notes)
    return _missed("exact", error)


def _ideal_failed(
    state: TypedState, error: RoleError, *, settings: TypedSettings
) -> dict[str, Any]:
    """Put an ideal answer together from the snippets, or say that there is none, and why."""
    if settings.fallback and not _is_unreachable(error):
        text, notes = fit_ideal(extract_ideal(_ask(state)).text)
        if text:
            return _instead("ideal", [text], error, notes)
    return _missed("ideal", error)


def _is_unreachable(error: RoleError) -> bool:
    """Whether no question can succeed: rules do not stand in for a model that is not there."""
    return isinstance(error, CallError) and error.unusable


def _instead(
    part: Part, names: list[str], error: RoleError, notes: Sequence[str]
) -> dict[str, Any]:
    record: PartRecord = {
        "names": names,
        "status": "extracted",
        "cause": str(error),
        "notes": [*notes],
    }
    told = f"{part}: {error}; put together from the snippets by rules instead"
    return {part: record, "problems": [told, *(f"{part}: {one}" for one in notes)]}


def _missed(part: Part, error: RoleError) -> dict[str, Any]:
    status: PartStatus = "skipped_budget" if isinstance(error, BudgetError) else "failed"
    return {part: _none(status, str(error)), "problems": [f"{part}: {error}"]}


EXTRACTIVE = "extractive"


class _Extracts(Runnable[AnswerTask, Any]):
    """A role played by a function of the task; it costs nothing."""

    def __init__(self, extract: Callable[[AnswerTask], Any]) -> None:
        self._extract = extract

    def invoke(self, input: AnswerTask, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Put an answer together."""
        found = self._extract(input)
        if found is None:
            raise AnswerError("the snippets name nothing of the kind asked for", usage=Usage())
        return found.model_copy(update={"usage": Usage()})


def extractive_backend() -> TypedBackend:
    """Return roles that put answers together from the snippets by rules, without any model.

    Yes or no follows the direction of the findings, names are those of the right kind that the
    snippets repeat, and the ideal answer is made of their sentences. It says so: the status of its
    answers is ``extracted``.
    """
    return TypedBackend(
        name=EXTRACTIVE,
        exact=_Extracts(lambda task: found if (found := extract_exact(task)).names else None),
        ideal=_Extracts(extract_ideal),
        status="extracted",
        spec={"kind": EXTRACTIVE},
    )


class TypedAnswerer:
    """Answers BioASQ questions from their snippets: phase B.

    ``TypedAnswerer(typed_backend("openai:gpt-5-mini", style=2)).answer(question).exact``

    Args:
        backend: The roles: `typed_backend`, `extractive_backend` (the default), or the chat model
            that is to play both.
        cache: Where replies are kept, so that an equal one is not paid for twice.
        settings: See `TypedSettings`: `budget`, `fallback`, `max_snippets` and others.

    Raises:
        SettingsError: As `build_answer_graph`.
    """

    def __init__(
        self,
        backend: TypedBackend | Backend | BaseChatModel | str | None = None,
        *,
        cache: JudgementCache | None = None,
        **settings: Unpack[TypedKwargs],
    ) -> None:
        self.backend = extractive_backend() if backend is None else as_typed_backend(backend)
        self.settings = read_fields("settings", TypedSettings, settings or {})
        self.graph = build_answer_graph(self.backend, self.settings, cache=cache)

    def answer(self, question: Question, *, config: RunnableConfig | None = None) -> TypedAnswer:
        """Answer one question.

        Args:
            question: With its snippets; answers in it are not looked at.
            config: A LangChain config: callbacks, tags, metadata, `max_concurrency`.

        Raises:
            InputError: It is no question with snippets, or an example of the prompts.
        """
        self._check([question])
        started = perf_counter()
        state = self.graph.invoke(_as_input(question), self._shared(config))
        return self._result(question, state, started)

    async def aanswer(
        self, question: Question, *, config: RunnableConfig | None = None
    ) -> TypedAnswer:
        """Do what `answer` does, in the running loop."""
        self._check([question])
        started = perf_counter()
        state = await self.graph.ainvoke(_as_input(question), self._shared(config))
        return self._result(question, state, started)

    def batch(
        self, questions: Sequence[Question], *, config: RunnableConfig | None = None
    ) -> list[TypedAnswer]:
        """Answer many questions; results in the same order.

        `max_concurrency` and `budget` hold for all questions together.

        Raises:
            InputError: There is no list of questions, or one is an example of the prompts.
        """
        asked, shared = self._check(questions), self._shared(config)
        return do_many(partial(self.answer, config=shared), asked, self.settings.max_concurrency)

    async def abatch(
        self, questions: Sequence[Question], *, config: RunnableConfig | None = None
    ) -> list[TypedAnswer]:
        """Do what `batch` does, in the running loop."""
        asked, shared = self._check(questions), self._shared(config)
        return await ado_many(
            partial(self.aanswer, config=shared), asked, self.settings.max_concurrency
        )

    def stream(
        self, questions: Sequence[Question], *, config: RunnableConfig | None = None
    ) -> Iterator[TypedAnswer]:
        """Do what `batch` does, and yield each answer as soon as it is there, in any order."""
        asked, shared = self._check(questions), self._shared(config)
        return stream_many(
            partial(self.answer, config=shared), asked, self.settings.max_concurrency
        )

    def most_calls(self, questions: Iterable[Question]) -> int:
        """Return the most model calls these questions take, if every reply is usable."""
        if self.backend.name == EXTRACTIVE:
            return 0
        return sum(1 + (one.type != "summary") for one in questions if one.snippets)

    def made_by(self) -> str:
        """Return 16 hex digits that name the roles and the settings, without any secret."""
        return made_by(self.backend, self.settings)

    def manifest(self) -> dict[str, Any]:
        """Return what made the answers: backend, style, prompts, settings, versions."""
        return make_manifest(self.backend, self.settings)

    def _check(self, questions: object) -> list[Question]:
        """Return the questions; raise `InputError` for what is none, or an example."""
        asked = list_questions(questions)
        for one in asked:
            if not isinstance(one, Question):
                raise InputError(
                    f"question must be a Question with its snippets, got {type(one).__name__}"
                )
        refuse_overlap(self.backend.examples, asked)
        return asked

    def _shared(self, config: RunnableConfig | None) -> RunnableConfig:
        """Return the config of a run: its budget and its limits."""
        settings = self.settings
        given = share_limits(
            config, max_concurrency=settings.max_concurrency, budget=settings.limits
        )
        given.pop("max_concurrency", None)  # our limiter counts the calls, not LangGraph's
        given["run_name"] = given.get("run_name") or "DeepEra typed answer"
        return given

    def _result(self, question: Question, state: Mapping[str, Any], started: float) -> TypedAnswer:
        exact, ideal = state["exact"], state["ideal"]
        return TypedAnswer(
            question=question,
            exact=_as_exact(question.type, exact["names"]),
            ideal=ideal["names"][0] if ideal["names"] else "",
            exact_status=exact["status"],
            ideal_status=ideal["status"],
            problems=tuple(state["problems"]),
            usage={name: Usage.of(used) for name, used in state["usage"].items()},
            seconds=perf_counter() - started,
            manifest=self.manifest(),
            stands_in=any(one["status"] == "extracted" and one["cause"] for one in (exact, ideal)),
        )


def _as_input(question: Question) -> TypedInput:
    return {
        "type": question.type,
        "question": question.body,
        "snippets": [one.text for one in question.snippets],
    }


def _as_exact(kind: QuestionType, names: Sequence[str]) -> ExactAnswer | None:
    if not names:
        return None
    return names[0] if kind == "yesno" else tuple((one,) for one in names)


def submission_of(answers: Iterable[TypedAnswer]) -> list[Question]:
    """Return the questions that have all their answers, as a submission; the rest is left out."""
    return [one.to_question() for one in answers if one.is_complete]
