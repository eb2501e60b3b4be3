"""Fit a curve from a judge's scores to probabilities, on passages that people have labelled."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from deepera_graph import __version__
from deepera_graph.calibration.instance import Labels, read_questions
from deepera_graph.calibration.statistics import Floats, deal_folds, fit_logistic
from deepera_graph.errors import BackendError, DeepEraError, InputError
from deepera_graph.jobs.lines import BadLine, QuestionLine
from deepera_graph.jobs.rerank import Flight, InFlight, LocalEngine
from deepera_graph.packages import import_extra
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.settings.budget import Meter, with_meter
from deepera_graph.settings.ranges import check_choice
from deepera_graph.settings.thresholds import Curve, Method

FEWEST_OF_A_CLASS = 10
_LEAST_SPREAD = 1e-9
N_FOLDS = 5
Probabilities = list[tuple[float, ...]]


def fit_curve(
    scores: Sequence[float] | Floats,
    labels: Sequence[int],
    *,
    method: Method = "isotonic",
    judge: Mapping[str, str] | None = None,
    n_questions: int = 0,
) -> Curve:
    """Return the curve from scores in [0, 1] to the probability of label 1; it never falls."""
    # At least ten passages of each label, our choice: below, a share is uncertain by over 0.3.
    # Source: Isotonic: Zadrozny and Elkan (2002), KDD. Platt: Platt (1999), Probabilistic outputs
    # for support vector machines, section 2.2, with its smoothed targets.
    x, y = np.asarray(scores, dtype=float), np.asarray(labels)
    _check_scores(x, y)
    check_method(method)
    numbers = _fit_isotonic(x, y) if method == "isotonic" else _fit_platt(x, y)
    return Curve(
        method=method,
        **numbers,
        judge=dict(judge or {}),
        n_questions=n_questions,
        n_passages=len(x),
        version=__version__,
    )


def check_method(method: str) -> None:
    """Raise `SettingsError` unless the method is known and scikit-learn is installed."""
    check_choice("method", method, get_args(Method))
    _sklearn("isotonic" if method == "isotonic" else "linear_model")


def check_classes(n_relevant: int, n_others: int) -> None:
    """Raise `InputError` unless there are enough of both labels."""
    if min(n_relevant, n_others) < FEWEST_OF_A_CLASS:
        raise InputError(
            f"calibration needs at least {FEWEST_OF_A_CLASS} relevant and {FEWEST_OF_A_CLASS} "
            f"irrelevant passages, got {n_relevant} and {n_others}"
        )


def _check_scores(x: Floats, y: NDArray[np.generic]) -> None:
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(f"scores and labels must be as many, got {x.shape} and {y.shape}")
    outside = x[~((x >= 0) & (x <= 1))]
    if len(outside):
        raise InputError(f"scores must be in [0, 1], got {float(outside[0])}")
    n_relevant, n_others = int((y == 1).sum()), int((y == 0).sum())
    if n_relevant + n_others != len(y):
        raise InputError(f"labels must be 0 or 1, {len(y) - n_relevant - n_others} are not")
    check_classes(n_relevant, n_others)
    if np.ptp(x) < _LEAST_SPREAD:
        raise InputError(f"all {len(x)} scores are {float(x[0])}: they tell nothing apart")


def _fit_isotonic(x: Floats, y: NDArray[np.generic]) -> dict[str, tuple[float, ...]]:
    model = _sklearn("isotonic").IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(x, y.astype(float))
    knots, heights = model.X_thresholds_, np.maximum.accumulate(model.y_thresholds_)
    return {"x": tuple(map(float, knots)), "y": tuple(map(float, heights))}


def _fit_platt(x: Floats, y: NDArray[np.generic]) -> dict[str, float]:
    """Fit the logistic curve to Platt's targets: every passage counts partly as either label."""
    n_relevant = int((y == 1).sum())
    high, low = (n_relevant + 1) / (n_relevant + 2), 1 / (len(y) - n_relevant + 2)
    target = np.where(y == 1, high, low)
    middle, spread = float(x.mean()), float(x.std())
    column = ((x - middle) / spread).reshape(-1, 1)
    slope, offset = fit_logistic(
        np.concatenate([column, column]),
        np.repeat([1, 0], len(x)),
        np.concatenate([target, 1 - target]),
        C=np.inf,
        tol=1e-8,
        max_iter=1000,
    )
    if slope[0] <= 0:
        mean = float(target.mean())
        return {"a": 0.0, "b": math.log(mean / (1 - mean))}
    steepness = float(slope[0])
    return {"a": steepness / spread, "b": offset - steepness * middle / spread}


def _sklearn(name: str) -> Any:
    return import_extra(f"sklearn.{name}", extra="calibrate", what="calibration")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuestion:
    """Scores and labels of one question; passages that could not be judged are only counted."""

    id: str
    scores: tuple[float, ...]  # in [0, 1], shape (n_judged,)
    labels: tuple[int, ...]  # 1 for evidence, 0 for none, shape (n_judged,)
    n_failed: int = 0  # passages without a score
    n_failed_relevant: int = 0  # those among them that are evidence

    @classmethod
    def of(
        cls, id: str, scores: Sequence[tuple[str, float | None]], labels: Mapping[str, int]
    ) -> Self:
        """Join (passage id, score or None) pairs with the labels of the same passages."""
        judged = [(score, labels[name]) for name, score in scores if score is not None]
        failed = [labels[name] for name, score in scores if score is None]
        return cls(
            id=id,
            scores=tuple(score for score, _ in judged),
            labels=tuple(label for _, label in judged),
            n_failed=len(failed),
            n_failed_relevant=sum(failed),
        )

    @property
    def n_relevant(self) -> int:
        """Passages that are evidence, judged or not."""
        return sum(self.labels) + self.n_failed_relevant


