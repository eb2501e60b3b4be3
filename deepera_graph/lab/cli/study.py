"""`deepera-lab bench table`, `study` and `report`: rerankers measured on labelled questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deepera_graph.cli.opening.judges import search_here
from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.bars import Bar, progress_bar
from deepera_graph.cli.shared.console import (
    check_data,
    check_file,
    check_folder,
    needing,
    say,
    tell,
    write_json,
)
from deepera_graph.cli.shared.declaring import arg, given, opt, split_names
from deepera_graph.cli.shared.values import read_threshold
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli import running

if TYPE_CHECKING:
    from deepera_graph.lab.bench.rank import Step, Watch
    from deepera_graph.lab.rankers.named import Models
    from deepera_graph.lab.studies.base import StudyConfig, StudyRunner
    from deepera_graph.lab.studies.run import Study

MANIFEST = "manifest.json"
_TABLE_METRICS = ("HitRate@1", "HitRate@3", "MRR", "nDCG@10")
_OF_THE_MODEL = "deepera:llm"
_Data = Annotated[list[Path], arg("DATA", "Files and folders.")]
_measure = partial(opt, panel="Measure")
_answers = partial(opt, panel="Answers")


@dataclass(frozen=True, kw_only=True)
class TableOptions(running.MeasureOptions):
    """What is compared, and where the table goes."""

    rankers: str | None = _measure(
        "What to compare.",
        metavar="NAME,...",
        shown="first-stage,random,bm25,deepera:local,oracle; deepera:llm with --model; "
        "a dense one with the extra dense",
        many=str,
    )
    metrics: str | None = _measure(
        "What to measure.", metavar="NAME,...", shown="HitRate@1,HitRate@3,MRR,nDCG@10", many=str
    )
    baseline: str | None = running.of_study("baseline")
    retry_failed: bool = running.of_study("retry_failed", default=False, panel=None)


@dataclass(frozen=True, kw_only=True)
class SetupOptions(running.MeasureOptions):
    """What the studies compare and try."""

    rankers: str | None = running.of_study("rankers", many=str)
    metrics: str | None = running.of_study("metrics", many=str)
    threshold: float | None = running.of_study("threshold")
    top_n: int | None = running.of_study("top_n")
    thresholds: str | None = running.of_study("thresholds")
    tune_share: float | None = running.of_study("tune_share")
    cutoffs: str | None = running.of_study("cutoffs", many=int)
    counts: str | None = running.of_study("counts", many=int)
    shares: str | None = running.of_study("shares", many=float)
    embeddings: str | None = _measure(
        "What [b]embeddings[/b] compares: bm25, lsa (both without a model), dense:module:factory, "
        "dense-st:NAME.",
        metavar="NAME,...",
        shown="bm25,lsa",
        many=str,
    )
    base: str | None = running.of_study("base")
    sample: int | None = running.of_study("n_sampled")
    generator: str | None = _answers(
        "Who answers from what was handed on; adds F1, P and R of the answers. [b]first[/b] is the "
        "first sentence of the best passage, [b]llm[/b] the --model.",
        metavar="first|llm|PROVIDER:MODEL",
        shown="no answers",
    )
    answer_judge: str | None = _answers(
        "Who scores the answers, from 1 to 5; adds LFS. Best another model than the one that "
        "answers: a warning says so.",
        metavar="llm|PROVIDER:MODEL",
        shown="no LFS",
    )
    max_failed_share: float | None = running.of_study("max_failed_share", panel="Answers")


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """What the page shows, and where it goes."""

    out: Path = opt("The page, e.g. report.html.", "--out", "-o", metavar="FILE", needed=True)
    studies: str | None = opt(
        "What it shows; see `deepera-lab study --help`.", metavar="NAME,...", shown="all"
    )
    worst: int = opt(
        "How many of the worst questions of each ranker and data set it shows.",
        metavar="N",
        default=15,
        least=0,
    )
    overwrite: bool = opt("Replace FILE.", default=False)


def table(
    data: _Data,
    *,
    chosen: TableOptions,
    read: running.DataOptions,
    files: running.ResultOptions,
    asked: options.ModelOptions,
    output: options.OutputOptions,
) -> None:
    """Compare rankers on data sets: tables with intervals."""
    check_data(data)
    with needing("bench table", "bench"):
        from deepera_graph.lab.studies.base import StudyConfig
        from deepera_graph.lab.studies.rerank.table import ORACLE, default_rankers
        from deepera_graph.lab.studies.run import TABLE, manifest, run_studies

    check_folder(files.out, (f"{TABLE.name}.md", MANIFEST), overwrite=files.overwrite)
    how = {"metrics": _TABLE_METRICS, **given(read, chosen)}
    rankers = how.pop("rankers", (*default_rankers(), *[_OF_THE_MODEL] * bool(asked.model)))
    how |= {"oracle": ORACLE in rankers, "max_failed_share": 1.0}
    how["rankers"] = tuple(one for one in rankers if one != ORACLE)
    config = StudyConfig(data=tuple(data), **how)
    with _open_runners(config, asked, output) as (runner, _):
        [(_, result)] = run_studies([TABLE], runner)
        running.finish(TABLE, result, partial(manifest, runner), files, output)
    _tell_missing(runner)
    if chosen.keep is not None and runner.failures:
        say("passages that could not be judged are kept as such; --retry-failed ranks them again")


def study(
    context: typer.Context,
    data: _Data,
    *,
    setup: SetupOptions,
    read: running.DataOptions,
    results: running.ResultOptions,
    asked: options.ModelOptions,
    output: options.OutputOptions,
) -> None:
    """Run the experiment with rerankers that the command is named after."""
    with needing("study", "bench"):
        from deepera_graph.lab.studies.run import STUDIES, format_study, run_studies

    name, out = str(context.info_name), results.out
    chosen = [*STUDIES.values()] if name == "all" else [STUDIES[name]]

    def place(one: Study) -> Path | None:
        return out / one.name if out is not None and name == "all" else out

    files = [f"{name}.md", MANIFEST]
    if name == "all":
        files = [f"{one.name}/{MANIFEST}" for one in chosen]
    check_folder(out, files, overwrite=results.overwrite)
    with _open_study(data, setup, read, asked, output) as (runner, fresh):
        done = run_studies(chosen, runner, place, fresh=fresh)
    _tell_missing(runner)
    tell(
        output,
        [running.plain_result(one.name, result) for one, result in done],
        lambda: "\n".join(format_study(*one, figures=False) for one in done),
        out=out,
    )


def report(
    data: _Data,
    *,
    page: PageOptions,
    setup: SetupOptions,
    read: running.DataOptions,
    asked: options.ModelOptions,
    output: options.OutputOptions,
) -> None:
    """Write one HTML page: tables, figures, and the worst questions to browse."""
    with needing("bench", "bench"):
        from deepera_graph.lab.bench.report import render_report

    chosen = _find_studies(page.studies)
    if page.out.suffix.lower() not in {".html", ".htm"}:
        raise SettingsError(f"--out is a page, e.g. {page.out}.html, got {str(page.out)!r}")
    check_file(page.out, overwrite=page.overwrite)
    with _open_study(data, setup, read, asked, output) as (runner, fresh):
        text = render_report(chosen, runner, fresh=fresh, n_worst=page.worst)
    page.out.write_text(text, encoding="utf-8", newline="\n")
    _tell_missing(runner)
    if output.as_json:
        write_json({"page": str(page.out), "studies": [one.name for one in chosen]})
    elif not output.quiet:
        say(f"wrote {page.out}")


def _find_studies(studies: str | None) -> list[Study]:
    from deepera_graph.lab.studies.run import STUDIES

    if studies is None:
        return list(STUDIES.values())
    names = split_names("--studies", studies)
    for name in names:
        if name not in STUDIES:
            raise SettingsError(f"--studies are {', '.join(STUDIES)}, got {name!r}")
    return [STUDIES[name] for name in dict.fromkeys(names)]


@contextmanager
def _open_study(
    data: Sequence[Path],
    setup: SetupOptions,
    read: running.DataOptions,
    asked: options.ModelOptions,
    output: options.OutputOptions,
) -> Iterator[tuple[StudyRunner, StudyRunner]]:
    """Give what experiments run in, and the same without the cache of chat models."""
    from deepera_graph.lab.studies.base import StudyConfig
    from deepera_graph.lab.studies.run import as_ranker_names

    if setup.answer_judge and not setup.generator:
        raise SettingsError("--answer-judge goes with --generator")
    chosen = given(setup)
    names = {"rankers": chosen.pop("rankers")} if setup.rankers is not None else {}
    plain = StudyConfig(data=tuple(data), **given(read), **names)
    asking = as_ranker_names(setup.generator or "", setup.answer_judge or "")
    more = partial(_read_setup, chosen)
    with _open_runners(plain, asked, output, asking, more) as runners:
        yield runners


@contextmanager
def _open_runners(
    config: StudyConfig,
    asked: options.ModelOptions,
    output: options.OutputOptions,
    asking: Sequence[str] = (),
    more: Callable[[Models], dict[str, Any]] = lambda models: {},
) -> Iterator[tuple[StudyRunner, StudyRunner]]:
    """Give the runner of a configuration, and one that no cache of chat models answers."""
    from deepera_graph.lab.studies.run import open_runner

    search_here()
    with (
        running.open_models(asked, (*config.rankers, *asking)) as models,
        ranking_bars(hidden=output.quiet) as watch,
    ):
        whole = replace(config, models=models, **more(models))
        yield open_runner(whole, watch=watch), open_runner(whole, watch=watch, cached=False)


def _read_setup(chosen: dict[str, Any], models: Models) -> dict[str, Any]:
    from deepera_graph.lab.studies.base import SEARCHERS
    from deepera_graph.lab.studies.rerank.answers import warn_of_one_model
    from deepera_graph.lab.studies.run import find_answer_judge, find_embeddings, find_generator

    names = chosen.pop("embeddings", SEARCHERS)
    chosen |= _read_thresholds(chosen.pop("thresholds", None))
    chosen["searchers"] = tuple(name for name in names if name in SEARCHERS)
    chosen["embeddings"] = find_embeddings(names)
    chosen["generator"] = find_generator(chosen.pop("generator", ""), models)
    chosen["answer_judge"] = find_answer_judge(chosen.pop("answer_judge", ""), models)
    if (warning := warn_of_one_model(chosen["generator"], chosen["answer_judge"])) is not None:
        say(f"warning: {warning}")
    return chosen


def _read_thresholds(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    read = {name: _read_threshold(name) for name in split_names("--thresholds", text)}
    return {
        "thresholds": tuple(one for one in read.values() if isinstance(one, float)),
        "rules": {name: one for name, one in read.items() if not isinstance(one, float)},
    }


def _read_threshold(text: str) -> Any:
    from deepera_graph.settings.thresholds import Calibrated, Curve

    name, _, rest = text.partition(":")
    if name == "calibrated" and rest:
        path, _, probability = rest.rpartition(":")
        if not path or not probability.replace(".", "", 1).isdigit():
            return Calibrated(curve=Curve.load(rest))
        return Calibrated(curve=Curve.load(path), probability=float(probability))
    try:
        return read_threshold(text.replace("+", ","))
    except SettingsError as error:
        raise SettingsError(
            "--thresholds must be numbers from 0 to 1, gap[:FLOOR], quantile:SHARE[:FLOOR], "
            "calibrated:CURVE[:PROBABILITY] and thresholds by intent with + between them, e.g. "
            f"mechanism=0.7+default=0.8; with commas between all of them; got {text!r}: {error}"
        ) from error


def _tell_missing(runner: StudyRunner) -> None:
    """Write a line to stderr for every ranker that was not available."""
    missing = {(ranker, reason): None for (_, ranker), reason in runner.missing.items()}
    for ranker, reason in missing:
        say(f"{ranker} is not available: {reason}")


@contextmanager
def ranking_bars(*, hidden: bool) -> Iterator[Watch]:
    """Give what is to be told of every `Step` of a benchmark: a bar a ranker and data set."""
    with ExitStack() as shown:
        bar: Bar

        def watch(step: Step) -> None:
            nonlocal bar
            if step.n_done == 1:
                shown.close()  # that of the run before
                what, total = f"{step.dataset}: {step.ranker}", step.n_questions
                bar = shown.enter_context(progress_bar(what, total=total, hidden=hidden))
            bar.reach(step.n_done)

        yield watch
