"""What every command over labelled data is given: the data, and the rankers that can run here."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepera_graph.bench.dataset import Dataset
from deepera_graph.bench.errors import UnavailableError
from deepera_graph.bench.rankers.absent import Absent
from deepera_graph.bench.rankers.models import Models
from deepera_graph.bench.rankers.named import make_ranker
from deepera_graph.bench.rankers.ranker import Ranker
from deepera_graph.bench.readers.detect import open_dataset
from deepera_graph.bench.survey import Survey
from deepera_graph.errors import SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The data a command works on.

    Attributes:
        data: Files and folders, see `deepera_graph.bench.readers.detect`; not empty.
        models: The chat model of rankers that name none, its cache and its limits.
        limit: Only the first so many questions of each data set, >= 1; None takes all.
        split: Which judgements of a BEIR folder.
        n_candidates: Documents a query of a BEIR folder keeps, >= 1.

    Raises:
        SettingsError: There is no data, or a number is out of range.
    """

    data: tuple[Path, ...]
    models: Models = field(default_factory=Models)
    limit: int | None = None
    split: str = "test"
    n_candidates: int = 100

    def __post_init__(self) -> None:
        if not self.data:
            raise SettingsError("data must name at least one file or folder")
        for name, value in (("limit", self.limit), ("n_candidates", self.n_candidates)):
            if value is not None and value < 1:
                raise SettingsError(f"{name} must be >= 1, got {value}")

    def datasets(self) -> list[Dataset]:
        """Open the data; each set is read when it is iterated.

        Raises:
            DatasetError: A file or folder is no data set.
        """
        return [self._dataset(path) for path in self.data]

    def ranker(self, name: str, *, seed: int, strict: bool) -> Ranker:
        """Return the ranker of this name, or one that says why it cannot run here.

        Raises:
            SettingsError: No ranker has this name.
            UnavailableError: It cannot run here, and *strict* is set.
        """
        try:
            return make_ranker(name, seed=seed, models=self.models)
        except UnavailableError as error:
            if strict:
                raise
            return Absent(name, str(error))

    def _dataset(self, path: Path) -> Dataset:
        dataset = open_dataset(path, split=self.split, n_candidates=self.n_candidates)
        return dataset if self.limit is None else dataset.first(self.limit)


def described(surveys: Iterable[Survey]) -> dict[str, Any]:
    """Return what a manifest says of data sets, by name."""
    return {
        one.name: {
            "questions": one.n_questions,
            "candidates": one.n_candidates,
            "ceiling": one.ceiling,
            "first_stage": one.first_stage,
            "sha256": one.fingerprint,
        }
        for one in surveys
    }
