"""What `deepera demo` does."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from deepera_graph.cli.work.backend import Judge
from deepera_graph.cli.work.demo_view import show_trial
from deepera_graph.cli.work.terminal import output_console, progress_bar, write_json
from deepera_graph.cli.work.threshold import with_threshold
from deepera_graph.demo import DemoQuestion, Trial, read_questions, run_trials
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.reranker import EvidenceReranker

__all__ = ["Judge", "run", "with_threshold"]


def run(
    judge: Judge,
    settings: dict[str, Any],
    *,
    question_ids: Sequence[str],
    without_evidence: bool,
    hard: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show the demonstration, a question as soon as it is done.

    Raises:
        SettingsError: An option is out of range.
        BackendError: The backend is unreachable.
    """
    questions = _chosen(question_ids, hard=hard)
    reranker = EvidenceReranker(judge.build(), **settings)
    console = output_console()
    trials: list[Trial] = []
    with progress_bar("reranking", total=len(questions), hidden=quiet or not as_json) as bar:
        going = run_trials(reranker, questions, with_evidence=not without_evidence, hard=hard)
        for trial in going:
            if trial.result.backend_failure is not None:
                raise BackendError(trial.result.backend_failure)
            trials.append(trial)
            bar.move(to=len(trials), count=len(trials))
            if not as_json:
                show_trial(console, trial)
    if as_json:
        write_json([trial.to_dict() for trial in trials])
    else:
        _close(console, trials, without_evidence=without_evidence)


def _chosen(ids: Sequence[str], *, hard: bool) -> list[DemoQuestion]:
    questions = {question.id: question for question in read_questions(hard=hard)}
    for name in ids:
        if name not in questions:
            raise SettingsError(f"there is no question {name!r}; there are {', '.join(questions)}")
    return [question for name, question in questions.items() if not ids or name in ids]


def _close(console: Console, trials: Sequence[Trial], *, without_evidence: bool) -> None:
    n = f"{len(trials)} question{'' if len(trials) == 1 else 's'}"
    if without_evidence:
        empty = sum(trial.result.outcome == "over_filtered" for trial in trials)
        console.print(f"[b]without evidence: over_filtered in {empty} of {n}[/b]")
        return
    first = sum(trial.evidence_first for trial in trials)
    before = sum(trial.evidence_first_before for trial in trials)
    console.print(f"[b]evidence first in {first} of {n}[/b]; as retrieved, in {before}")
