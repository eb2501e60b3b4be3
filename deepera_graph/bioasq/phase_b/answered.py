"""The typed answers to one question of BioASQ: what they are, and how they came about."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from deepera_graph.agents.journal import Journal
from deepera_graph.bioasq.questions import BioasqQuestion, ExactAnswer, parse_question, plain_exact
from deepera_graph.usage import HasUsage, Usage

PartStatus = Literal[
    "answered", "extracted", "failed", "skipped_budget", "no_snippets", "not_asked"
]
Outcome = Literal["answered", "extracted", "partly_extracted", "failed"]
_USABLE = ("answered", "extracted", "not_asked")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedAnswer(HasUsage):
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

    question: BioasqQuestion
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
    """Holds the answers to each question.

    Args:
        path: The file; None keeps nothing beyond this object.
        manifest: What makes the answers, `TypedAnswerer.manifest`.
    """

    def __init__(self, path: Path | None, manifest: Mapping[str, Any]) -> None:
        super().__init__(path, {name: _effect_of(value) for name, value in manifest.items()})
        self._manifest = manifest

    def find_done(self, questions: Iterable[BioasqQuestion]) -> dict[str, TypedAnswer]:
        """Return by id the answers that need not be asked for again.

        Those are complete, to the same question with the same snippets, and none of their parts
        stands in for one that failed or that a budget did not allow.
        """
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
    read = parse_question(
        {
            "id": question.id,
            "type": question.type,
            "body": question.body,
            "exact_answer": line["exact_answer"],
            "ideal_answer": line["ideal_answer"],
        }
    )
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
