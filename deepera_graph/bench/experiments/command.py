"""What the command line does: options in, what experiments found out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from deepera_graph.bench.dataset import Dataset
from deepera_graph.bench.errors import UnavailableError
from deepera_graph.bench.experiments.experiment import Experiment, ExperimentResult
from deepera_graph.bench.experiments.lab import Lab, NoFilterError
from deepera_graph.bench.experiments.setup import Setup
from deepera_graph.bench.experiments.write.folder import write_experiment
from deepera_graph.bench.rankers.absent import Absent
from deepera_graph.bench.rankers.models import Models
from deepera_graph.bench.rankers.named import make_ranker
from deepera_graph.bench.rankers.ranker import Ranker
from deepera_graph.bench.readers.detect import open_dataset
from deepera_graph.bench.run import Watch
from deepera_graph.errors import SettingsError
from deepera_graph.thresholds import threshold_to_plain
from deepera_graph.version import __version__

RANKERS = ("first-stage", "random", "bm25", "deepera:local")
_LIBRARIES = ("numpy", "matplotlib", "ir_measures", "bm25s", "PyStemmer")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """What the caller asked for.

    Attributes:
        data: Files and folders, see `deepera_graph.bench.readers.detect`; not empty.
        rankers: Names, see `deepera_graph.bench.rankers.named`.
        setup: How to measure.
        models: The chat model of rankers that name none, its cache and its limits.
        limit: Only the first so many questions of each data set, >= 1; None takes all.
        split: Which judgements of a BEIR folder.
        n_candidates: Documents a query of a BEIR folder keeps, >= 1.
    """

    data: tuple[Path, ...]
    rankers: tuple[str, ...] = RANKERS
    setup: Setup = field(default_factory=Setup)
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


def open_lab(options: StudyOptions, *, watch: Watch = lambda step: None) -> Lab:
    """Make the rankers and open the data.

    Raises:
        SettingsError: An option is wrong.
        DatasetError: A data set cannot be read.
        MetricError: A name is used twice.
        UnavailableError: A ranker is not available, and the setup is strict.
    """
    datasets = [_dataset(path, options) for path in options.data]
    rankers = [_ranker(name, options) for name in options.rankers]
    return Lab(rankers, datasets, options.setup, watch=watch)


def fresh_lab(options: StudyOptions, *, watch: Watch = lambda step: None) -> Lab:
    """Do what `open_lab` does, but without the cache of chat models: each run is asked anew."""
    return open_lab(replace(options, models=replace(options.models, cache=None)), watch=watch)


def run_experiments(
    experiments: Sequence[Experiment],
    lab: Lab,
    folder: Callable[[Experiment], Path | None] = lambda experiment: None,
    *,
    fresh: Lab | None = None,
) -> list[tuple[Experiment, ExperimentResult]]:
    """Run experiments one after the other, and write each as soon as it is done.

    One of several experiments that needs a ranker that filters, where there is none, is left out
    and says so.

    Args:
        experiments: In order.
        lab: Rankers and data.
        folder: Where an experiment is written; None writes nothing.
        fresh: The same without a cache, for experiments that ask again; *lab* if None.

    Raises:
        NoFilterError: There is one experiment, and no ranker that filters.
        DatasetError: A data set cannot be read.
        RankingError: A ranker gave back no ranking.
    """
    done = []
    for experiment in experiments:
        asked = fresh if fresh is not None and experiment.asks_again else lab
        try:
            result = experiment.run(asked)
        except NoFilterError as error:
            if len(experiments) == 1:
                raise
            result = ExperimentResult(grids=(), findings=(f"Left out: {error}.",))
        place = folder(experiment)
        if place is not None:
            write_experiment(experiment, result, manifest(lab), place)
        done.append((experiment, result))
    return done


def manifest(lab: Lab) -> dict[str, Any]:
    """Return all that an experiment depends on, as plain data: no date, no path."""
    setup = lab.setup
    return {
        "deepera_graph": __version__,
        "libraries": {name: version(name) for name in _LIBRARIES},
        "setup": {
            "metrics": list(setup.metrics),
            "threshold": setup.threshold,
            "top_n": setup.top_n,
            "thresholds": list(setup.thresholds),
            "rules": {name: threshold_to_plain(rule) for name, rule in setup.rules.items()},
            "cutoffs": list(setup.cutoffs),
            "shares": list(setup.shares),
            "searchers": list(setup.searchers),
            "embeddings": list(setup.embeddings),
            "base": setup.base,
            "generator": None if setup.generator is None else setup.generator.name,
            "answer_judge": None if setup.answer_judge is None else setup.answer_judge.name,
            "n_repeats": setup.n_repeats,
            "n_sampled": setup.n_sampled,
            "n_resamples": setup.n_resamples,
            "seed": setup.seed,
        },
        "datasets": {
            one.name: {
                "questions": one.survey.n_questions,
                "candidates": one.survey.n_candidates,
                "ceiling": one.survey.ceiling,
                "first_stage": one.survey.first_stage,
                "sha256": one.survey.fingerprint,
            }
            for one in lab.materials()
        },
        "rankers": {one.name: one.fingerprint for one in lab.rankers},
        "not_available": [
            {"dataset": dataset, "ranker": ranker, "reason": reason}
            for (dataset, ranker), reason in lab.missing.items()
        ],
    }


def _dataset(path: Path, options: StudyOptions) -> Dataset:
    dataset = open_dataset(path, split=options.split, n_candidates=options.n_candidates)
    return dataset if options.limit is None else dataset.first(options.limit)


def _ranker(name: str, options: StudyOptions) -> Ranker:
    try:
        return make_ranker(name, seed=options.setup.seed, models=options.models)
    except UnavailableError as error:
        if options.setup.strict:
            raise
        return Absent(name, str(error))
