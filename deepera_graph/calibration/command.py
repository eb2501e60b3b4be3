"""The work of `deepera calibrate`: labelled passages in, a curve and a report out."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from deepera_graph.calibration.fit import check_classes, check_method, fit
from deepera_graph.calibration.judge import Watch, judge
from deepera_graph.calibration.judged import JudgedQuestion
from deepera_graph.calibration.labelled import Labels, read_labels
from deepera_graph.calibration.ranked import read_judge, read_ranked
from deepera_graph.calibration.report import build_report
from deepera_graph.calibration.resample import N_RESAMPLES
from deepera_graph.curve import Method, judge_identity
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.thresholds import check_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """Scores of an earlier `deepera rerank`.

    Attributes:
        path: Its output.
        report: Its report, which names the judge; the one beside the output if None.
    """

    path: Path
    report: Path | None = None


def calibrate(
    labelled: Path | str,
    out: Path | str | None,
    *,
    scores: EvidenceReranker | Ranked,
    method: Method = "isotonic",
    precision: float = 0.8,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    overwrite: bool = False,
    watch: Watch = lambda question: None,
) -> dict[str, Any]:
    """Fit a curve, write it, and report what thresholds on it would keep.

    Everything that can be checked is checked before the first passage is judged.

    Args:
        labelled: Questions whose passages are labelled; see `deepera_graph.calibration.labelled`.
        out: Where the curve goes, for `Curve.load`; None writes nothing.
        scores: Who judges the passages, or what was judged before.
        method: ``isotonic``, or ``platt`` for few passages.
        precision: What `suggested` in the report aims at, in [0, 1].
        n_resamples: Of the intervals, >= 1.
        seed: The same seed gives the same report.
        overwrite: Replace *out* if it exists.
        watch: Called with every question that was judged.

    Returns:
        Plain data, as `build_report` gives it; `report_lines` makes text of it.

    Raises:
        InputError: A file or line cannot be used, a passage is not labelled, or there is too
            little of either label.
        SettingsError: An option is out of range, *out* exists, or scikit-learn is not installed.
        BackendError: The backend cannot be reached or refuses the key.
    """
    labelled, out = Path(labelled), None if out is None else Path(out)
    _check_options(method, precision, n_resamples)
    _check_out(out, labelled, overwrite=overwrite)
    if labelled.exists() and not labelled.is_file():
        raise InputError(f"{labelled} must be a regular file: it is read twice")
    labels = read_labels(labelled)
    _check_labels(labels)
    identity, questions = _judged(scores, labelled, labels, watch)
    questions = [one for one in questions if one.scores or one.n_failed]
    curve = fit(
        list(chain.from_iterable(one.scores for one in questions)),
        list(chain.from_iterable(one.labels for one in questions)),
        method=method,
        judge=identity,
        n_questions=len(questions),
    )
    report = build_report(questions, curve, precision=precision, n_resamples=n_resamples, seed=seed)
    if out is not None:
        curve.save(out)
    return report


def _judged(
    scores: EvidenceReranker | Ranked, path: Path, labels: dict[str, Labels], watch: Watch
) -> tuple[dict[str, str], Sequence[JudgedQuestion]]:
    if isinstance(scores, Ranked):
        return read_judge(scores.path, scores.report), read_ranked(scores.path, labels)
    backend = scores.backend
    return judge_identity(backend.name, backend.about), judge(scores, path, labels, watch=watch)


def _check_options(method: str, precision: float, n_resamples: int) -> None:
    check_method(method)
    check_share("precision", precision)
    if n_resamples < 1:
        raise SettingsError(f"n_resamples must be >= 1, got {n_resamples}")


def _check_out(out: Path | None, labelled: Path, *, overwrite: bool) -> None:
    if out is None:
        return
    if out.is_dir() or not out.parent.is_dir():
        raise SettingsError(f"{str(out)!r} cannot be written")
    if out.absolute() == labelled.absolute():
        raise SettingsError(f"{str(out)!r} is the input; write somewhere else")
    if out.exists() and not overwrite:
        raise SettingsError(f"{str(out)!r} exists; give --overwrite to replace it")


def _check_labels(labels: dict[str, Labels]) -> None:
    each = [label for its in labels.values() for label in its.values()]
    check_classes(sum(each), len(each) - sum(each))
