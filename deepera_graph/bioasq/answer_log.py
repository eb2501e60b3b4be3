"""What was answered, line by line beside a submission: how each answer came about, and resuming.

The first line says what made the answers; each further line is one question. A line that a kill cut
off is left out.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, Any, Self

from deepera_graph.bioasq.answer import TypedAnswer
from deepera_graph.bioasq.questions import Question, parse_question
from deepera_graph.errors import SettingsError
from deepera_graph.usage import Usage

_VERSIONS = "versions"
_OF_NO_EFFECT = ("budget", "max_concurrency", "fallback")


def digest_of(question: Question) -> str:
    """Return 16 hex digits of what is asked of a question: its type, body and snippets."""
    plain = [question.type, question.body, [one.text for one in question.snippets]]
    return sha256(json.dumps(plain).encode()).hexdigest()[:16]


class AnswerLog:
    """Answers in a file, added one by one from any thread.

    Args:
        path: The file; with *resume* it may be there.
        manifest: What makes the answers, `TypedAnswerer.manifest`.
        resume: Whether the answers in the file count.

    Raises:
        SettingsError: The file to resume is no such log, or its answers were made by another
            backend or with other settings; it names the first difference.
    """

    def __init__(self, path: Path, manifest: Mapping[str, Any], *, resume: bool) -> None:
        self._path, self._manifest, self._resume = path, dict(manifest), resume
        self._lock = Lock()
        self._file: IO[str] | None = None
        self._known: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        """Open the file, and read what is in it."""
        goes_on = self._resume and self._path.exists()
        lines = _read_lines(self._path) if goes_on else []
        if goes_on:
            self._check(lines)
        self._known = {str(one["id"]): one for one in lines[1:] if "id" in one}
        kept = lines or [{"made_by": self._manifest}]
        text = "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in kept)
        self._path.write_text(text, encoding="utf-8", newline="\n")
        self._file = self._path.open("a", encoding="utf-8", newline="\n")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def find_done(self, questions: Iterable[Question]) -> dict[str, TypedAnswer]:
        """Return by id the answers that need not be asked for again.

        Those are complete, to the same question with the same snippets, and none of their parts
        stands in for one that failed or that a budget did not allow.
        """
        found: dict[str, TypedAnswer] = {}
        for one in questions:
            line = self._known.get(one.id)
            if line is not None and line.get("digest") == digest_of(one) and line.get("settled"):
                found[one.id] = _as_answer(one, line, self._manifest)
        return found

    def add(self, answer: TypedAnswer) -> None:
        """Write one answer, and see it on its way to the disk."""
        line = {**answer.to_dict(), "digest": digest_of(answer.question)}
        line["settled"] = answer.is_settled
        text = json.dumps(line, ensure_ascii=False)
        with self._lock:
            if self._file is None:
                raise RuntimeError("the log is not open")
            self._file.write(f"{text}\n")
            self._file.flush()

    def _check(self, lines: list[dict[str, Any]]) -> None:
        before = lines[0].get("made_by") if lines else None
        if not isinstance(before, dict):
            raise SettingsError(f"{str(self._path)!r} is no log of answers; give --overwrite")
        now = json.loads(json.dumps(self._manifest, default=str))
        for name in dict.fromkeys([*before, *now]):
            if name != _VERSIONS and _matters(before.get(name)) != _matters(now.get(name)):
                raise SettingsError(
                    f"{str(self._path)!r} was made with {name} {before.get(name)!r:.80}, not "
                    f"{now.get(name)!r:.80}: give the same options, or --overwrite"
                )


def _matters(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: one for name, one in value.items() if name not in _OF_NO_EFFECT}
    return value


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file; what is no whole line of one is left out."""
    found: list[dict[str, Any]] = []
    with path.open("rb") as file:
        for raw in file:
            try:
                value = json.loads(raw)
            except ValueError:
                continue
            if isinstance(value, dict) and raw.endswith(b"\n"):
                found.append(value)
    return found


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
