"""Scores that are there already: the output of `deepera rerank`, joined with labels."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deepera_graph.calibration.judged import JudgedQuestion
from deepera_graph.calibration.labelled import Labels
from deepera_graph.curve import judge_identity
from deepera_graph.errors import InputError

_REPORT_SUFFIX = ".report.json"


def read_ranked(path: Path, labels: Mapping[str, Labels]) -> list[JudgedQuestion]:
    """Join output lines with labels by question id and passage id; labels left over do not count.

    Raises:
        InputError: A line cannot be used, has no label, or is there twice; the message names file
            and line.
    """
    judged: dict[str, JudgedQuestion] = {}
    for number, line in _lines(path):
        try:
            question = _joined(line, labels)
            if question.id in judged:
                raise InputError(f"id {question.id!r} is used twice")
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        judged[question.id] = question
    return list(judged.values())


def read_judge(path: Path, report: Path | None = None) -> dict[str, str]:
    """Return which judge gave the scores of an output file, from the report of that run.

    Args:
        path: The output file.
        report: The report; the one beside the output file if None.

    Raises:
        InputError: There is no such report, or it does not say.
    """
    report = report or path.with_name(path.name.removesuffix(".jsonl") + _REPORT_SUFFIX)
    manifest = _parsed(_text(report), str(report)).get("manifest")
    if not isinstance(manifest, dict) or not isinstance(manifest.get("backend"), str):
        raise InputError(f"{report} does not say which backend gave the scores")
    return judge_identity(manifest["backend"], manifest)


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8", newline="\n") as source:
            for number, line in enumerate(source, start=1):
                if line.strip():
                    yield number, _parsed(line, f"{path}, line {number}")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error.reason}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error.reason}") from error


def _parsed(text: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{place}: must be a JSON object, got {value!r:.80}")
    return value


def _joined(line: Mapping[str, Any], labels: Mapping[str, Labels]) -> JudgedQuestion:
    id, ranking = line.get("id"), line.get("ranking")
    if not isinstance(id, str) or not isinstance(ranking, list):
        raise InputError("not an output line: it needs an id and a ranking")
    if id not in labels:
        raise InputError(f"question {id!r} is not labelled")
    scores = [_scored(item, labels[id]) for item in ranking]
    if len({name for name, _ in scores}) != len(scores):
        raise InputError("a passage id is used twice")
    return JudgedQuestion.of(id, scores, labels[id])


def _scored(item: Any, labels: Labels) -> tuple[str, float | None]:
    if not isinstance(item, Mapping) or "score" not in item:
        raise InputError(f"a ranked passage needs an id and a score, got {item!r:.80}")
    name, score = item.get("id"), item["score"]
    if not isinstance(name, str) or name not in labels:
        raise InputError(f"passage {name!r} is not labelled")
    if score is None:
        if item.get("status") == "not_needed":
            raise InputError(
                f"passage {name!r} was not asked about; take a run without --enough, as thresholds "
                "are measured over all passages"
            )
        return name, None
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise InputError(f"passage {name!r}: score must be in [0, 1], got {score!r:.80}")
    return name, float(score)
