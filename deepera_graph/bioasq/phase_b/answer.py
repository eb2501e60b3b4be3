"""Phase B of BioASQ as a LangGraph graph: exact and ideal answers from a question's snippets.

receive -> exact -> ideal -> finish; with query template T1 exact and ideal at once, for a summary
ideal alone, and without snippets neither. What could not be answered is put together from the
snippets by rules, and told so (`fallback`).

Source:
    BioASQ task 13b, phase B: http://participants-area.bioasq.org/general_information/Task13b
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END, START, StateGraph

from deepera_graph.agents.role import RoleNode, wrap_role
from deepera_graph.agents.run import AgentRun, Batched, made_by, make_manifest
from deepera_graph.bioasq.phase_b import steps
from deepera_graph.bioasq.phase_b.answered import TypedAnswer
from deepera_graph.bioasq.phase_b.extract import extract_exact, extract_ideal
from deepera_graph.bioasq.phase_b.roles import (
    ExactAnswered,
    IdealAnswered,
    TypedAnswerTask,
    TypedBackend,
    typed_backend,
)
from deepera_graph.bioasq.phase_b.steps import TypedInput, TypedOutput, TypedState
from deepera_graph.bioasq.questions import (
    BioasqQuestion,
    ExactAnswer,
    QuestionType,
    list_questions,
    refuse_overlap,
)
from deepera_graph.bioasq.settings import TypedKwargs, TypedSettings
from deepera_graph.budget import Limiter
from deepera_graph.errors import AnswerError, InputError
from deepera_graph.schema import Backend
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.usage import Usage

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


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
    chosen = TypedSettings.of(settings)
    limiter = Limiter(chosen.max_concurrency)
    kept = None if roles.name == EXTRACTIVE else cache
    wrapped = partial(wrap_role, limiter=limiter, cache=kept, fingerprint=roles.fingerprint)

    graph = StateGraph(TypedState, input_schema=TypedInput, output_schema=TypedOutput)
    graph.add_node("receive", partial(steps.receive, settings=chosen))
    graph.add_node(
        "exact",
        RoleNode(
            "exact",
            ask=steps.ask,
            role=wrapped("bioasq exact", roles.exact, ExactAnswered),
            record=partial(steps.record_exact, roles=roles),
            on_failure=partial(steps.exact_failed, settings=chosen),
            run_name=lambda state: f"exact answer ({state['type']})",
        ),
    )
    graph.add_node(
        "ideal",
        RoleNode(
            "ideal",
            ask=steps.ask,
            role=wrapped("bioasq ideal", roles.ideal, IdealAnswered),
            record=partial(steps.record_ideal, roles=roles),
            on_failure=partial(steps.ideal_failed, settings=chosen),
            run_name=lambda state: f"ideal answer ({state['type']})",
        ),
    )
    graph.add_edge(START, "receive")
    graph.add_conditional_edges(
        "receive", partial(steps.first_roles, hints=roles.hints), ["exact", "ideal", END]
    )
    graph.add_conditional_edges("exact", lambda _: "ideal" if roles.hints else END, ["ideal", END])
    graph.add_edge("ideal", END)
    return graph.compile(name="DeepEra typed answers")


def as_typed_backend(given: TypedBackend | Backend | BaseChatModel | str) -> TypedBackend:
    """Return roles as they are, and those of a chat model."""
    return given if isinstance(given, TypedBackend) else typed_backend(given)


EXTRACTIVE = "extractive"


class _Extracts(Runnable[TypedAnswerTask, Any]):
    """A role played by a function of the task; it costs nothing."""

    def __init__(self, extract: Callable[[TypedAnswerTask], Any]) -> None:
        self._extract = extract

    def invoke(
        self, input: TypedAnswerTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
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


class TypedAnswerer(Batched[BioasqQuestion, TypedAnswer]):
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

    settings: TypedSettings

    def __init__(
        self,
        backend: TypedBackend | Backend | BaseChatModel | str | None = None,
        *,
        cache: JudgementCache | None = None,
        **settings: Unpack[TypedKwargs],
    ) -> None:
        self.backend = extractive_backend() if backend is None else as_typed_backend(backend)
        self.settings = TypedSettings.of(settings)
        self.graph = build_answer_graph(self.backend, self.settings, cache=cache)

    def answer(
        self, question: BioasqQuestion, *, config: RunnableConfig | None = None
    ) -> TypedAnswer:
        """Answer one question.

        Args:
            question: With its snippets; answers in it are not looked at.
            config: A LangChain config: callbacks, tags, metadata, `max_concurrency`.

        Raises:
            InputError: It is no question with snippets, or an example of the prompts.
        """
        return self.run(question, config).finish()

    async def aanswer(
        self, question: BioasqQuestion, *, config: RunnableConfig | None = None
    ) -> TypedAnswer:
        """Do what `answer` does, in the running loop."""
        return await self.run(question, config).afinish()

    def run(self, question: BioasqQuestion, config: RunnableConfig | None = None) -> "_Run":
        """Return the run of one question."""
        return _Run(self, question, config)

    @property
    def questions_at_once(self) -> int:
        """How many questions of a batch are worked on at the same time, >= 1."""
        return self.settings.max_concurrency

    def most_calls(self, questions: Iterable[BioasqQuestion]) -> int:
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

    def check(self, questions: object) -> list[BioasqQuestion]:
        """Return the questions; raise `InputError` for what is none, or an example."""
        asked = list_questions(questions)
        for one in asked:
            if not isinstance(one, BioasqQuestion):
                raise InputError(
                    f"question must be a BioasqQuestion with its snippets, got {type(one).__name__}"
                )
        refuse_overlap(self.backend.examples, asked)
        return asked


class _Run(AgentRun[TypedAnswer]):
    name, modes = "DeepEra typed answer", ("values",)

    def __init__(
        self, answerer: TypedAnswerer, question: BioasqQuestion, config: RunnableConfig | None
    ) -> None:
        answerer.check([question])
        self._answerer, self._asked = answerer, question
        given: TypedInput = {
            "type": question.type,
            "question": question.body,
            "snippets": [one.text for one in question.snippets],
            "documents": [one.document for one in question.snippets],
        }
        super().__init__(answerer.graph, given, config, answerer.settings)

    def result(self) -> TypedAnswer:
        exact, ideal = self._state["exact"], self._state["ideal"]
        return TypedAnswer(
            question=self._asked,
            exact=_as_exact(self._asked.type, exact["names"]),
            ideal=ideal["names"][0] if ideal["names"] else "",
            exact_status=exact["status"],
            ideal_status=ideal["status"],
            problems=tuple(self._state["problems"]),
            usage=self.usage,
            seconds=self.seconds,
            manifest=self._answerer.manifest(),
            stands_in=any(one["status"] == "extracted" and one["cause"] for one in (exact, ideal)),
        )


def _as_exact(kind: QuestionType, names: Sequence[str]) -> ExactAnswer | None:
    if not names:
        return None
    return names[0] if kind == "yesno" else tuple((one,) for one in names)
