"""What the command line does: options in, what experiments found out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from deepera_graph.bench.chosen import Chosen, described
from deepera_graph.bench.experiments.experiment import Experiment, ExperimentResult
from deepera_graph.bench.experiments.lab import Lab, NoFilterError
from deepera_graph.bench.experiments.setup import Setup
from deepera_graph.bench.experiments.write.folder import write_experiment
from deepera_graph.bench.run import Watch
from deepera_graph.thresholds import threshold_to_plain
from deepera_graph.version import __version__

RANKERS = ("first-stage", "random", "bm25", "deepera:local")
_LIBRARIES = ("numpy", "matplotlib", "ir_measures", "bm25s", "PyStemmer")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions(Chosen):
    """What the caller asked for, beside the data.

    Attributes:
        rankers: Names, see `deepera_graph.bench.rankers.named`.
        setup: How to measure.
    """

    rankers: tuple[str, ...] = RANKERS
    setup: Setup = field(default_factory=Setup)


def open_lab(options: StudyOptions, *, watch: Watch = lambda step: None) -> Lab:
    """Make the rankers and open the data.

    Raises:
        SettingsError: An option is wrong.
        DatasetError: A data set cannot be read.
        MetricError: A name is used twice.
        UnavailableError: A ranker is not available, and the setup is strict.
    """
    datasets = options.datasets()
    rankers = [
        options.ranker(name, seed=options.setup.seed, strict=options.setup.strict)
        for name in options.rankers
    ]
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
        "datasets": described(one.survey for one in lab.materials()),
        "rankers": {one.name: one.fingerprint for one in lab.rankers},
        "not_available": [
            {"dataset": dataset, "ranker": ranker, "reason": reason}
            for (dataset, ranker), reason in lab.missing.items()
        ],
    }
