"""TREC runs with judgements: the candidates of a question are what a run has for it."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from deepera_graph.calibration.instance import (
    Dataset,
    DatasetError,
    Instance,
    first_problem,
)
from deepera_graph.errors import InputError
from deepera_graph.jobs.forms import RunSource, open_run
from deepera_graph.jobs.lines import BadLine, QuestionLine, read_lines
from deepera_graph.lab.data.beir import log_once, read_judgements
from deepera_graph.lab.data.readers import make_context
from deepera_graph.passages import read_passages
from deepera_graph.text.plain import name_some


def open_judged_run(source: RunSource, qrels: Path, *, name: str = "") -> Dataset:
    """Return a run as a data set, in the order of its scores; it is read when it is iterated."""
    for path in (*source, qrels):
        if not path.exists():
            raise DatasetError(f"no such file: {str(path)!r}")
    read = partial(read_judged_run, source, qrels)
    return Dataset(name or source.run.stem, read, "order of the run")


def read_judged_run(source: RunSource, qrels: Path) -> Iterator[Instance]:
    """Yield one instance a judged query of the run; judged documents that it lacks stay outside."""
    judged = read_judgements(qrels)
    left_out: list[str] = []
    missing = dict.fromkeys(judged)
    try:
        with open_run(source, tell=log_once) as (lines, _):
            for line in read_lines(lines):
                if isinstance(line, BadLine):
                    raise InputError(f"{source.run}, line {line.number}: {line.error}")
                missing.pop(line.id, None)
                if line.id in judged:
                    yield _make_instance(line, judged[line.id], source.run)
                else:
                    left_out.append(line.id)
    except InputError as error:
        raise DatasetError(str(error)) from error
    if left_out:
        log_once(f"{source.run}: left out, as {qrels} does not judge them: {name_some(left_out)}")
    if missing:
        log_once(f"{qrels}: left out, as {source.run} does not have them: {name_some([*missing])}")


def _make_instance(line: QuestionLine, grades: dict[str, int], run: Path) -> Instance:
    passages = read_passages(line.passages)
    ids = {one.id for one in passages}
    try:
        return Instance(
            id=line.id,
            question=line.question,
            contexts=tuple(
                make_context(
                    one,
                    rank,
                    is_golden=one.id in grades,
                    grade=grades.get(str(one.id), 1),
                    first_stage_score=one.metadata.get("retrieval_score"),
                )
                for rank, one in enumerate(passages, start=1)
            ),
            golden_outside={id: grade for id, grade in grades.items() if id not in ids},
        )
    except ValidationError as error:
        place = f"{run}, line {line.number}: query {line.id!r}"
        raise DatasetError(f"{place}: {first_problem(error)}") from error
