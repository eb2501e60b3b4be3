"""The table of studies, and how the command line runs and writes them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from deepera_graph import __version__
from deepera_graph.errors import SettingsError
from deepera_graph.lab.bench.figures import draw_files
from deepera_graph.lab.bench.rank import Watch
from deepera_graph.lab.metrics.answers import ChatGenerator, Extractive, Generator, LfsJudge
from deepera_graph.lab.metrics.ranking import DatasetSummary
from deepera_graph.lab.rankers.named import Models, make_ranker
from deepera_graph.lab.rankers.retrieval import Dense
from deepera_graph.lab.studies.base import SEARCHERS, NoFilterError, StudyConfig, StudyRunner
from deepera_graph.lab.studies.experiment import About, StudyResult
from deepera_graph.lab.studies.rerank.filtering import (
    study_ablations,
    study_cutoff,
    study_threshold,
)
from deepera_graph.lab.studies.rerank.look_alikes import (
    study_counts,
    study_look_alikes,
    study_ranks,
)
from deepera_graph.lab.studies.rerank.main_table import study_cost, study_main_table
from deepera_graph.lab.studies.rerank.retrieval import study_embeddings
from deepera_graph.lab.studies.rerank.robustness import study_drift, study_stability
from deepera_graph.lab.studies.rerank.table import study_table
from deepera_graph.lab.tables import Column, Grid, format_csv, format_table
from deepera_graph.settings.thresholds import threshold_to_plain
from deepera_graph.text.jsonl import naming_full_file

MANIFEST = "manifest.json"
FIRST, LLM = "first", "llm"
# of the data what they hold stands there, of rankers their fingerprints
_NOT_IN_MANIFEST = {"data", "models", "rankers", "keep", "strict", "retry_failed"}
_NOT_IN_MANIFEST |= {"split", "n_candidates"}
_LIBRARIES = ("numpy", "matplotlib", "ir_measures", "bm25s", "PyStemmer")


@dataclass(frozen=True, kw_only=True)
class Study(About):
    """One study of rerankers; one that `asks_again` must not be answered from a cache."""

    run: Callable[[StudyRunner], StudyResult]
    asks_again: bool = False


_OF_RERANKERS: Mapping[str, Callable[[StudyRunner], StudyResult]] = {
    "main": study_main_table,
    "ranks": study_ranks,
    "look-alikes": study_look_alikes,
    "counts": study_counts,
    "threshold": study_threshold,
    "cutoff": study_cutoff,
    "ablations": study_ablations,
    "embeddings": study_embeddings,
    "stability": study_stability,
    "drift": study_drift,
    "cost": study_cost,
}
STUDIES: Mapping[str, Study] = {
    name: Study.named(name, run=run, asks_again=name == "stability")
    for name, run in _OF_RERANKERS.items()
}
TABLE = Study.named("results", run=study_table)


def open_runner(
    config: StudyConfig, *, watch: Watch = lambda step: None, cached: bool = True
) -> StudyRunner:
    """Make the rankers and open the data; without the cache of chat models each run asks anew."""
    if not cached:
        config = replace(config, models=replace(config.models, cache=None))
    rankers = config.make_rankers()
    named = {name: one.name for name, one in zip(config.rankers, rankers, strict=True)}
    config = replace(config, baseline=named.get(config.baseline, config.baseline))
    return StudyRunner(rankers, config.open_datasets(), config, watch=watch)


def run_studies(
    studies: Sequence[Study],
    runner: StudyRunner,
    folder: Callable[[Study], Path | None] = lambda study: None,
    *,
    fresh: StudyRunner | None = None,
) -> list[tuple[Study, StudyResult]]:
    """Run studies, and write each to its folder when it is done; *fresh* has no cache."""
    done = []
    for study in studies:
        try:
            result = study.run(fresh if fresh is not None and study.asks_again else runner)
        except NoFilterError as error:
            if len(studies) == 1:
                raise
            result = StudyResult(grids=(), findings=(f"Left out: {error}.",))
        result = _with_failures(runner, result)
        place = folder(study)
        if place is not None:
            write_study(study, result, manifest(runner), place)
        done.append((study, result))
    return done


def _with_failures(runner: StudyRunner, result: StudyResult) -> StudyResult:
    """Add a table of what failed, and a line for every ranker that is left out."""
    failed = (*result.failures, *runner.failures)
    left_out = [
        f"{ranker} on {data} is left out: {reason}"
        for (data, ranker), reason in runner.missing.items()
    ]
    grid = Grid.told(
        "failures",
        columns=(
            *Column.several("text", "data set", "row", "what"),
            Column("share", "percent"),
            Column("the last reason"),
        ),
        rows=tuple((one.data, one.who, one.what, one.share, one.problem) for one in failed),
    )
    facts = {"failures": [one._asdict() for one in failed]}
    return replace(
        result,
        grids=(*result.grids, grid) if failed else result.grids,
        findings=(*result.findings, *left_out),
        facts={**result.facts, **facts},
        failures=failed,
    )


def manifest(runner: StudyRunner) -> dict[str, Any]:
    """Return all that a study depends on, as plain data: no date, no path."""
    config = runner.config
    return {
        **describe_versions(*_LIBRARIES),
        "setup": {
            field.name: _plain(getattr(config, field.name))
            for field in fields(config)
            if field.name not in _NOT_IN_MANIFEST
        }
        | {
            "rules": {name: threshold_to_plain(rule) for name, rule in config.rules.items()},
            "embeddings": list(config.embeddings),
            "thresholds_kept_from": {
                one.name: threshold_to_plain(runner.threshold_of(one))
                for one in runner.rankers
                if one.says_why
            },
        },
        "datasets": {one.name: _describe_dataset(one) for one in runner.data()},
        "rankers": {one.name: one.fingerprint for one in runner.rankers},
        "not_available": [
            {"dataset": dataset, "ranker": ranker, "reason": reason}
            for (dataset, ranker), reason in runner.missing.items()
        ],
    }


def _describe_dataset(one: DatasetSummary) -> dict[str, Any]:
    return {
        "questions": one.n_questions,
        "candidates": one.n_candidates,
        "ceiling": None if one.n_unanswered == one.n_questions else one.ceiling,
        "first_stage": one.dataset.first_stage,
        "sha256": one.fingerprint,
    }


def describe_versions(*libraries: str) -> dict[str, Any]:
    """Return the versions that a study depends on, for its manifest."""
    return {"deepera_graph": __version__, "libraries": {name: version(name) for name in libraries}}


def describe_file(path: Path, **counts: int) -> dict[str, Any]:
    """Return what a manifest says of a file of questions: no folder, and what it holds."""
    return {"file": path.name, "sha256": sha256(path.read_bytes()).hexdigest(), **counts}


def _plain(value: Any) -> Any:
    """Return a setting as JSON; of a generator and a judge of answers their names."""
    if isinstance(value, tuple):
        return list(value)
    return getattr(value, "name", value)


def format_study(study: About, result: StudyResult, *, figures: bool = True) -> str:
    """Return one Markdown document: tables, findings, and links to the figures beside it."""
    parts = [f"# {study.title}", study.measures]
    if result.findings:
        parts.append("\n".join(f"- {line}" for line in result.findings))
    for grid in result.grids:
        parts += [f"## {grid.title}", *([grid.note] if grid.note else []), format_table(grid)]
    if figures:
        parts += [f"![{one.title}]({one.name}.png)" for one in result.drawings]
    return "\n\n".join(parts) + "\n"


def write_study(study: About, result: StudyResult, manifest: dict[str, Any], folder: Path) -> None:
    """Write ``NAME.md``, each table as CSV, each figure as SVG and PNG, and a manifest.

    What a manifest that is there names as written, and is not written now, is removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before, written = _written_before(folder), []
    for name, data in _files(study, result):
        with naming_full_file(folder / name):
            (folder / name).write_bytes(data)
        written.append(name)
    for name in before.difference(written):
        (folder / name).unlink(missing_ok=True)
    whole = {**manifest, "experiment": study.name, "files": written, **result.facts}
    text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_bytes(text.encode())


