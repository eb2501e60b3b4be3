"""`deepera-lab bioasq tune`: a cross-encoder tuned on questions of BioASQ, or the pairs for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from deepera_graph.bioasq.settings import TuningSettings, read_ratio
from deepera_graph.cli.opening.stores import going_on, open_collection
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import (
    MOST_TOLD,
    check_file,
    check_folder,
    say,
    say_some,
    tell_done,
)
from deepera_graph.cli.shared.declaring import arg, given, opt, opt_of
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.cli.running import check_resume
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.bioasq.tuning.pairs import QuestionPool, QuestionSplit
    from deepera_graph.bioasq.tuning.tune import TuningReport

_DATA = "Questions and pairs"
_data = partial(opt, panel=_DATA)
_tuning = partial(opt_of, TuningSettings, panel="Training", ranged=True, config=None)


def _training(name: str, **how: Any) -> Any:
    default = TuningSettings.__dataclass_fields__[name].default
    return _tuning(name, **{"default": default, "shown": "", **how})


@dataclass(frozen=True, kw_only=True)
class TuneFileOptions:
    """Where the model and the pairs go."""

    out: Path | None = opt("Where the tuned model goes.", "--out", "-o", metavar="FOLDER")
    export_pairs: Path | None = opt(
        "Write the pairs as labelled questions, which `deepera-lab judge train` and `judge reader` "
        "take. Without -o nothing is tuned, and no further package is needed.",
        metavar="FILE",
    )
    resume: bool = opt("Go on with a tuning that was cut short.", default=False)
    overwrite: bool = opt("Replace a model in FOLDER.", default=False)


@dataclass(frozen=True, kw_only=True)
class TuneDataOptions:
    """Which questions and which pairs are trained on."""

    corpus: Path | None = _data(
        "A corpus that is searched by words in memory, instead of --library.", metavar="FILE"
    )
    test: Path | None = _data(
        "Questions to report on; none of them is trained on.",
        metavar="FILE",
        shown="a part of QUESTIONS",
    )
    shares: str | None = _data(
        "Shares of the questions to train on, to choose by, and to report on.",
        metavar="N,N,N",
        shown="80,10,10; with --test 90,10,0",
        many=float,
    )
    candidates: int = _data(
        "Documents that the index finds for a question.", metavar="N", default=100, least=1
    )


def _read_year(text: str) -> int | None:
    if text == "all":
        return None
    if not (text.isascii() and text.isdecimal() and len(text) == 4):
        raise SettingsError(f"--since must be a year, as 2019, or all, got {text!r}")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How the model is tuned."""

    ratio: str = _training("ratios", panel=_DATA, default="all", many=read_ratio)
    since: str = _training("since", panel=_DATA, default="all", many=_read_year)
    model: str | None = _tuning("models", many=str)
    epochs: int = _training("epochs")
    select_epochs: int = _training("select_epochs")
    batch_size: int = _training("batch_size")
    learning_rate: float = _training("learning_rate")
    max_tokens: int = _training("max_tokens")
    int8: bool = _training("int8")
    seed: int = _training("seed", panel=None)


def tune(
    questions: Annotated[list[Path], arg("QUESTIONS...", "Golden sets in BioASQ's form.")],
    *,
    files: TuneFileOptions,
    data: TuneDataOptions,
    store: places.StoreOptions,
    training: TrainingOptions,
    output: options.OutputOptions,
) -> None:
    """Tune a cross-encoder on golden documents and other documents that the index finds."""
    settings = _check(questions, files, data, store, training)
    from deepera_graph.bioasq.questions import read_questions
    from deepera_graph.bioasq.tuning.pairs import split_questions

    if files.out is not None:
        from deepera_graph.bioasq.tuning.encoder_trainer import check_packages

        check_packages()
    split = split_questions(
        [one for path in questions for one in read_questions(path)],
        test=None if data.test is None else read_questions(data.test),
        shares=given(data).get("shares"),
        seed=settings.seed,
    )
    _tell_split(split)
    pools = _collect(split, data, store, hidden=output.quiet)
    plain: dict[str, Any] = {"questions": {part: len(its) for part, its in split.parts().items()}}
    said = []
    if files.export_pairs is not None:
        plain["exported"] = _export_pairs(files.export_pairs, pools["train"], settings)
        said.append(f"{files.export_pairs}: {count(plain['exported'], 'question')}")
    if files.out is not None:
        report = _tune(
            files.out,
            split,
            pools,
            settings,
            about={"source": _describe_source(questions, split, data, store)},
            resume=files.resume,
            hidden=output.quiet,
        )
        plain |= {"out": str(files.out), **report.to_dict()}
        said.append(_describe(files.out, report))
    tell_done(output, plain, lambda: "\n".join(said))


def _check(
    questions: Sequence[Path],
    files: TuneFileOptions,
    data: TuneDataOptions,
    store: places.StoreOptions,
    training: TrainingOptions,
) -> TuningSettings:
    """Return the settings; a `SettingsError` for anything that can be said before work begins."""
    from deepera_graph.bioasq.tuning.pairs import check_shares

    _check_files(questions, files, data, store)
    check_shares(given(data).get("shares"), has_test=data.test is not None)
    settings = TuningSettings(**given(training))
    if files.out is None and len(settings.variants()) > 1:
        raise SettingsError("--export-pairs without -o takes one --ratio and one --since")
    return settings


