"""What the command line does: options in, what experiments found out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from deepera_graph import __version__
from deepera_graph.bench.metrics.answers import ChatGenerator, Extractive, Generator, LfsJudge
from deepera_graph.bench.rankers.embedding import Dense
from deepera_graph.bench.rankers.named import Models, make_ranker
from deepera_graph.bench.run import DataConfig, Watch, describe_datasets
from deepera_graph.bench.studies import filtering as ablations
from deepera_graph.bench.studies import filtering as cutoff
from deepera_graph.bench.studies import filtering as threshold
from deepera_graph.bench.studies import ranking as cost
from deepera_graph.bench.studies import ranking as look_alikes
from deepera_graph.bench.studies import ranking as main_table
from deepera_graph.bench.studies import ranking as ranks
from deepera_graph.bench.studies import retrieval as embedding
from deepera_graph.bench.studies import robustness as drift
from deepera_graph.bench.studies import robustness as stability
from deepera_graph.bench.studies.base import (
    SEARCHERS,
    Experiment,
    ExperimentResult,
    Lab,
    NoFilterError,
    Setup,
)
from deepera_graph.bench.studies.write import write_experiment
from deepera_graph.errors import SettingsError
from deepera_graph.thresholds import threshold_to_plain

RANKERS = ("first-stage", "random", "bm25", "deepera:local")
_LIBRARIES = ("numpy", "matplotlib", "ir_measures", "bm25s", "PyStemmer")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions(DataConfig):
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
    datasets = options.open_datasets()
    rankers = [
        options.make_ranker(name, seed=options.setup.seed, strict=options.setup.strict)
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
        "datasets": describe_datasets(one.survey for one in lab.materials()),
        "rankers": {one.name: one.fingerprint for one in lab.rankers},
        "not_available": [
            {"dataset": dataset, "ranker": ranker, "reason": reason}
            for (dataset, ranker), reason in lab.missing.items()
        ],
    }


FIRST, LLM = "first", "llm"


def embeddings_of(names: Sequence[str]) -> dict[str, Embeddings]:
    """Return the embeddings that names stand for; those that need no model are left out.

    Args:
        names: ``bm25``, ``lsa``, or a dense ranker as `deepera_graph.bench.rankers.named` has it.

    Raises:
        SettingsError: A name stands for no embeddings.
        UnavailableError: A package or weights are missing.
    """
    found = {}
    for name in names:
        if name in SEARCHERS:
            continue
        ranker = make_ranker(name) if name.startswith("dense") else None
        if not isinstance(ranker, Dense):
            raise SettingsError(
                f"embeddings must be {', '.join(SEARCHERS)}, dense:module:factory or "
                f"dense-st:NAME, got {name!r}"
            )
        found[ranker.name] = ranker.embeddings
    return found


def generator_of(name: str, models: Models) -> Generator | None:
    """Return who answers: ``first`` needs no model, ``llm`` is the model for all; none for empty.

    Raises:
        SettingsError: The model cannot be made.
        UnavailableError: A package or a key is missing.
    """
    if not name:
        return None
    if name == FIRST:
        return Extractive()
    return ChatGenerator(models.chat("" if name == LLM else name))


def answer_judge_of(name: str, models: Models) -> LfsJudge | None:
    """Return who scores answers; ``llm`` is the model for all, none for empty.

    Raises:
        SettingsError: The model cannot be made.
        UnavailableError: A package or a key is missing.
    """
    return LfsJudge(models.chat("" if name == LLM else name)) if name else None


def as_ranker_names(*names: str) -> tuple[str, ...]:
    """Return names of rankers that ask the same chat models, so that these can be made ready."""
    return tuple(
        "llm-pointwise" if name == LLM else f"llm-pointwise:{name}"
        for name in names
        if name and name != FIRST
    )


EXPERIMENTS: Mapping[str, Experiment] = {
    one.name: one
    for one in (
        main_table.MAIN_TABLE,
        ranks.RANKS,
        look_alikes.LOOK_ALIKES,
        threshold.THRESHOLD,
        cutoff.CUTOFF,
        ablations.ABLATIONS,
        embedding.EXPERIMENT,
        stability.STABILITY,
        drift.DRIFT,
        cost.COST,
    )
}
