"""`deepera-lab study bioasq`: the experiments of BioASQ, each one command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.console import (
    INTERRUPTED,
    check_input,
    go_on_command,
    needing,
    progress_bar,
    say,
)
from deepera_graph.cli.shared.declaring import given, opt, split_files, split_names
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli import running

if TYPE_CHECKING:
    from deepera_graph.bioasq.phase_b.answered import TypedAnswer
    from deepera_graph.bioasq.questions import Question
    from deepera_graph.lab.studies.bioasq.runs import Kept, TimedRun
    from deepera_graph.lab.studies.bioasq.study import BioasqBench
    from deepera_graph.lab.studies.experiment import StudyResult
    from deepera_graph.retrieval.collections.passage_store import PassageStore

StudyName = Literal["depth", "rerankers", "ensembles", "styles"]
_MANIFEST = "manifest.json"
_JOURNAL = ".journal.jsonl"  # of `studies.bioasq.runs`, which takes a second to import
_measure = partial(opt, panel="Measure")
_answers = partial(opt, panel="Answers")


@dataclass(frozen=True, kw_only=True)
class StudyOptions(running.ResumedOptions):
    """What an experiment compares."""

    runs: str | None = _measure(
        "Runs of other systems, JSON lines or TREC, compared with those made here; for "
        "[b]ensembles[/b] exactly two.",
        metavar="NAME=FILE,...",
        shown="none",
    )
    retrievers: str | None = _measure(
        "What [b]depth[/b] compares: bm25, dense, hybrid, hybrid-scores.",
        metavar="NAME,...",
        shown="all that the collection has vectors for",
    )
    depths: str | None = _measure(
        "At which depths.", metavar="N,...", shown="10,100,1000,10000", many=int
    )
    rerankers: str | None = _measure(
        "What [b]rerankers[/b] compares, and the first of which [b]ensembles[/b] joins: local, "
        "rules, encoder:MODEL.",
        metavar="NAME,...",
        shown="local",
    )
    candidates: int = _measure(
        "Documents of the first stage that are reranked.", metavar="N", default=100, least=1
    )
    listed: int = _measure(
        "With --model: documents that it sorts in one prompt.", metavar="N", default=30, least=2
    )
    baseline: str | None = _measure(
        "Ranker that others are compared with.", metavar="NAME", shown="the first"
    )
    validation: float = _measure(
        "Share of the questions on which [b]ensembles[/b] searches its weights.",
        metavar="S",
        default=0.5,
    )
    styles: str | None = _answers(
        "Prompt styles that [b]styles[/b] compares, with --model.",
        metavar="1..3,...",
        shown="1,2,3",
        many=int,
    )
    shots: str | None = _answers(
        "Examples in a prompt, with --examples.",
        metavar="N,...",
        shown="1 with --examples, else 0",
        many=int,
    )
    examples: Path | None = _answers("Answered questions for prompts.", metavar="FILE")
    per_type: int = _answers(
        "Questions of each type that [b]styles[/b] asks.", metavar="N", default=20, least=1
    )


def bioasq(
    name: Annotated[StudyName, typer.Argument(metavar="NAME", help="Which one, see below.")],
    golden: Annotated[Path, typer.Argument(metavar="GOLDEN", help="Golden questions.")],
    *,
    chosen: StudyOptions,
    store: options.StoreOptions,
    chat: options.ChatOptions,
    cache: options.CacheOptions,
    budget: options.BudgetOptions,
    results: running.ResultOptions,
    output: options.OutputOptions,
) -> None:
    """Run an experiment of BioASQ: tables and figures."""
    check_input(golden, chosen.examples)
    begun = () if results.out is None else results.out.glob(f"*{_JOURNAL}")
    running.check_results(chosen, results, (f"{name}.md", _MANIFEST), begun)
    _check(name, chosen, store, chat)
    from deepera_graph.bioasq.questions import read_questions

    asked = read_questions(golden)
    with needing("study bioasq", "bench"):
        from deepera_graph.cli.opening.judges import search_here
        from deepera_graph.lab.studies.bioasq.study import STUDIES, BioasqBench, describe_setup

    search_here()
    asking = _Asking(chat, cache, budget)
    made: dict[str, TimedRun] = {}
    with _kept(results.out):
        if name == "styles":
            result = _run_styles(asked, chosen, asking, out=results.out, quiet=output.quiet)
        else:
            how = {"n_resamples": chosen.resamples, "seed": chosen.seed}
            bench = BioasqBench.of(asked, limit=chosen.limit, **how)
            result, made = _run(
                name, bench, chosen, store, asking, out=results.out, quiet=output.quiet
            )
    if results.out is not None:
        _write_runs(results.out, made)
    settings = _settings(name, chosen, store, chat)
    setup = partial(describe_setup, golden, len(asked), settings)
    running.finish(STUDIES[name], result, setup, results, output)


@contextmanager
def _kept(folder: Path | None) -> Iterator[None]:
    """Say after Ctrl-C where what is done is kept, and how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        if folder is None:
            raise
        say(f"interrupted; what is done is kept in {str(folder)!r}")
        say(f"go on with: {go_on_command('--resume', without=['--overwrite'])}")
        raise typer.Exit(INTERRUPTED) from error


