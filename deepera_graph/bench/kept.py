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

FORMAT = 2


def rankings(
    ranker: Ranker,
    dataset: Dataset,
    survey: Survey,
    folder: Path | None,
    *,
    retry_failed: bool = False,
) -> Iterator[Ranked]:
    """Yield the rankings of a data set, from *folder* as far as they are there.

    New ones are written as they are made, so a run that was stopped goes on where it was. Only one
    process may use a folder at a time. Nothing is kept for a ranker without a fingerprint, and
    nothing is read back of one that could judge no passage at all.

    Args:
        ranker: Makes what is missing.
        dataset: What to rank.
        survey: The survey of this data set.
        folder: Made when it is missing; None keeps nothing.
        retry_failed: Whether to rank questions anew of which a passage could not be judged.
    """
    if folder is None or ranker.fingerprint is None:
        return rank_dataset(ranker, dataset)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_key(ranker, survey)}.jsonl"
    if retry_failed and path.exists():
        _try_again(ranker, dataset, path)
    return _carry_on(ranker, dataset, path, survey.n_questions)


def _try_again(ranker: Ranker, dataset: Dataset, path: Path) -> None:
    """Replace the rows of a file that tell of failures."""
    rows = _whole_rows(path)
    failed = {place for place, row in enumerate(rows) if row.failed}
    if not failed:
        return
    rest = Dataset(
        dataset.name,
        lambda: (one for place, one in enumerate(dataset) if place in failed),
        dataset.first_stage,
    )
    for place, ranked in zip(sorted(failed), rank_dataset(ranker, rest), strict=True):
        rows[place] = ranked
    new = path.with_suffix(".new")
    new.write_bytes(b"".join(map(_line, rows)))
    new.replace(path)


def _carry_on(ranker: Ranker, dataset: Dataset, path: Path, n_questions: int) -> Iterator[Ranked]:
    done = _whole_rows(path) if path.exists() else []
    if all(row.failed >= len(row.places) for row in done):
        done = []
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
