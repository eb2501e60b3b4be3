"""What `deepera judge train` does."""

import typer

from deepera_graph.cli.work.bench.names import split_names
from deepera_graph.cli.work.bench.outputs import check_folder
from deepera_graph.cli.work.judge.stages import stages
from deepera_graph.cli.work.terminal import write_json
from deepera_graph.judges.trained.model import SUMS
from deepera_graph.training.train import TrainingOutcome, TrainingPlan, train_judge
from deepera_graph.training.weights import HEAD, TRAINED_ON

__all__ = ["TrainingPlan", "names", "run"]


def names(option: str, text: str | None) -> tuple[str, ...] | None:
    """Return the names that an option was given; None if it was not given."""
    return None if text is None else split_names(option, text)


def run(plan: TrainingPlan, *, overwrite: bool, as_json: bool, quiet: bool) -> None:
    """Train, and say what came out.

    Raises:
        SettingsError: An option is wrong, weights would be lost, or a package is missing.
        DatasetError, InputError: The data cannot be read or trained on.
    """
    check_folder(plan.out, (HEAD, TRAINED_ON, SUMS), overwrite=overwrite)
    with stages(hidden=quiet) as log:
        made = train_judge(plan, log)
    if as_json:
        write_json(made.to_dict())
    elif not quiet:
        typer.echo(_told(made))


def _told(made: TrainingOutcome) -> str:
    sets = ", ".join(f"{name} {n}" for name, n in made.sets.items())
    lines = [f"{made.out}: trained on {sum(made.sets.values())} questions ({sets})"]
    lines += [
        f"held out, {name}: MAP@10 {100 * value:.1f}{', chosen' if name == made.recipe else ''}"
        for name, value in made.found.items()
    ]
    return "\n".join(lines)
