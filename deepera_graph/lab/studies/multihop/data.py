"""Questions of several hops: what a data set of them holds."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.documents import Document

from deepera_graph.errors import InputError
from deepera_graph.text.jsonl import read_places

PASSAGES, QUESTIONS = "passages.jsonl", "questions.jsonl"
_NUMBER = re.compile(r"#(\d+)")


class SubQuestion(NamedTuple):
    """A step that the data gives: ``#1`` in its text stands for the answer of the first."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class HopQuestion:
    """A question whose evidence lies in several passages, all of which are needed."""

    id: str
    text: str
    supporting: frozenset[str]  # ids of passages
    steps: tuple[SubQuestion, ...] = ()
    answers: tuple[str, ...] = ()  # right ones, any of which will do

    def filled_steps(self) -> list[str]:
        """Return the steps, with the answers of earlier ones in the place of their numbers."""
        return [
            _NUMBER.sub(partial(self._fill, before=place), step.question.replace(" >> ", " "))
            for place, step in enumerate(self.steps)
        ]

    def _fill(self, found: re.Match[str], *, before: int) -> str:
        number = int(found[1])
        return self.steps[number - 1].answer if 1 <= number <= before else found[0]


@dataclass(frozen=True)
class HopData:
    """Questions and the passages they are asked of."""

    name: str
    passages: dict[str, Document]
    questions: tuple[HopQuestion, ...]


def read_hop_data(folder: Path, *, limit: int | None = None) -> HopData:
    """Read ``passages.jsonl`` (`id`, `title`, `text`) and ``questions.jsonl``.

    A question has `id`, `question`, `supporting`, which are ids of passages, and may have
    `subquestions` with `question` and `answer`, and an `answer` with `aliases`.

    Raises:
        InputError: A file is missing, a line cannot be read, an id comes twice, or a supporting
            passage is not there; the message names the line.
    """
    passages: dict[str, Document] = {}
    for where, line in _read_lines(folder / PASSAGES):
        name, text = _text(line, "id", where), _text(line, "text", where)
        if name in passages:
            raise InputError(f"{where}: the id {name!r} comes twice")
        title = {"title": line["title"]} if line.get("title") else {}
        passages[name] = Document(id=name, page_content=text, metadata=title)
    if not passages:
        raise InputError(f"{folder / PASSAGES}: no passages")
    questions = [
        _read_question(line, where, passages)
        for where, line in islice(_read_lines(folder / QUESTIONS), limit)
    ]
    if not questions:
        raise InputError(f"{folder / QUESTIONS}: no questions")
    return HopData(folder.resolve().name, passages, tuple(questions))


def _read_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; a data set has {PASSAGES}, {QUESTIONS}")
    return read_places(path)


def _text(line: dict[str, Any], field: str, where: str) -> str:
    value = line.get(field)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: {field!r} must be a text, got {value!r:.80}")
    return value


def _read_question(line: dict[str, Any], where: str, passages: dict[str, Document]) -> HopQuestion:
    supporting = line.get("supporting")
    if not isinstance(supporting, list) or not supporting:
        raise InputError(f"{where}: 'supporting' must be a list of ids, got {supporting!r:.80}")
    missing = [name for name in supporting if name not in passages]
    if missing:
        raise InputError(f"{where}: unknown passage {missing[0]!r:.80}")
    steps = line.get("subquestions") or []
    return HopQuestion(
        id=_text(line, "id", where),
        text=_text(line, "question", where),
        supporting=frozenset(supporting),
        steps=tuple(
            SubQuestion(_text(one, "question", where), _text(one, "answer", where)) for one in steps
        ),
        answers=_read_answers(line, where),
    )


def _read_answers(line: dict[str, Any], where: str) -> tuple[str, ...]:
    """Return the right answer and its other forms; none if the line has no answer."""
    if line.get("answer") is None:
        return ()
    others = line.get("aliases") or []
    if not isinstance(others, list) or not all(isinstance(one, str) for one in others):
        raise InputError(f"{where}: 'aliases' must be a list of texts, got {others!r:.80}")
    return (_text(line, "answer", where), *others)
