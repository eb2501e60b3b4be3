"""What was answered of a file of questions so far, and how each answer came about."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from deepera_graph.agents.journal import Journal
from deepera_graph.bioasq.phase_b.answered import TypedAnswer
from deepera_graph.bioasq.questions import Question, parse_question
from deepera_graph.usage import Usage

_OF_NO_EFFECT = ("budget", "max_concurrency", "fallback")  # on an answer that is there


def digest_of(question: Question) -> str:
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

    def find_done(self, questions: Iterable[Question]) -> dict[str, TypedAnswer]:
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
    question: Question, line: Mapping[str, Any], manifest: Mapping[str, Any]
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