def _check_names(names: Sequence[str]) -> None:
    """Raise `SettingsError` for two names that would have one file."""
    from deepera_graph.lab.studies.bioasq.runs import file_of

    files: dict[str, str] = {}
    for one in names:
        other = files.setdefault(file_of(one), one)
        if other != one or names.count(one) > 1:
            raise SettingsError(f"{other!r} and {one!r} would be kept in one file")


def _check(
    name: StudyName, chosen: StudyOptions, store: options.StoreOptions, chat: options.ChatOptions
) -> None:
    """Raise `SettingsError` for what cannot work, before anything is loaded."""
    if name == "styles":
        if chosen.examples is None and chosen.shots is not None:
            raise SettingsError("--shots needs --examples, the file that they are taken from")
        if chat.model is None and (chosen.styles is not None or chosen.examples is not None):
            raise SettingsError("prompts have styles: --styles and --examples go with --model")
    elif store.library is None and chosen.runs is None:
        raise SettingsError("give --library NAME, or --runs files of runs")


def _settings(
    name: str, chosen: StudyOptions, store: options.StoreOptions, chat: options.ChatOptions
) -> dict[str, Any]:
    plain = asdict(chosen)
    plain["examples"] = None if chosen.examples is None else chosen.examples.name
    del plain["resume"]  # it has no effect on the results
    return {
        **plain,
        "collection": None if name == "styles" else store.library,
        "embeddings": store.embeddings,
        "model": chat.model,
    }


@dataclass(frozen=True)
class _Asking:
    """How a chat model is asked, if one is."""

    chat: options.ChatOptions
    cache: options.CacheOptions
    budget: options.BudgetOptions

    @contextmanager
    def open(self) -> Iterator[dict[str, Any]]:
        """Give the backend and the cache, as `model` and `cache`; nothing without --model."""
        from deepera_graph.cli.opening.judges import chat_backend, judgements_of

        spending: dict[str, Any] = {"budget": given(self.budget) or None}
        if self.chat.max_concurrency is not None:
            spending["max_concurrency"] = self.chat.max_concurrency
        if self.chat.model is None:
            yield spending
            return
        backend = chat_backend(self.chat)
        with judgements_of(backend, self.cache.cache) as kept:
            yield {"model": backend, "cache": kept, **spending}


def _run(
    name: StudyName,
    bench: BioasqBench,
    chosen: StudyOptions,
    store: options.StoreOptions,
    asking: _Asking,
    *,
    out: Path | None,
    quiet: bool,
) -> tuple[StudyResult, dict[str, TimedRun]]:
    """Return what was found, and the runs that were made for it."""
    from deepera_graph.lab.studies.bioasq import study as experiments
    from deepera_graph.lab.studies.bioasq.runs import Kept, describe_collection

    others = _read_runs(chosen.runs)
    with _open(store) as opened:
        about = None if opened is None else describe_collection(opened)
        kept = Kept(folder=out, resume=chosen.resume, about={"collection": about})
        if name == "depth":
            depths = given(chosen).get("depths", experiments.DEPTHS)
            runs = _retrieve(opened, bench, chosen, max(depths), kept, quiet=quiet)
            fitting = _fit_depths(depths, opened)
            result = experiments.study_depth(bench, {**runs, **others}, depths=fitting)
        else:
            both = name == "ensembles" and len(others) == 2
            runs = {} if both else _rerank(opened, bench, chosen, asking, kept, quiet=quiet)
            result = _compare(name, bench, {**runs, **others}, chosen)
    return replace(result, facts={**result.facts, "collection": about}), runs


def _write_runs(folder: Path, runs: Mapping[str, TimedRun]) -> None:
    """Write runs beside the tables, so that others can be compared or joined with them."""
    from deepera_graph.bioasq.runs import write_run
    from deepera_graph.lab.studies.bioasq.runs import file_of

    for name, one in runs.items():
        write_run(folder / f"{file_of(name)}.jsonl", one.run)


def _compare(
    name: StudyName, bench: BioasqBench, runs: Mapping[str, TimedRun], chosen: StudyOptions
) -> StudyResult:
    from deepera_graph.lab.studies.bioasq import study as experiments

    if name == "rerankers":
        return experiments.study_rerankers(bench, runs, baseline=chosen.baseline or "")
    return experiments.study_ensembles(bench, _pair(runs), validation=chosen.validation)


def _pair(runs: Mapping[str, TimedRun]) -> dict[str, TimedRun]:
    """Return the two runs that are joined: the first reranker's, and the last one there is."""
    from deepera_graph.lab.studies.bioasq.runs import FIRST_STAGE

    names = [one for one in runs if one != FIRST_STAGE]
    if len(names) == 1:
        names = [*names, FIRST_STAGE]
    return {name: runs[name] for name in (names[0], names[-1])}