def _written_before(folder: Path) -> set[str]:
    """Return the files of an earlier study that its manifest names; none if it names none."""
    try:
        named = json.loads((folder / MANIFEST).read_bytes())["files"]
        return {one for one in named if Path(one).name == one != MANIFEST}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _files(study: About, result: StudyResult) -> Iterator[tuple[str, bytes]]:
    yield f"{study.name}.md", format_study(study, result).encode()
    for grid in result.grids:
        yield f"{grid.name}.csv", format_csv(grid).encode()
    yield from draw_files(result.drawings)


def find_embeddings(names: Sequence[str]) -> dict[str, Embeddings]:
    """Return the embeddings that names of dense rankers stand for; searchers are left out."""
    found = {}
    for name in names:
        if name in SEARCHERS:
            continue
        ranker = make_ranker(name) if name.startswith("dense") else None
        if not isinstance(ranker, Dense):
            raise SettingsError(
                f"embeddings must be {', '.join(SEARCHERS)}, dense:module:factory or "
                f"dense:NAME, got {name!r}"
            )
        found[ranker.name] = ranker.embeddings
    return found


def find_generator(name: str, models: Models) -> Generator | None:
    """Return who answers: ``first`` needs no model, ``llm`` is the model for all, none if empty."""
    if name == FIRST:
        return Extractive()
    return ChatGenerator(models.chat("" if name == LLM else name)) if name else None


def find_answer_judge(name: str, models: Models) -> LfsJudge | None:
    """Return who scores answers; ``llm`` is the model for all, none if empty."""
    return LfsJudge(models.chat("" if name == LLM else name)) if name else None


def as_ranker_names(*names: str) -> tuple[str, ...]:
    """Return names of rankers that ask the same chat models, so that these can be made ready."""
    return tuple(
        "llm-pointwise" if name == LLM else f"llm-pointwise:{name}"
        for name in names
        if name and name != FIRST
    )
