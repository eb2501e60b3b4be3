"""Phase B of BioASQ as a LangGraph graph: exact and ideal answers from a question's snippets.

receive -> exact -> ideal -> finish; with query template T1 exact and ideal at once, for a summary
ideal alone, and without snippets neither. What could not be answered is put together from the
snippets by rules, and told so (`fallback`).

Source:
    BioASQ task 13b, phase B: http://participants-area.bioasq.org/general_information/Task13b
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from deepera_graph.agents.journal import Journal
from deepera_graph.agents.role import RoleNode, wrap_role
from deepera_graph.agents.run import AgentRun, Batched, made_by, make_manifest
from deepera_graph.bioasq.phase_b import steps
from deepera_graph.bioasq.phase_b.extract import EXTRACTIVE, extractive_backend
from deepera_graph.bioasq.phase_b.roles import (
    ExactAnswered,
    IdealAnswered,
    TypedBackend,
    typed_backend,
)
from deepera_graph.bioasq.phase_b.steps import PartStatus, TypedInput, TypedOutput, TypedState
from deepera_graph.bioasq.questions import (
    BioasqQuestion,
    ExactAnswer,
    QuestionType,
    list_questions,
    parse_question,
    plain_exact,
    refuse_overlap,
)
from deepera_graph.bioasq.settings import TypedKwargs, TypedSettings
from deepera_graph.errors import InputError
from deepera_graph.schema import Backend
from deepera_graph.settings.budget import Limiter
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.usage import HasUsage, Usage

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

Outcome = Literal["answered", "extracted", "partly_extracted", "failed"]
_USABLE = ("answered", "extracted", "not_asked")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedAnswer(HasUsage):
    """The answers to one question, and how they came about."""

    question: BioasqQuestion  # the question as it was asked
    # ``yes`` or ``no``; entities, best first; None for a summary, or if there is none
    exact: ExactAnswer | None
    ideal: str  # at most 200 words; empty if there is none
    # ``answered`` by the roles, ``extracted`` from the snippets by rules, ``failed``,
    # ``skipped_budget``, ``no_snippets``; ``not_asked`` for the exact answer of a summary
    exact_status: PartStatus
    ideal_status: PartStatus
    problems: tuple[str, ...]  # what a reader should know: what failed, what was left out or mended
    usage: Mapping[str, Usage]  # what each role cost
    seconds: float  # how long it took
    # backend, style, prompts, settings, versions
    manifest: Mapping[str, Any] = field(default_factory=dict)
    # whether rules answered for a role that failed or that the budget did not allow
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

    def to_question(self) -> BioasqQuestion:
        """Return the question with its answers, as a submission has it."""
        ideal = (self.ideal,) if self.ideal else ()
        return replace(self.question, exact_answer=self.exact, ideal_answers=ideal)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: the answers with their status, without the snippets."""
        return {
            "id": self.question.id,
            "type": self.question.type,
            "outcome": self.outcome,
            "exact_answer": plain_exact(self.exact),
            "exact_status": self.exact_status,
            "ideal_answer": self.ideal,
            "ideal_status": self.ideal_status,
            "problems": [*self.problems],
            "usage": {name: used.record() for name, used in self.usage.items()},
            "seconds": self.seconds,
        }


def submission_of(answers: Iterable[TypedAnswer]) -> list[BioasqQuestion]:
    """Return the questions that have all their answers, as a submission; the rest is left out."""
    return [one.to_question() for one in answers if one.is_complete]


_OF_NO_EFFECT = ("budget", "max_concurrency", "fallback")  # on an answer that is there


def digest_of(question: BioasqQuestion) -> str:
    """Return 16 hex digits of what is asked of a question: its type, body and snippets."""
    plain = [question.type, question.body, [one.text for one in question.snippets]]
    return sha256(json.dumps(plain).encode()).hexdigest()[:16]


class AnswerJournal(Journal):
    """Holds the answers to each question, as what *manifest* says makes them; in a file, if any."""

    def __init__(self, path: Path | None, manifest: Mapping[str, Any]) -> None:
        super().__init__(path, {name: _effect_of(value) for name, value in manifest.items()})
        self._manifest = manifest

    def find_done(self, questions: Iterable[BioasqQuestion]) -> dict[str, TypedAnswer]:
        """Return by id the answers that need not be asked for again."""
        # Those are complete, to the same question with the same snippets, and none of their parts
        # stands in for one that failed or that a budget did not allow.
        found: dict[str, TypedAnswer] = {}
        for one in questions:
            line = self.entries.get(one.id)
            if line is not None and line.get("digest") == digest_of(one) and line.get("settled"):
                found[one.id] = _as_answer(one, line, self._manifest)
        return found

    def add(self, answer: TypedAnswer) -> None:
        """Write one answer."""
        plain = answer.to_dict()
        plain |= {"digest": digest_of(answer.question), "settled": answer.is_settled}
        self.put(answer.question.id, plain)


def _effect_of(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: one for name, one in value.items() if name not in _OF_NO_EFFECT}
    return value


def _as_answer(
    question: BioasqQuestion, line: Mapping[str, Any], manifest: Mapping[str, Any]
) -> TypedAnswer:
    told = {name: line[name] for name in ("exact_answer", "ideal_answer")}
    read = parse_question({**question.to_dict(), **told})
    return TypedAnswer(
        question=replace(question, exact_answer=None, ideal_answers=()),
        exact=read.exact_answer,
        ideal=read.ideal_answers[0],
        exact_status=line["exact_status"],
        ideal_status=line["ideal_status"],
        problems=tuple(line["problems"]),
        usage={name: Usage(**used) for name, used in line["usage"].items()},
        seconds=line["seconds"],
        manifest=manifest,
    )


def build_answer_graph(
    # the roles, or the chat model that plays both
    backend: TypedBackend | Backend | BaseChatModel | str,
    # `TypedSettings`, or some of them by name
    settings: TypedSettings | Mapping[str, Any] | None = None,
    *,
    cache: JudgementCache | None = None,  # where replies are kept; none are if None
) -> "CompiledStateGraph[TypedState, None, TypedInput, TypedOutput]":
    """Compile phase B for one backend."""
    # Raises `SettingsError` if the backend cannot be built, or a setting is out of range.
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
