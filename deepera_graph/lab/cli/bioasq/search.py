"""`deepera-lab bioasq search`: documents and snippets of questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deepera_graph.bioasq.settings import (
    MAX_SNIPPETS,
    PRESETS,
    Ensemble,
    SearchSettings,
    check_pair,
)
from deepera_graph.cli.opening.judges import chat_backend, judgements_of, limits_of, open_judge
from deepera_graph.cli.opening.stores import (
    find_collection_folder,
    going_on,
    keep_with,
    open_collection,
)
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import (
    MOST_TOLD,
    OK,
    SOME_FAILED,
    check_file,
    check_input,
    from_thread,
    go_on_command,
    may_write,
    say,
    tell_done,
)
from deepera_graph.cli.shared.declaring import A_KEY, arg, given, opt, opt_of
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.lab.cli.running import check_resume
from deepera_graph.settings import read_fields
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.bioasq.phase_a.search import DocumentSearch
    from deepera_graph.bioasq.questions import BioasqQuestion
    from deepera_graph.bioasq.runs import SearchJournal

DAILY = {
    "search": (
        "out", "run", "resume", "overwrite", "library", "path", "qdrant_url", "backend", "model",
        "base_url", "depth", "judged", "snippets", "as_json", "quiet",
    ),
}  # fmt: skip
_MANIFEST = ".manifest"
_STAGES = ("retrieved", "judged", "listed", "final")
_PANEL = "What is found"
_found = partial(opt_of, SearchSettings, panel=_PANEL, ranged=True, config=None)


@dataclass(frozen=True, kw_only=True)
class SearchFiles:
    """Where results go."""

    out: Path = opt(
        "The submission: documents and snippets.", "--out", "-o", metavar="FILE", needed=True
    )
    run: Path | None = opt(
        "Also write the whole ranking of every question: JSON lines, or a TREC run if the name "
        "ends with .trec.",
        brief="Also write the whole ranking of every question.",
        metavar="FILE",
    )
    stages: Path | None = opt(
        "Also write the rankings on the way, each as a run: retrieved.jsonl, judged.jsonl, "
        "listed.jsonl, final.jsonl.",
        metavar="FOLDER",
    )
    limit: int | None = opt("Search for the first N questions alone.", metavar="N", least=1)
    resume: bool = opt(
        "Go on with a search that was cut short; what failed is searched for again.", default=False
    )
    overwrite: bool = opt("Replace files that exist.", default=False)


@dataclass(frozen=True, kw_only=True)
class PhaseAOptions:
    """How documents are found and ordered."""

    depth: int | None = _found("depth")
    judged: int | None = _found("judged")
    rewrite: bool = opt(
        "With --model: also search for a query that the chat model makes of the question.",
        default=False,
        panel=_PANEL,
    )
    no_sort: bool = opt(
        "With --model: do not have it sort the documents.", default=False, panel=_PANEL
    )
    listed: int | None = _found("listed")
    ensemble: Ensemble | None = _found("ensemble")
    weights: str | None = _found("weights", many=float)
    nominate: str | None = _found("nominated", many=int)
    documents: int | None = _found("n_documents")
    snippets: str | None = _found("n_snippets")


@dataclass(frozen=True, kw_only=True)
class SearchJudgeOptions(options.PaidJudgeOptions):
    """Who judges, under settings that may be those of the challenge."""

    preset: str | None = opt(
        "[b]paper[/b]: the chain of the system of BioASQ 13b, which scored all 1000 documents that "
        "it retrieved; give --backend its cross-encoder, or one of yours. With --backend llm also "
        "[b]fast[/b], [b]careful[/b] or [b]cheap[/b]. Options that are given override it.",
        metavar="NAME",
        panel="Who judges",
        config=A_KEY,
    )


def search(
    questions: Annotated[Path, arg("QUESTIONS", "Questions as BioASQ gives them, JSON.")],
    *,
    files: SearchFiles,
    store: places.StoreOptions,
    keep: places.KeepOptions,
    judge: SearchJudgeOptions,
    chosen: PhaseAOptions,
    output: options.OutputOptions,
) -> None:
    """Find documents and snippets for questions of BioASQ."""
    _check_files(questions, files)
    settings = _settings_of(judge, chosen)
    _check_model(judge, chosen)
    if not store.library:
        raise SettingsError("--library must name the library that is searched")
    from deepera_graph.bioasq.questions import read_questions

    asked = read_questions(questions)[: files.limit]
    if not asked:
        raise SettingsError(f"no questions in {str(questions)!r}")
    if (preset := PRESETS.get(judge.preset or "")) is not None:
        settings = {**preset, **settings}
        judge = replace(judge, preset=None)
    checked = read_fields("settings", SearchSettings, settings)

    scorer, sorter = _open_models(judge, store, keep)
    asked_of = scorer if sorter is None else sorter
    with (
        nullcontext() if asked_of is None else judgements_of(asked_of, judge.cache) as judgements,
        open_collection(store, must_exist=True) as opened,
    ):
        from deepera_graph.bioasq.phase_a.search import DocumentSearch

        how: dict[str, Any] = {"sort": not chosen.no_sort, "rewrite": chosen.rewrite}
        how |= {"cache": judgements, **checked.to_dict()}
        finder = DocumentSearch(opened, judge=scorer, model=sorter, **how)
        code = _search_all(finder, asked, files, store, output)
    raise typer.Exit(code)


def _check_files(questions: Path, files: SearchFiles) -> None:
    check_input(questions)
    check_resume(resume=files.resume, overwrite=files.overwrite)
    if files.stages is not None and files.stages.is_file():
        raise SettingsError(f"--stages must be a folder, got {str(files.stages)!r}")
    written = [one for one in (files.out, files.run) if one is not None]
    if len({one.absolute() for one in (*written, questions)}) <= len(written):
        raise SettingsError("QUESTIONS, --out and --run must be different files")
    if files.stages is not None and not may_write(files.stages):
        raise SettingsError(f"{str(files.stages)!r} cannot be written")
    for path in (*written, _manifest_of(files)):
        check_file(path, overwrite=files.overwrite, resume=files.resume)


def _manifest_of(files: SearchFiles) -> Path:
    return files.out.with_name(files.out.name.removesuffix(".json") + _MANIFEST)


def _settings_of(judge: SearchJudgeOptions, chosen: PhaseAOptions) -> dict[str, Any]:
    plain = given(replace(chosen, rewrite=False, no_sort=False, snippets=None))
    if chosen.snippets is not None and chosen.snippets != "auto":
        if not chosen.snippets.isdecimal() or int(chosen.snippets) > MAX_SNIPPETS:
            raise SettingsError(
                f"--snippets must be auto or a number from 0 to 10, got {chosen.snippets!r}"
            )
        plain["n_snippets"] = int(chosen.snippets)
    for option, name in (("--weights", "weights"), ("--nominate", "nominated")):
        if name in plain:
            check_pair(option, plain[name])
    return plain | limits_of(judge)


def _check_model(judge: options.JudgeOptions, chosen: PhaseAOptions) -> None:
    if judge.model:
        return
    for name in ("rewrite", "no_sort", "listed", "ensemble", "weights", "nominate"):
        if getattr(chosen, name):
            raise SettingsError(f"--{name.replace('_', '-')} needs --model")


def _open_models(
    judge: options.JudgeOptions, store: places.StoreOptions, keep: places.KeepOptions
) -> tuple[Any, Any]:
    """Return who scores, and the chat model that sorts; None for nobody."""
    kept = keep_with(find_collection_folder(store), keep)
    of_llm = ("preset", "domain", "mode", "group_size", "cascade")
    alone = options.JudgeOptions(backend=judge.backend or "local")
    if judge.backend != "llm":
        for name in of_llm:
            if getattr(judge, name) is not None:
                raise SettingsError(f"--{name.replace('_', '-')} goes with --backend llm")
    sorter = chat_backend(judge) if judge.model else None
    if judge.backend == "none":
        return None, sorter
    return open_judge(judge if judge.backend == "llm" else alone, kept), sorter


def _search_all(
    finder: DocumentSearch,
    asked: Sequence[BioasqQuestion],
    files: SearchFiles,
    store: places.StoreOptions,
    output: options.OutputOptions,
) -> int:
    """Search for all that is not done yet, write what was found, and say how it went."""
    from deepera_graph.bioasq.runs import SearchJournal

    ran = {**finder.describe(), "collection": store.library}
    journal = SearchJournal(_manifest_of(files), ran)
    with journal.open(resume=files.resume):
        n_others = len(journal.entries.keys() - {one.id for one in asked})
        if n_others and not output.quiet:
            others = f"{count(n_others, 'question')} of an earlier search"
            say(f"{others} not asked now: kept in {str(_manifest_of(files))!r}, not in --out")
        left = [one for one in asked if not journal.is_done(one)]
        with going_on(lambda: f"{count(len(journal.entries), 'question')} done", "--resume"):
            _run(finder, left, len(asked), journal, output)
    _write(journal, asked, files)
    return _tell_outcomes(journal, asked, files, len(asked) - len(left), output)


def _run(
    finder: DocumentSearch,
    left: Sequence[BioasqQuestion],
    n_asked: int,
    journal: SearchJournal,
    output: options.OutputOptions,
) -> None:
    n_done, n_told = n_asked - len(left), 0
    with progress_bar("searching", total=n_asked, hidden=output.quiet) as bar:
        for result in from_thread(finder.stream(left)):
            if result.unusable:
                raise BackendError(f"{result.unusable}; questions that are done are kept")
            journal.add(result.to_dict())
            n_done += 1
            bar.reach(n_done)
            if result.problems and n_told < MOST_TOLD:
                n_told += 1
                say(f"question {result.question.id!r}: {'; '.join(result.problems)}")


def _write(journal: SearchJournal, asked: Sequence[BioasqQuestion], files: SearchFiles) -> None:
    from deepera_graph.bioasq.questions import write_questions
    from deepera_graph.bioasq.runs import write_run

    write_questions(files.out, [journal.question(one) for one in asked])
    if files.run is not None:
        write_run(files.run, journal.run("whole", asked))
    if files.stages is not None:
        files.stages.mkdir(parents=True, exist_ok=True)
        for name in _STAGES:
            write_run(files.stages / f"{name}.jsonl", journal.run(name, asked))


def _tell_outcomes(
    journal: SearchJournal,
    asked: Sequence[BioasqQuestion],
    files: SearchFiles,
    n_earlier: int,
    output: options.OutputOptions,
) -> int:
    from deepera_graph.bioasq.runs import DONE
    from deepera_graph.usage import Usage

    entries = [journal.entries[one.id] for one in asked if one.id in journal.entries]
    outcomes = Counter(one["outcome"] for one in entries)
    used = [Usage.of(record) for one in entries for record in one["usage"].values()]
    usage = sum(used, Usage())
    answered = [journal.question(one) for one in asked]
    plain = {
        "questions": len(asked),
        "earlier": n_earlier,
        "outcomes": dict(outcomes),
        "documents": sum(len(one.documents) for one in answered),
        "snippets": sum(len(one.snippets) for one in answered),
        "usage": usage.record(),
        "out": str(files.out),
    }
    others = "".join(f", {n} {name}" for name, n in sorted(outcomes.items()) if name != "ok")
    tell_done(
        output,
        plain,
        lambda: (
            f"{count(len(asked), 'question')}: {plain['documents']} documents, "
            f"{plain['snippets']} snippets in {files.out}; {outcomes['ok']} ok{others}; "
            f"{count(usage.calls, 'call')}"
            + (f", {usage.failed_calls} failed" if usage.failed_calls else "")
        ),
    )
    failed = any(one["outcome"] not in DONE for one in entries)
    if failed and not output.quiet:
        say(f"search for the rest again with: {go_on_command('--resume', without=['--overwrite'])}")
    return SOME_FAILED if failed else OK
