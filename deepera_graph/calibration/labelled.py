"""Labelled questions: lines of `deepera rerank`'s input whose passages say if they are evidence.

A passage says so with ``"label": 0`` or ``1``, or with ``"is_golden": true`` or ``false``. Neither
reaches the judge.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deepera_graph.errors import InputError
from deepera_graph.jobs.lines import BadLine, QuestionLine, read_lines
from deepera_graph.passages import read_passages

Labels = dict[str, int]
LABEL_FIELDS = ("label", "is_golden")


def read_questions(path: Path) -> Iterator[QuestionLine]:
    """Read a file of questions, one at a time.

    Raises:
        InputError: The file or a line of it cannot be used; the message names both.
    """
    try:
        with path.open("rb") as source:
            for line in read_lines(source):
                if isinstance(line, BadLine):
                    raise InputError(f"{path}, line {line.number}: {line.error}")
                yield line
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def read_labels(path: Path) -> dict[str, Labels]:
    """Return the labels of every passage, by question id and passage id.

    Raises:
        InputError: The file or a line cannot be used, or a passage is not labelled; the message
            names file, line and passage.
    """
    labels: dict[str, Labels] = {}
    for line in read_questions(path):
        try:
            labels[line.id] = {
                passage.id: _label(passage.id, passage.metadata)
                for passage in read_passages(line.passages)
            }
        except InputError as error:
            raise InputError(f"{path}, line {line.number}: {error}") from error
    if not labels:
        raise InputError(f"{path} holds no question")
    return labels


def _label(id: str, metadata: Mapping[str, Any]) -> int:
    given = {name: metadata[name] for name in LABEL_FIELDS if name in metadata}
    if not given:
        raise InputError(f"passage {id!r} has neither a label nor is_golden")
    for name, value in given.items():
        if not isinstance(value, int) or value not in (0, 1):
            raise InputError(f"passage {id!r}: {name} must be 0 or 1, got {value!r:.80}")
    if len(set(given.values())) > 1:
        raise InputError(f"passage {id!r}: label and is_golden disagree, got {given}")
    return int(next(iter(given.values())))
