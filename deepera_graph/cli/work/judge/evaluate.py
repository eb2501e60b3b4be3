"""What `deepera judge evaluate` does."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import typer

from deepera_graph.bench.figures import CurveFigure
from deepera_graph.cli.work.bench.outputs import check_folder
from deepera_graph.cli.work.judge.stages import stages
from deepera_graph.cli.work.judge.train import names
from deepera_graph.cli.work.terminal import write_json
from deepera_graph.errors import SettingsError
from deepera_graph.training.ablate import (
    KINDS,
    Kind,
    ablation_table,
    learning_figure,
    operating_figure,
    reliability_figure,
    save_figures,
    trees_figure,
)
from deepera_graph.training.assess import (
    EvaluationPlan,
    assess_parts,
    assess_sizes,
    evaluate_fits,
    evaluate_weights,
)
from deepera_graph.training.evaluate import N_FOLDS, format_evaluation, format_overview
from deepera_graph.training.log import Log

_TABLES, _NUMBERS, _PARTS = "evaluation.md", "evaluation.json", "ablation.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of an evaluation, as they were given."""

    data: tuple[Path, ...]
    weights: Path | None
    tau: float
    cross_validate: bool
    folds: int | None
    ablate: str | None
    learning_curve: bool
    first: str | None
    joined: bool
    sets: str | None
    split: str
    n_candidates: int
    seed: int
    keep: Path | None
    out: Path | None
    overwrite: bool

    def subject(self) -> EvaluationPlan:
        """Return what is measured.

        Raises:
            SettingsError: The options do not go together, or one is out of range.
        """
        fits = {
            "--folds": self.folds is not None,
            "--ablate": self.ablate is not None,
            "--learning-curve": self.learning_curve,
        }
        idle = [option for option, given in fits.items() if given and not self.cross_validate]
        if idle:
            raise SettingsError(f"{idle[0]} goes with --cross-validate")
        if not 0 <= self.tau <= 1:
            raise SettingsError(f"--tau must be in [0, 1], got {self.tau}")
        return EvaluationPlan(
            data=self.data,
            weights=self.weights,
            sets=names("--sets", self.sets),
            split=self.split,
            n_candidates=self.n_candidates,
            tau=self.tau,
            n_folds=self.folds or N_FOLDS,
            seed=self.seed,
            keep=self.keep,
            first=self.sizes(),
            joined=self.joined,
        )

    def sizes(self) -> tuple[int, ...]:
        """Return the numbers of passages that questions are also measured over.

        Raises:
            SettingsError: One is no number of passages.
        """
        found = names("--first", self.first) or ()
        for one in found:
            if not re.fullmatch(r"[1-9][0-9]{0,5}", one):
                raise SettingsError(f"--first must be numbers in [1, 999999], got {one!r}")
        return tuple(dict.fromkeys(map(int, found)))

    def kinds(self) -> tuple[Kind, ...]:
        """Return what sorts of parts are removed.

        Raises:
            SettingsError: One is unknown.
        """
        found = names("--ablate", self.ablate) or ()
        for name in found:
            if name not in KINDS:
                raise SettingsError(f"--ablate must be among {', '.join(KINDS)}, got {name!r}")
        return cast("tuple[Kind, ...]", found)


def run(request: Request, *, as_json: bool, quiet: bool) -> None:
    """Measure, write the report, and show the table of all sets.

    Each part of the report is written when it is measured: an ablation takes long.

    Raises:
        SettingsError: An option is wrong, a report would be lost, or weights cannot be loaded.
        DatasetError, InputError: The data cannot be read or measured on.
    """
    check_folder(request.out, (_TABLES, _NUMBERS, _PARTS), overwrite=request.overwrite)
    subject, kinds = request.subject(), request.kinds()
    plain: dict[str, Any] = {}
    shown = []
    with stages(hidden=quiet) as log:
        for report in _reports(request, subject, kinds, log):
            plain.update(report.plain)
            shown.append(report.shown)
            if request.out is not None:
                _write(request.out, report, plain)
    if as_json:
        write_json(plain)
    elif not quiet:
        typer.echo("\n".join(filter(None, shown)), nl=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    """A part of the report: what is shown, its numbers, its files and its figures."""

    shown: str = ""
    plain: Mapping[str, Any]
    files: Mapping[str, str]
    figures: Sequence[CurveFigure] = ()


def _reports(
    request: Request, subject: EvaluationPlan, kinds: tuple[Kind, ...], log: Log
) -> Iterator[_Report]:
    measure = evaluate_fits if request.cross_validate else evaluate_weights
    evaluation = measure(subject, log)
    yield _Report(
        shown=format_overview(evaluation),
        plain=evaluation.to_dict(),
        files={_TABLES: format_evaluation(evaluation)},
        figures=[operating_figure(evaluation), reliability_figure(evaluation)],
    )
    if kinds:
        parts = assess_parts(subject, kinds, log)
        table = ablation_table(parts)
        yield _Report(shown=table, plain={"ablation": parts.to_dict()}, files={_PARTS: table})
    if request.learning_curve:
        questions, trees = assess_sizes(subject, log)
        yield _Report(
            plain={
                "by_questions": [one.to_dict() for one in questions],
                "by_trees": [one.to_dict() for one in trees],
            },
            files={},
            figures=[learning_figure(questions), trees_figure(trees)],
        )


def _write(folder: Path, report: _Report, plain: Mapping[str, Any]) -> None:
    numbers = json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {**report.files, _NUMBERS: numbers}.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    save_figures(folder, report.figures)
