"""Rankings kept on disk: made once, read back later, carried on after an interruption."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from deepera_graph.bench.dataset import Dataset
from deepera_graph.bench.rank import Ranked, rank_dataset
from deepera_graph.bench.rankers.ranker import Ranker
from deepera_graph.bench.survey import Survey

FORMAT = 1


def rankings(
    ranker: Ranker, dataset: Dataset, survey: Survey, folder: Path | None
) -> Iterator[Ranked]:
    """Yield the rankings of a data set, from *folder* as far as they are there.

    New ones are written as they are made, so a run that was stopped goes on where it was. Only one
    process may use a folder at a time. Nothing is kept for a ranker without a fingerprint.

    Args:
        ranker: Makes what is missing.
        dataset: What to rank.
        survey: The survey of this data set.
        folder: Made when it is missing; None keeps nothing.
    """
    if folder is None or ranker.fingerprint is None:
        return rank_dataset(ranker, dataset)
    folder.mkdir(parents=True, exist_ok=True)
    return _carry_on(ranker, dataset, folder / f"{_key(ranker, survey)}.jsonl", survey.n_questions)


def _carry_on(ranker: Ranker, dataset: Dataset, path: Path, n_questions: int) -> Iterator[Ranked]:
    done = _whole_rows(path) if path.exists() else []
    yield from done
    if len(done) == n_questions:
        return
    with path.open("wb") as file:
        file.writelines(map(_line, done))
        for ranked in rank_dataset(ranker, dataset, skip=len(done)):
            file.write(_line(ranked))
            file.flush()
            yield ranked


def _whole_rows(path: Path) -> list[Ranked]:
    """Return the rows of a file up to the first one that was torn."""
    rows = []
    with path.open("rb") as file:
        for line in file:
            try:
                rows.append(Ranked.model_validate_json(line))
            except ValidationError:
                break
    return rows


def _line(ranked: Ranked) -> bytes:
    return ranked.model_dump_json().encode() + b"\n"


def _key(ranker: Ranker, survey: Survey) -> str:
    plain = {
        "format": FORMAT,
        "ranker": ranker.fingerprint,
        "dataset": survey.fingerprint,
    }
    text = json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()