def cross_validate(
    questions: Sequence[JudgedQuestion],
    *,
    method: Method = "isotonic",
    n_folds: int = N_FOLDS,
    seed: int = 0,
) -> Probabilities:
    """Return probabilities by curves fitted on the other folds; a question is in one fold."""
    fold_of = _deal_folds(questions, n_folds, seed)
    _check_folds(questions, fold_of, n_folds)
    probabilities: Probabilities = [()] * len(questions)
    for fold in range(n_folds):
        others = [one for one, its in zip(questions, fold_of, strict=True) if its != fold]
        try:
            curve = fit_curve(
                np.concatenate([one.scores for one in others]),
                [label for one in others for label in one.labels],
                method=method,
            )
        except InputError as error:
            raise InputError(f"cross-validation, fold {fold + 1} of {n_folds}: {error}") from error
        for index in map(int, np.flatnonzero(fold_of == fold)):
            probabilities[index] = tuple(map(curve.probability, questions[index].scores))
    return probabilities


def _deal_folds(questions: Sequence[JudgedQuestion], n_folds: int, seed: int) -> NDArray[np.int64]:
    """Deal shuffled questions out to the folds, so that both labels are spread evenly."""
    relevant = [1 in one.labels for one in questions]
    others = [0 in one.labels for one in questions]
    if min(sum(relevant), sum(others)) < n_folds:
        raise InputError(
            f"cross-validation in {n_folds} folds needs at least {n_folds} questions with relevant "
            f"and {n_folds} with irrelevant passages, got {sum(relevant)} and {sum(others)} of "
            f"{len(questions)}"
        )
    strata = [
        (not (one or other), other - one) for one, other in zip(relevant, others, strict=True)
    ]
    return deal_folds(strata, n_folds=n_folds, seed=seed)


def _check_folds(
    questions: Sequence[JudgedQuestion], fold_of: NDArray[np.int64], n_folds: int
) -> None:
    """Raise `InputError`, with how many more labels it takes, unless each fold leaves enough."""
    relevant = np.array([sum(one.labels) for one in questions])
    others = np.array([len(one.labels) for one in questions]) - relevant
    left = [
        min(int(its[fold_of != fold].sum()) for fold in range(n_folds))
        for its in (relevant, others)
    ]
    least = math.ceil(FEWEST_OF_A_CLASS * n_folds / (n_folds - 1))  # of one a question
    more = [
        f"{max(FEWEST_OF_A_CLASS - rest, least - int(its.sum()))} more {name}"
        for name, its, rest in zip(
            ("relevant", "irrelevant"), (relevant, others), left, strict=True
        )
        if rest < FEWEST_OF_A_CLASS
    ]
    if more:
        raise InputError(
            f"cross-validation in {n_folds} folds leaves {left[0]} relevant and {left[1]} "
            f"irrelevant passages to fit on, and it takes {FEWEST_OF_A_CLASS} of each; label at "
            f"least {' and '.join(more)}, of other questions"
        )


Watch = Callable[[JudgedQuestion], None]


def judge_passages(
    reranker: EvidenceReranker,
    path: Path,
    labels: Mapping[str, Labels],
    *,
    limit: int | None = None,
    watch: Watch = lambda question: None,
) -> list[JudgedQuestion]:
    """Score every passage of a file; one of which a window could not be judged counts as failed."""
    scoring = reranker.with_settings(
        threshold=1.0,
        content="passage",
        on_empty="empty",
        on_error="keep_last",
        answer=False,
        stop_after=None,
    )
    config = with_meter({}, Meter(scoring.settings.budget))

    async def rerank(line: QuestionLine) -> RerankResult:
        return await scoring.arerank(line.question, line.passages, config=config)

    judged = []
    engine = LocalEngine(rerank, scoring.questions_at_once)
    with InFlight[RerankResult, BadLine](engine, read_questions(path, limit=limit)) as flights:
        for item in flights:
            judged.append(_read_result(item, path, labels))
            watch(judged[-1])
    return judged


def _read_result(
    item: Flight[RerankResult] | BadLine, path: Path, labels: Mapping[str, Labels]
) -> JudgedQuestion:
    if isinstance(item, BadLine):
        raise InputError(f"{path}, line {item.number}: {item.error}")
    line = item.line
    try:
        result = item.future.result()
    except DeepEraError as error:
        raise type(error)(f"{path}, line {line.number}: {error}") from error
    if result.backend_failure is not None:
        raise BackendError(f"{path}, line {line.number}: {result.backend_failure}")
    scores = [(passage.id, passage.score) for passage in result.passages]
    return JudgedQuestion.of(line.id, scores, labels[line.id])
