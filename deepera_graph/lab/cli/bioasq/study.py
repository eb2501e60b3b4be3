"""`deepera-lab study bioasq`: the experiments of BioASQ, each one command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from deepera_graph.cli.opening.judges import limits_of, open_chat, search_here
from deepera_graph.cli.opening.stores import going_on, open_collection
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import check_input, needing
from deepera_graph.cli.shared.declaring import arg, given, opt, split_files, split_names
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli import running

if TYPE_CHECKING:
    from deepera_graph.bioasq.questions import BioasqQuestion
    from deepera_graph.lab.studies.bioasq.runs import TimedRun
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
    name: Annotated[StudyName, arg("NAME", "Which one, see below.")],
    golden: Annotated[Path, arg("GOLDEN", "Golden questions.")],
    *,
    chosen: StudyOptions,
    store: places.StoreOptions,
    chat: options.ModelOptions,
    results: running.ResultOptions,
    output: options.OutputOptions,
) -> None:
    """Run an experiment of BioASQ: tables and figures."""
    check_input(golden, chosen.examples)
    out = results.out
    begun = () if out is None else out.glob(f"*{_JOURNAL}")
    running.check_results(chosen, results, (f"{name}.md", _MANIFEST), begun)
    _check(name, chosen, store, chat)
    from deepera_graph.bioasq.questions import read_questions

    asked = read_questions(golden)
    with needing("study bioasq", "bench"):
        from deepera_graph.bioasq.runs import write_run
        from deepera_graph.lab.studies.bioasq.runs import file_of
        from deepera_graph.lab.studies.bioasq.study import STUDIES, describe_setup

    search_here()
    work = _Experiment(chosen=chosen, store=store, chat=chat, output=output, out=out)
    with (
        nullcontext()
        if out is None
        else going_on(lambda: f"what is done is kept in {str(out)!r}", "--resume")
    ):
        result, made = work.styles(asked) if name == "styles" else work.run(name, asked)
    if out is not None:
        for one, run in made.items():
            write_run(out / f"{file_of(one)}.jsonl", run.run)
    settings = {
        **asdict(chosen),
        "examples": None if chosen.examples is None else chosen.examples.name,
        "collection": None if name == "styles" else store.library,
        "embeddings": store.embeddings,
        "model": chat.model,
    }
    del settings["resume"]  # it has no effect on the results
    setup = partial(describe_setup, golden, len(asked), settings)
    running.finish(STUDIES[name], result, setup, results, output)


def _check(
    name: StudyName, chosen: StudyOptions, store: places.StoreOptions, chat: options.ChatOptions
) -> None:
    """Raise `SettingsError` for what cannot work, before anything is loaded."""
    if name == "styles":
        if chosen.examples is None and chosen.shots is not None:
            raise SettingsError("--shots needs --examples, the file that they are taken from")
        if chat.model is None and (chosen.styles is not None or chosen.examples is not None):
            raise SettingsError("prompts have styles: --styles and --examples go with --model")
    elif store.library is None and chosen.runs is None:
        raise SettingsError("give --library NAME, or --runs files of runs")


@dataclass(frozen=True, kw_only=True)
class _Experiment:
    chosen: StudyOptions
    store: places.StoreOptions
    chat: options.ModelOptions
    output: options.OutputOptions
    out: Path | None

    def bar(self, name: str, total: int) -> Any:
        return progress_bar(name, total=total, hidden=self.output.quiet)

    @contextmanager
    def asking(self) -> Iterator[dict[str, Any]]:
        """Give the backend and the cache, as `model` and `cache`; nothing without --model."""
        if self.chat.model is None:
            yield limits_of(self.chat)
            return
        with open_chat(self.chat) as (backend, kept):
            yield {"model": backend, "cache": kept, **limits_of(self.chat)}

    def run(
        self, name: str, asked: Sequence[BioasqQuestion]
    ) -> tuple[StudyResult, dict[str, TimedRun]]:
        """Return what was found of an experiment of phase A, and the runs made for it."""
        from deepera_graph.bioasq.runs import read_run
        from deepera_graph.lab.studies.bioasq import runs, study

        chosen, store = self.chosen, self.store
        files = split_files("--runs", chosen.runs)
        others = {one: runs.TimedRun(read_run(path)) for one, path in files.items()}
        how = {"n_resamples": chosen.resamples, "seed": chosen.seed}
        bench = study.BioasqBench.of(asked, limit=chosen.limit, **how)
        made: dict[str, TimedRun] = {}
        named = None if store.library is None else open_collection(store, must_exist=True)
        with named or nullcontext() as opened:
            about = opened and runs.describe_collection(opened)
            kept = runs.Kept(folder=self.out, resume=chosen.resume, about={"collection": about})
            if name == "depth":
                depths = given(chosen).get("depths", study.DEPTHS)
                if opened is not None:
                    made = self._retrieve(opened, bench, max(depths), kept)
                    depths = tuple(one for one in depths if one < opened.count()) or depths[:1]
                result = study.study_depth(bench, {**made, **others}, depths=depths)
            else:
                both = name == "ensembles" and len(others) == 2
                if opened is not None and not both:
                    made = self._rerank(opened, bench, kept)
                result = self._compare(name, bench, {**made, **others})
        return replace(result, facts={**result.facts, "collection": about}), made

    def _compare(self, name: str, bench: BioasqBench, every: dict[str, TimedRun]) -> StudyResult:
        from deepera_graph.lab.studies.bioasq import runs, study

        if name == "rerankers":
            return study.study_rerankers(bench, every, baseline=self.chosen.baseline or "")
        names = [one for one in every if one != runs.FIRST_STAGE]
        if len(names) == 1:
            names = [*names, runs.FIRST_STAGE]
        pair = {one: every[one] for one in (names[0], names[-1])}
        return study.study_ensembles(bench, pair, validation=self.chosen.validation)

    def _retrieve(
        self, opened: PassageStore, bench: BioasqBench, depth: int, kept: Any
    ) -> dict[str, TimedRun]:
        from deepera_graph.lab.studies.bioasq import runs

        names = runs.default_retrievers(opened)
        if self.chosen.retrievers is not None:
            names = split_names("--retrievers", self.chosen.retrievers)
        with self.bar("searching", len(names) * len(bench.questions)) as bar:
            return runs.retrieve(
                opened, names, bench.questions, depth, kept=kept, on_progress=bar.reach
            )

    def _rerank(self, opened: PassageStore, bench: BioasqBench, kept: Any) -> dict[str, TimedRun]:
        """Return the first stage's run, those of the judges, and what a chat model sorts of one."""
        from deepera_graph.lab.studies.bioasq import runs

        names = split_names("--rerankers", self.chosen.rerankers or "local")
        _check_names([runs.FIRST_STAGE, *names])
        questions, n = bench.questions, len(bench.questions)
        with self.bar("searching", n) as bar:
            found = runs.find_candidates(
                opened, questions, self.chosen.candidates, on_progress=bar.reach
            )
        made = {runs.FIRST_STAGE: runs.candidates_as_run(found, questions)}
        with self.asking() as how:
            if "model" in how:
                how["listed"] = self.chosen.listed
            for name in names:
                with self.bar(name, n) as bar:
                    one = runs.rerank(
                        found, questions, name, name=name, kept=kept, on_progress=bar.reach, **how
                    )
                made[name] = one.judged
                if one.listed is not None:
                    made[f"{name}, sorted by {self.chat.model}"] = one.listed
                for key in ("model", "listed"):
                    how.pop(key, None)
        return made

    def styles(self, asked: Sequence[BioasqQuestion]) -> tuple[StudyResult, dict[str, TimedRun]]:
        """Return what prompt styles of phase B are worth; no run is made."""
        from deepera_graph.bioasq.phase_b.answer import TypedAnswerer
        from deepera_graph.lab.studies.bioasq import study
        from deepera_graph.lab.studies.bioasq.runs import Kept

        chosen = self.chosen
        questions = study.draw_questions(
            asked[: chosen.limit], per_type=chosen.per_type, seed=chosen.seed
        )
        answers = {}
        kept = Kept(folder=self.out, resume=chosen.resume)
        with self.asking() as how:
            ways: dict[str, Any] = {study.EXTRACTIVE: None}
            if "model" in how:
                ways |= _make_styles(how.pop("model"), questions, chosen)
            for name, backend in ways.items():
                answerer = TypedAnswerer(backend, fallback=False, **how)
                with self.bar(name, len(questions)) as bar:
                    answers[name] = study.answer_all(
                        answerer, questions, name=name, kept=kept, on_progress=bar.reach
                    )
        return (
            study.study_styles(questions, answers, n_resamples=chosen.resamples, seed=chosen.seed),
            {},
        )


def _check_names(names: Sequence[str]) -> None:
    """Raise `SettingsError` for two names that would have one file."""
    from deepera_graph.lab.studies.bioasq.runs import file_of

    files: dict[str, str] = {}
    for one in names:
        other = files.setdefault(file_of(one), one)
        if other != one or names.count(one) > 1:
            raise SettingsError(f"{other!r} and {one!r} would be kept in one file")


def _make_styles(
    model: Any, questions: Sequence[BioasqQuestion], chosen: StudyOptions
) -> dict[str, Any]:
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