def _check_files(
    questions: Sequence[Path],
    files: TuneFileOptions,
    data: TuneDataOptions,
    store: places.StoreOptions,
) -> None:
    if files.out is None and files.export_pairs is None:
        raise SettingsError("give -o FOLDER to tune a model, --export-pairs FILE, or both")
    check_resume(resume=files.resume, overwrite=files.overwrite)
    if (data.corpus is None) == (store.library is None):
        raise SettingsError("give --library or --corpus: one of them is searched")
    for path in (*questions, data.test, data.corpus):
        if path is not None and not path.is_file():
            raise SettingsError(f"no such file: {str(path)!r}")
    written = ("config.json", "model.onnx", "tuning.json")
    check_folder(files.out, written, overwrite=files.overwrite or files.resume)
    if files.export_pairs is not None:
        check_file(files.export_pairs, overwrite=files.overwrite or files.resume)


def _tell_split(split: QuestionSplit) -> None:
    left_out = {
        "joined with another of the same id or text": split.joined,
        "left out, as the test set has them": split.in_test,
        "left out, without golden documents": split.without_documents,
    }
    for what, n in left_out.items():
        if n:
            say(f"{count(n, 'question')} {what}")


def _collect(
    split: QuestionSplit, data: TuneDataOptions, store: places.StoreOptions, *, hidden: bool
) -> dict[str, list[QuestionPool]]:
    """Ask the index for all questions, and say which golden documents it does not have."""
    from deepera_graph.bioasq.tuning.pairs import collect_pools

    parts = split.parts()
    asked = [one for its in parts.values() for one in its]
    with (
        _open_source(data, store) as source,
        progress_bar("searching", total=len(asked), hidden=hidden) as bar,
    ):
        found = collect_pools(asked, source, n_candidates=data.candidates, on_progress=bar.reach)
    _tell_missing(found)
    rest = iter(found)
    return {part: [next(rest) for _ in its] for part, its in parts.items()}


def _tell_missing(pools: Sequence[QuestionPool]) -> None:
    golden = {pmid for pool in pools for pmid in pool.golden}
    missing = sorted(golden - {one.pmid for pool in pools for one in pool.held})
    shown = ", ".join(missing[:MOST_TOLD])
    if len(missing) == len(golden):
        raise InputError(
            f"none of the {len(golden)} golden documents is in the corpus, e.g. {shown}"
        )
    if missing:
        say(f"{len(missing)} of {len(golden)} golden documents are not in the corpus, e.g. {shown}")


@contextmanager
def _open_source(data: TuneDataOptions, store: places.StoreOptions) -> Iterator[Any]:
    if data.corpus is None:
        with open_collection(store, must_exist=True) as opened:
            yield opened
        return
    from deepera_graph.retrieval.files import Skipped
    from deepera_graph.retrieval.sources import read_passages
    from deepera_graph.stores.words import WordIndex

    skipped: list[Skipped] = []
    with WordIndex() as index:
        index.add(read_passages(data.corpus, max_words=None, on_skip=skipped.append))
        say_some([f"skipped {one}" for one in skipped], "skipped {} more")
        yield index


def _export_pairs(path: Path, pools: Sequence[QuestionPool], settings: TuningSettings) -> int:
    from deepera_graph.bioasq.tuning.pairs import make_pairs, write_pairs

    first = settings.variants()[0]
    pairs = make_pairs(pools, ratio=first.ratio, since=first.since, seed=settings.seed)
    if not pairs:
        since = "" if first.since is None else f" since {first.since}"
        raise InputError(f"no question is left to train on{since}")
    return write_pairs(path, pairs)


def _tune(
    out: Path,
    split: QuestionSplit,
    pools: dict[str, list[QuestionPool]],
    settings: TuningSettings,
    *,
    about: dict[str, Any],
    resume: bool,
    hidden: bool,
) -> TuningReport:
    """Tune, and write the questions of each part beside the model."""
    from deepera_graph.bioasq.questions import write_questions
    from deepera_graph.bioasq.tuning.tune import tune_encoder

    out.mkdir(parents=True, exist_ok=True)
    for part, its in split.parts().items():
        write_questions(out / f"{part}.json", its)
    with (
        going_on(lambda: "what was tuned until the last epoch is kept", "--resume"),
        progress_bar("tuning", hidden=hidden) as bar,
    ):
        return tune_encoder(
            pools,
            settings,
            out,
            about=about,
            resume=resume,
            on_step=lambda n, n_in_all, _: bar.move(to=n, count=n, total=n_in_all),
        )


def _describe_source(
    questions: Sequence[Path],
    split: QuestionSplit,
    data: TuneDataOptions,
    store: places.StoreOptions,
) -> dict[str, Any]:
    return {
        "questions": [str(one) for one in questions],
        "test": None if data.test is None else str(data.test),
        "corpus": None if data.corpus is None else str(data.corpus),
        "collection": store.library,
        "candidates": data.candidates,
        "shares": data.shares,
        "joined": split.joined,
        "in_test": split.in_test,
        "without_documents": split.without_documents,
    }


def _describe(out: Path, report: TuningReport) -> str:
    lines = [f"{variant}: MAP@10 {value:.3f}" for variant, value in report.selection]
    lines.append(
        f"{out}: {report.chosen}, tuned on {report.n_pairs} pairs ({report.n_golden} golden), "
        f"epoch {report.best_epoch} of {len(report.epochs)}"
    )
    for part, its in report.figures.items():
        shown = ", ".join(f"{name} {value:.3f}" for name, value in its.items())
        lines.append(f"MAP@10 on {part}: {shown}")
    return "\n".join(lines)
