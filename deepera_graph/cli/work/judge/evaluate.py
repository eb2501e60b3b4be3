"""What `deepera judge evaluate` does."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import typer

from deepera_graph.cli.work.bench.outputs import check_folder
from deepera_graph.cli.work.judge.stages import stages
from deepera_graph.cli.work.judge.train import names
from deepera_graph.cli.work.terminal import write_json
from deepera_graph.errors import SettingsError
from deepera_graph.training.evaluate import (
    Evaluation,
    EvaluationPlan,
    draw_operating,
    draw_reliability,
    evaluate_fits,
    evaluate_weights,
    format_evaluation,
    format_overview,
    save_figures,
)
from deepera_graph.training.measure import N_FOLDS

_TABLES, _NUMBERS = "evaluation.md", "evaluation.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of an evaluation, as they were given."""

    data: tuple[Path, ...]
    weights: Path | None
    tau: float
    cross_validate: bool
    folds: int | None
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
        if self.folds is not None and not self.cross_validate:
            raise SettingsError("--folds goes with --cross-validate")
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


def run(request: Request, *, as_json: bool, quiet: bool) -> None:
    """Measure, write the report, and show the table of all sets.

    Raises:
        SettingsError: An option is wrong, a report would be lost, or weights cannot be loaded.
        DatasetError, InputError: The data cannot be read or measured on.
    """
    check_folder(request.out, (_TABLES, _NUMBERS), overwrite=request.overwrite)
    plan = request.subject()
    with stages(hidden=quiet) as log:
        measure = evaluate_fits if request.cross_validate else evaluate_weights
        evaluation = measure(plan, log)
    if request.out is not None:
        _write(request.out, evaluation)
    if as_json:
        write_json(evaluation.to_dict())
    elif not quiet:
        typer.echo(format_overview(evaluation), nl=False)


def _write(folder: Path, evaluation: Evaluation) -> None:
    numbers = json.dumps(evaluation.to_dict(), indent=2, ensure_ascii=False) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {_TABLES: format_evaluation(evaluation), _NUMBERS: numbers}.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    save_figures(folder, [draw_operating(evaluation), draw_reliability(evaluation)])
