"""Labelled questions: the one form that `deepera calibrate`, `bench` and `judge` read.

A line is a question as `deepera rerank` reads it. What is evidence is said by `golden` of the line,
a list of passage ids, or by `label` (0 or 1) or `is_golden` of every passage.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from deepera_graph.errors import InputError
from deepera_graph.jobs.forms import open_questions
from deepera_graph.jobs.lines import BadLine, QuestionLine, read_lines
from deepera_graph.passages import Passage, read_passages

LABEL_FIELDS = ("label", "is_golden")
Labels = dict[str, int]


def read_questions(path: Path, *, limit: int | None = None) -> Iterator[QuestionLine]:
    """Read a file of questions, one at a time; an `InputError` names the file and the line."""
    with open_questions(path) as (source, _):
        for line in islice(read_lines(source), limit):
            if isinstance(line, BadLine):
                raise InputError(f"{path}, line {line.number}: {line.error}")
            yield line


def read_labelled(
    path: Path, *, limit: int | None = None
) -> Iterator[tuple[QuestionLine, list[Passage], Labels]]:
    """Read questions with their passages and the labels of these, 1 for evidence, by id.

    Raises:
        InputError: A line cannot be used, or a passage has no label; it is named.
    """
    for line in read_questions(path, limit=limit):
        try:
            passages = read_passages(line.passages)
            golden = _read_golden(line.metadata.get("golden"), {one.id for one in passages})
            labels = {one.id: _read_label(one.id, one.metadata, golden) for one in passages}
        except InputError as error:
            raise InputError(f"{path}, line {line.number}: {error}") from error
        yield line, passages, labels


def read_labels(path: Path, *, limit: int | None = None) -> dict[str, Labels]:
    """Return labels by question id and passage id."""
    labels = {line.id: its for line, _, its in read_labelled(path, limit=limit)}
    if not labels:
        raise InputError(f"{path} holds no question")
    return labels


def _read_golden(golden: object, ids: set[str]) -> set[str] | None:
    if golden is None:
        return None
    if not isinstance(golden, list):
        raise InputError(f"golden must be a list of passage ids, got {golden!r:.80}")
    named = set(map(str, golden))
    if not named <= ids:
        raise InputError(f"golden names no passage: {sorted(named - ids)}")
    return named


def _read_label(id: str, metadata: Mapping[str, Any], golden: set[str] | None) -> int:
    given = {name: metadata[name] for name in LABEL_FIELDS if name in metadata}
    for name, value in given.items():
        if not isinstance(value, int) or value not in (0, 1):
            raise InputError(f"passage {id!r}: {name} must be 0 or 1, got {value!r:.80}")
    if golden is not None:
        given["golden"] = int(id in golden)
    if not given:
        raise InputError(
            f"passage {id!r} has neither a label nor is_golden, and its question no golden"
        )
    if len(set(given.values())) > 1:
        raise InputError(f"passage {id!r}: {' and '.join(given)} disagree, got {given}")
    return int(next(iter(given.values())))