@contextmanager
def _open(store: options.StoreOptions) -> Iterator[PassageStore | None]:
    """Give the collection, if one is named."""
    if store.library is None:
        yield None
        return
    from deepera_graph.cli.opening.stores import open_collection

    with open_collection(store, must_exist=True) as opened:
        yield opened


def _read_runs(text: str | None) -> dict[str, TimedRun]:
    from deepera_graph.bioasq.runs import read_run
    from deepera_graph.lab.studies.bioasq.runs import TimedRun

    files = split_files("--runs", text)
    return {name: TimedRun(read_run(path)) for name, path in files.items()}


def _retrieve(
    opened: PassageStore | None,
    bench: BioasqBench,
    chosen: StudyOptions,
    depth: int,
    kept: Kept,
    *,
    quiet: bool,
) -> dict[str, TimedRun]:
    from deepera_graph.lab.studies.bioasq import runs as experiments

    if opened is None:
        return {}
    names = (
        experiments.default_retrievers(opened)
        if chosen.retrievers is None
        else split_names("--retrievers", chosen.retrievers)
    )
    total = len(names) * len(bench.questions)
    with progress_bar("searching", total=total, hidden=quiet) as bar:
        return experiments.retrieve(
            opened, names, bench.questions, depth, kept=kept, on_progress=bar.reach
        )


def _fit_depths(depths: Sequence[int], opened: PassageStore | None) -> tuple[int, ...]:
    """Leave out depths at which everything is retrieved."""
    n = None if opened is None else opened.count()
    return tuple(one for one in depths if n is None or one < n) or tuple(depths[:1])


def _rerank(
    opened: PassageStore | None,
    bench: BioasqBench,
    chosen: StudyOptions,
    asking: _Asking,
    kept: Kept,
    *,
    quiet: bool,
) -> dict[str, TimedRun]:
    from deepera_graph.lab.studies.bioasq import runs as experiments

    if opened is None:
        return {}
    names = ("local",) if chosen.rerankers is None else split_names("--rerankers", chosen.rerankers)
    _check_names([experiments.FIRST_STAGE, *names])
    n = len(bench.questions)
    with progress_bar("searching", total=n, hidden=quiet) as bar:
        found = experiments.find_candidates(
            opened, bench.questions, chosen.candidates, on_progress=bar.reach
        )
    runs = {experiments.FIRST_STAGE: experiments.candidates_as_run(found, bench.questions)}
    with asking.open() as how:
        for place, name in enumerate(names):
            more = how if place == 0 else {k: v for k, v in how.items() if k != "model"}
            sorts = {"listed": chosen.listed} if "model" in more else {}
            with progress_bar(name, total=n, hidden=quiet) as bar:
                made = experiments.rerank(
                    found,
                    bench.questions,
                    name,
                    name=name,
                    kept=kept,
                    on_progress=bar.reach,
                    **more,
                    **sorts,
                )
            runs[name] = made.judged
            if made.listed is not None:
                runs[f"{name}, sorted by {asking.chat.model}"] = made.listed
    return runs


def _run_styles(
    asked: Sequence[Question],
    chosen: StudyOptions,
    asking: _Asking,
    *,
    out: Path | None,
    quiet: bool,
) -> StudyResult:
    from deepera_graph.bioasq.phase_b.answer import TypedAnswerer
    from deepera_graph.lab.studies.bioasq import styles as experiments
    from deepera_graph.lab.studies.bioasq.runs import Kept

    limited = asked if chosen.limit is None else asked[: chosen.limit]
    questions = experiments.draw_questions(limited, per_type=chosen.per_type, seed=chosen.seed)
    answers: dict[str, list[TypedAnswer]] = {}
    kept = Kept(folder=out, resume=chosen.resume)
    with asking.open() as how:
        settings = {name: how[name] for name in how if name not in ("model", "cache")}
        ways: dict[str, Any] = {experiments.EXTRACTIVE: None}
        if "model" in how:
            ways |= _styles(how["model"], questions, chosen)
        for name, backend in ways.items():
            answerer = TypedAnswerer(backend, cache=how.get("cache"), fallback=False, **settings)
            with progress_bar(name, total=len(questions), hidden=quiet) as bar:
                answers[name] = experiments.answer_all(
                    answerer, questions, name=name, kept=kept, on_progress=bar.reach
                )
    return experiments.study_styles(
        questions, answers, n_resamples=chosen.resamples, seed=chosen.seed
    )


def _styles(model: Any, questions: Sequence[Question], chosen: StudyOptions) -> dict[str, Any]:
    """Return the roles of every style and number of examples."""
    from deepera_graph.bioasq.phase_b.roles import typed_backend
    from deepera_graph.bioasq.questions import choose_examples, read_questions

    wanted = given(chosen)
    training = [] if chosen.examples is None else read_questions(chosen.examples)
    shots = wanted.get("shots", (1,)) if training else (0,)
    made = {}
    for style in wanted.get("styles", (1, 2, 3)):
        for n in shots:
            examples = choose_examples(training, questions, shots=n) if n else {}
            name = f"style {style}" + (f", {n} shot{'' if n == 1 else 's'}" if n else "")
            made[name] = typed_backend(model, style=style, examples=examples)
    return made
