"""`deepera-lab study papers`: compare searches for papers, over a base or from files of runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.cli.opening.judges import chat_backend, search_here
from deepera_graph.cli.opening.stores import check_papers, find_embeddings, is_address
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import SOME_FAILED, check_input, needing, say
from deepera_graph.cli.shared.declaring import arg, given, opt, opt_of, split_files, split_names
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli import running
from deepera_graph.papers.agent.settings import PaperSearchSettings

if TYPE_CHECKING:
    from deepera_graph.lab.studies.papers.runs import PaperQuery, Run
    from deepera_graph.papers.base import PaperBase

_PAGE, _PROVENANCE = "report.html", "provenance.csv"
_FILES = ("papers.md", _PAGE, _PROVENANCE, "manifest.json")
_OF_AGENTS = ("selector", "max_steps", "max_actions")
_OF_MODELS = ("pasa", "spar", "scout")
_measure = partial(opt, panel="Measure")
_agents = partial(opt, panel="Agents")
_far = partial(opt_of, PaperSearchSettings, panel="Agents", ranged=True, config=None)


@dataclass(frozen=True, kw_only=True)
class PaperOptions(running.ResumedOptions):
    """What is compared."""

    base: str | None = opt(
        "The papers that are searched: a library, a file, or the address of a server.",
        "--library",
        "-l",
        metavar="NAME|FILE|URL",
        shown="none",
    )
    systems: str | None = opt(
        "What searches the base: sparse, dense, hybrid (once, with the query as it stands), and "
        "agents by style: agent:rules; with --model agent:pasa, agent:spar, agent:scout.",
        metavar="NAME,...",
        shown="all that the base has vectors for",
    )
    runs: str | None = opt(
        "Runs of other systems, see below.", metavar="NAME=FILE,...", shown="none"
    )
    services: str | None = opt(
        "Systems behind an address, which answer as `/v1/search` of `deepera papers serve` does; "
        "each is asked for 300 papers, which --library matches by id or title.",
        metavar="NAME=URL,...",
        shown="none",
    )
    depth: int = opt(
        "Papers that one search returns; an agent returns all that it keeps.",
        metavar="K",
        default=100,
        least=1,
    )
    limits: Literal["none", "years", "all"] = opt(
        "Limits of the queries that searches are given: none, years, or all, which is venues, too. "
        "Exclusions in words are for agents alone; hidden papers are always hidden.",
        default="years",
    )
    embeddings: str | None = opt(
        "Those that the base was built with.", metavar="NAME", shown="those that the base names"
    )
    selector: Literal["deepera", "vectors", "rules", "llm"] | None = _agents(
        "Who says what fits and what breaks a limit; see `deepera papers ask --help`. deepera has "
        "the local judge.",
        metavar="NAME",
        shown="llm with --model, else vectors",
    )
    max_steps: int | None = _far("max_steps")
    max_actions: int | None = _far("max_actions")
    judges: str | None = _measure(
        "Accuracies, from 0 to 1, of scripted judges: what each run becomes when one that tells "
        "the truth so often orders it.",
        metavar="A,...",
        shown="none",
        many=float,
    )
    buckets: str | None = _measure(
        "Where buckets of numbers of answers begin.",
        metavar="N,...",
        shown="1,5,26,51,101,151,201",
        many=int,
    )
    baseline: str | None = _measure(
        "System that others are compared with.", metavar="NAME", shown="the first"
    )
    show: str | None = _measure(
        "Queries whose calls are shown.",
        metavar="ID,...",
        shown="that with the most telling calls",
        setting="shown",
        many=str,
    )
    draw: int | None = _measure(
        "Only N queries of each intent, drawn with --seed; all of an intent that has fewer.",
        metavar="N",
        least=1,
        shown="all",
    )


def papers(
    queries: Annotated[Path, arg("QUERIES", "Queries with answers.")],
    *,
    chosen: PaperOptions,
    chat: options.ChatOptions,
    results: running.ResultOptions,
    output: options.OutputOptions,
) -> None:
    """Compare searches for papers: tables, figures and a page."""
    check_input(queries)
    names = () if chosen.systems is None else split_names("--systems", chosen.systems)
    _check(chosen, chat, results, names)
    wanted = given(chosen)
    accuracies = wanted.get("judges", ())
    with needing("study papers", "bench"):
        from deepera_graph.lab.studies.papers import runs, scores, study
        from deepera_graph.lab.studies.papers.judges import check_accuracies
        from deepera_graph.lab.studies.papers.known import KnownPapers
        from deepera_graph.lab.studies.papers.runs import MODES

    check_accuracies(accuracies)
    asked = runs.read_queries(queries, limit=chosen.limit)
    if chosen.draw is not None:
        asked = scores.draw_queries(asked, chosen.draw, seed=chosen.seed)
    taken = ("buckets", "baseline", "shown", "n_resamples", "seed")
    how = {name: wanted[name] for name in taken if name in wanted}
    bench = scores.PaperBench(queries=asked, **how)
    files = split_files("--runs", chosen.runs)
    check_input(*files.values())
    others = {name: runs.read_run(path) for name, path in files.items()}
    for name, run in others.items():
        scores.SystemScores.of(name, run, bench)  # what is wrong is said before the searches
    services = _split_services(chosen.services)
    with _open_base(chosen) as base:
        about = {} if base is None else base.describe()
        known = KnownPapers.of(asked, base)
        bench = replace(bench, queries=tuple(map(known.in_query, asked)))
        if base is not None and not names:
            names = MODES if base.has_vectors else ("sparse",)
        systems = (*names, *services)
        _check_systems(systems, others, chosen)
        begun = [] if results.out is None else [results.out / _file_of(one) for one in systems]
        running.check_results(chosen, results, _FILES, begun)
        made = _search(
            systems,
            queries,
            bench.queries,
            base=base,
            services=services,
            chosen=chosen,
            chat=chat,
            out=results.out,
            quiet=output.quiet,
        )
    every = {**made, **{name: known.in_run(run) for name, run in others.items()}}
    result = study.study_all(bench, every, accuracies=accuracies)
    result = replace(result, findings=(*known.describe_missing(), *result.findings))
    settings = {
        **asdict(chosen),
        "base": None if chosen.base is None else Path(chosen.base).name,
        "model": chat.model,
        "runs": [*files],
    }
    del settings["resume"]
    setup = partial(study.describe_setup, queries, bench, settings, every, about)
    running.finish(study.PAPERS, result, setup, results, output)
    if results.out is not None:
        _write_beside(results.out, bench, every, result, setup())
    if any(one.error for run in made.values() for one in run.values()):
        raise typer.Exit(SOME_FAILED)


def _check(
    chosen: PaperOptions,
    chat: options.ChatOptions,
    results: running.ResultOptions,
    names: tuple[str, ...],
) -> None:
    """Raise `SettingsError` for what cannot work, before anything is loaded."""
    if chosen.base is None and chosen.systems is not None:
        raise SettingsError("--systems are searches of a base; name one with --library")
    if chosen.base is None and chosen.runs is None and chosen.services is None:
        raise SettingsError(
            "--library must name a base of papers, --runs files of runs, or --services addresses"
        )
    asking = [name for name in names if name.partition(":")[2] in _OF_MODELS]
    if asking and not chat.model:
        raise SettingsError(f"the system {asking[0]} needs --model; agent:rules needs no key")
    if chat.model and not asking:
        raise SettingsError("--model goes with --systems agent:pasa, agent:spar or agent:scout")
    if chosen.draw is not None and chosen.limit is not None:
        raise SettingsError("give --draw or --limit, not both")
    running.check_results(chosen, results, _FILES, ())


def _check_systems(
    systems: tuple[str, ...], others: Mapping[str, Run], chosen: PaperOptions
) -> None:
    for name in systems:
        if name in others or systems.count(name) > 1:
            raise SettingsError(f"there are two systems of the name {name!r}")
    known = (*systems, *others)
    if chosen.baseline is not None and chosen.baseline not in known:
        raise SettingsError(
            f"--baseline must be one of {', '.join(known)}, got {chosen.baseline!r}"
        )


@contextmanager
def _open_base(chosen: PaperOptions) -> Iterator[PaperBase | None]:
    if chosen.base is None:
        yield None
        return
    from deepera_graph.papers.base import PaperBase

    search_here()
    name = chosen.embeddings
    if not is_address(chosen.base):
        made: Any = name if name in (None, "local") else find_embeddings(name)
        opened = PaperBase.open(check_papers(places.PlaceOptions(), chosen.base), embeddings=made)
    elif name:
        raise SettingsError("--embeddings goes with a file; a server has its own")
    else:
        opened = PaperBase.connect(chosen.base)
    with opened as base:
        yield base


def _split_services(text: str | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in () if text is None else split_names("--services", text):
        name, _, url = one.partition("=")
        if not name or not is_address(url) or name in found:
            raise SettingsError(f"--services must be NAME=URL, each name once, got {one!r}")
        found[name] = url
    return found


def _search(
    systems: tuple[str, ...],
    queries: Path,
    asked: tuple[PaperQuery, ...],
    *,
    base: PaperBase | None,
    services: Mapping[str, str],
    chosen: PaperOptions,
    chat: options.ChatOptions,
    out: Path | None,
    quiet: bool,
) -> dict[str, Run]:
    """Run systems over a base, and ask services; keep what each found at once in a folder."""
    from deepera_graph.lab.asking import MAX_CONCURRENCY
    from deepera_graph.lab.studies.papers.judges import search_by_service
    from deepera_graph.lab.studies.papers.runs import (
        AGENT,
        describe_run,
        find_system,
        run_system,
    )

    planner = chat_backend(chat) if chat.model else None
    n_at_once = 1 if planner is None else chat.max_concurrency or MAX_CONCURRENCY
    bounds = {name: one for name, one in given(chosen).items() if name in _OF_AGENTS}
    how: dict[str, Any] = {
        "depth": chosen.depth, "limits": chosen.limits, "settings": bounds,
    }  # fmt: skip
    ready = {
        name: search_by_service(services[name], base=base, limits=chosen.limits)
        if base is None or name in services  # `_check` takes no system without a base
        else find_system(base, name, planner=planner, **how)
        for name in systems
    }
    found: dict[str, Run] = {}
    for name, system in ready.items():
        shown = f"{name} at {services[name]}" if name in services else name
        about = describe_run(base, shown, queries, model=chat.model, **how)
        with progress_bar(name, total=len(asked), hidden=quiet) as bar:
            found[name] = run = run_system(
                system,
                asked,
                path=None if out is None else out / _file_of(name),
                about=about,
                resume=chosen.resume,
                at_once=n_at_once if name.startswith(AGENT) else 1,
                on_progress=bar.reach,
            )
        failed = [one.error for one in run.values() if one.error]
        if failed and not quiet:
            say(f"{name}: {len(failed)} of {len(run)} queries failed, e.g. {failed[0]}")
    return found


def _file_of(name: str) -> str:
    return f"{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')}.jsonl"


def _write_beside(
    folder: Path, bench: Any, runs: Mapping[str, Run], result: Any, setup: Any
) -> None:
    from deepera_graph.lab.bench.report import render_page
    from deepera_graph.lab.studies.papers.figures import write_provenance
    from deepera_graph.lab.studies.papers.study import PAPERS

    write_provenance(folder / _PROVENANCE, bench, runs)
    about = f"{len(bench.queries):,} queries, {len(runs)} systems. Brackets hold 95 % intervals."
    page = render_page([(PAPERS, result)], None, setup, title=PAPERS.title, about=about)
    (folder / _PAGE).write_text(page, encoding="utf-8", newline="\n")
