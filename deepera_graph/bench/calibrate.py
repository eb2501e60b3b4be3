"""Fit a curve to scores and labels."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from deepera_graph import __version__
from deepera_graph.budget import Meter, with_meter
from deepera_graph.errors import BackendError, DeepEraError, InputError, SettingsError
from deepera_graph.jobs.lines import BadLine, QuestionLine, read_lines
from deepera_graph.jobs.rerank import Flight, InFlight, LocalEngine
from deepera_graph.passages import read_passages
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.thresholds import Curve, Method, judge_identity

Floats = NDArray[np.float64]
FEWEST_OF_A_CLASS = 10
_LEAST_SPREAD = 1e-9


def fit(
    scores: Sequence[float] | Floats,
    labels: Sequence[int],
    *,
    method: Method = "isotonic",
    judge: Mapping[str, str] | None = None,
    n_questions: int = 0,
) -> Curve:
    """Return the curve from scores to the probability that a label is 1.

    The order of the passages does not matter. Where higher scores are not more often evidence, the
    curve is flat, never falling.

    Args:
        scores: In [0, 1], shape (n_passages,).
        labels: 0 or 1, shape (n_passages,), at least ten of each: our choice, below it a share is
            uncertain by more than 0.3 either way.
        method: ``isotonic`` follows any rising shape and wants some hundred passages of each
            label; ``platt`` is a logistic curve and wants few.
        judge: Who gave the scores, for the record.
        n_questions: How many questions the passages belong to, for the record.

    Raises:
        InputError: Scores or labels are out of range, too few, or all the same; the message has
            the counts.
        SettingsError: The method is unknown, or scikit-learn is not installed.

    Source:
        Isotonic: Zadrozny and Elkan (2002), KDD. Platt: Platt (1999), Probabilistic outputs for
        support vector machines, section 2.2, with its smoothed targets.
    """
    x, y = np.asarray(scores, dtype=float), np.asarray(labels)
    _check(x, y)
    check_method(method)
    numbers = _isotonic(x, y) if method == "isotonic" else _platt(x, y)
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
    if method not in get_args(Method):
        raise SettingsError(f"method must be isotonic or platt, got {method!r}")
    _sklearn("isotonic" if method == "isotonic" else "linear_model")


def check_classes(n_relevant: int, n_others: int, *, of: str = "passages") -> None:
    """Raise `InputError` unless there are enough of both labels."""
    if min(n_relevant, n_others) < FEWEST_OF_A_CLASS:
        raise InputError(
            f"calibration needs at least {FEWEST_OF_A_CLASS} relevant and {FEWEST_OF_A_CLASS} "
            f"irrelevant {of}, got {n_relevant} and {n_others}"
        )


def _check(x: Floats, y: NDArray[np.generic]) -> None:
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


def _isotonic(x: Floats, y: NDArray[np.generic]) -> dict[str, tuple[float, ...]]:
    model = _sklearn("isotonic").IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(x, y.astype(float))
    knots, heights = model.X_thresholds_, np.maximum.accumulate(model.y_thresholds_)
    return {"x": tuple(map(float, knots)), "y": tuple(map(float, heights))}


def _platt(x: Floats, y: NDArray[np.generic]) -> dict[str, float]:
    """Fit the logistic curve to Platt's targets: every passage counts partly as either label."""
    n_relevant = int((y == 1).sum())
    high, low = (n_relevant + 1) / (n_relevant + 2), 1 / (len(y) - n_relevant + 2)
    target = np.where(y == 1, high, low)
    middle, spread = float(x.mean()), float(x.std())
    column = ((x - middle) / spread).reshape(-1, 1)
    model = _sklearn("linear_model").LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000)
    model.fit(
        np.concatenate([column, column]),
        np.repeat([1, 0], len(x)),
        sample_weight=np.concatenate([target, 1 - target]),
    )
    slope, offset = float(model.coef_[0, 0]), float(model.intercept_[0])
    if slope <= 0:
        mean = float(target.mean())
        return {"a": 0.0, "b": math.log(mean / (1 - mean))}
    return {"a": slope / spread, "b": offset - slope * middle / spread}


def _sklearn(name: str) -> ModuleType:
    try:
        return import_module(f"sklearn.{name}")
    except ImportError as error:
        raise SettingsError(
            "calibration needs scikit-learn: pip install 'deepera-graph[calibrate]'"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuestion:
    """Scores and labels of one question; passages that could not be judged are only counted.

    Attributes:
        id: Of the question.
        scores: In [0, 1], shape (n_judged,).
        labels: 1 for evidence, 0 for none, shape (n_judged,).
        n_failed: Passages without a score.
        n_failed_relevant: Those among them that are evidence.
    """

    id: str
    scores: tuple[float, ...]
    labels: tuple[int, ...]
    n_failed: int = 0
    n_failed_relevant: int = 0

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


N_FOLDS = 5
Probabilities = list[tuple[float, ...]]


def cross_validated(
    questions: Sequence[JudgedQuestion],
    *,
    method: Method = "isotonic",
    n_folds: int = N_FOLDS,
    seed: int = 0,
) -> Probabilities:
    """Return the probability of every passage, by a curve fitted on the other folds.

    All passages of a question are in the same fold.

    Args:
        questions: Scored and labelled.
        method: As for `fit`.
        n_folds: >= 2.
        seed: The same seed gives the same folds.

    Returns:
        Probabilities in [0, 1] in the order of the passages, one tuple a question.

    Raises:
        InputError: There are fewer questions with relevant, or with irrelevant, passages than
            folds; or what is outside some fold is too little to fit.
    """
    fold_of = _folds(questions, n_folds, seed)
    probabilities: Probabilities = [()] * len(questions)
    for fold in range(n_folds):
        others = [one for one, its in zip(questions, fold_of, strict=True) if its != fold]
        try:
            curve = fit(
                np.concatenate([one.scores for one in others]),
                [label for one in others for label in one.labels],
                method=method,
            )
        except InputError as error:
            raise InputError(f"cross-validation, fold {fold + 1} of {n_folds}: {error}") from error
        for index in map(int, np.flatnonzero(fold_of == fold)):
            probabilities[index] = tuple(map(curve.probability, questions[index].scores))
    return probabilities


def _folds(questions: Sequence[JudgedQuestion], n_folds: int, seed: int) -> NDArray[np.int64]:
    """Deal shuffled questions out to the folds, so that both labels are spread evenly."""
    relevant = [1 in one.labels for one in questions]
    others = [0 in one.labels for one in questions]
    if min(sum(relevant), sum(others)) < n_folds:
        raise InputError(
            f"calibration needs at least {n_folds} questions with relevant and {n_folds} with "
            f"irrelevant passages, got {sum(relevant)} and {sum(others)} of {len(questions)}"
        )
    shuffled = np.random.default_rng(seed).permutation(len(questions))
    dealt = sorted(
        shuffled,
        key=lambda i: (not (relevant[i] or others[i]), others[i] - relevant[i]),
    )
    folds = np.empty(len(questions), dtype=np.int64)
    folds[dealt] = np.arange(len(questions)) % n_folds
    return folds


Labels = dict[str, int]
LABEL_FIELDS = ("label", "is_golden")


def read_questions(path: Path) -> Iterator[QuestionLine]:
    """Read a file of questions, one at a time.

    Raises:
        InputError: The file or a line of it cannot be used; the message names both.
    """
    try:
        with path.open("rb") as source:
            for line in read_lines(source):
                if isinstance(line, BadLine):
                    raise InputError(f"{path}, line {line.number}: {line.error}")
                yield line
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def read_labels(path: Path) -> dict[str, Labels]:
    """Return the labels of every passage, by question id and passage id.

    Raises:
        InputError: The file or a line cannot be used, or a passage is not labelled; the message
            names file, line and passage.
    """
    labels: dict[str, Labels] = {}
    for line in read_questions(path):
        try:
            labels[line.id] = {
                passage.id: _label(passage.id, passage.metadata)
                for passage in read_passages(line.passages)
            }
        except InputError as error:
            raise InputError(f"{path}, line {line.number}: {error}") from error
    if not labels:
        raise InputError(f"{path} holds no question")
    return labels


def _label(id: str, metadata: Mapping[str, Any]) -> int:
    given = {name: metadata[name] for name in LABEL_FIELDS if name in metadata}
    if not given:
        raise InputError(f"passage {id!r} has neither a label nor is_golden")
    for name, value in given.items():
        if not isinstance(value, int) or value not in (0, 1):
            raise InputError(f"passage {id!r}: {name} must be 0 or 1, got {value!r:.80}")
    if len(set(given.values())) > 1:
        raise InputError(f"passage {id!r}: label and is_golden disagree, got {given}")
    return int(next(iter(given.values())))


Watch = Callable[[JudgedQuestion], None]


def judge(
    reranker: EvidenceReranker,
    path: Path,
    labels: Mapping[str, Labels],
    *,
    watch: Watch = lambda question: None,
) -> list[JudgedQuestion]:
    """Score every passage of a file; no summary is made and no answer drawn.

    A long passage of which a window could not be judged counts as failed.

    Args:
        reranker: Whose backend and limits to use; its threshold does not matter.
        path: Questions, as `read_labels` has read them.
        labels: What `read_labels` gave.
        watch: Called with every question that is done.

    Raises:
        InputError: A line cannot be used.
        BackendError: No passage of a question could be judged because the backend cannot be
            reached or refuses the key.
    """
    scoring = reranker.with_settings(
        threshold=1.0,
        content="passage",
        on_empty="empty",
        on_error="keep_last",
        answer=False,
        enough=None,
    )
    config = with_meter({}, Meter(scoring.settings.budget))

    async def rerank(line: QuestionLine) -> RerankResult:
        return await scoring.arerank(line.question, line.passages, config=config)

    judged = []
    engine = LocalEngine(rerank, scoring.questions_at_once)
    with InFlight[RerankResult, BadLine](engine, read_questions(path)) as flights:
        for item in flights:
            judged.append(_taken(item, path, labels))
            watch(judged[-1])
    return judged


def _taken(
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


_REPORT_SUFFIX = ".report.json"


def read_ranked(path: Path, labels: Mapping[str, Labels]) -> list[JudgedQuestion]:
    """Join output lines with labels by question id and passage id; labels left over do not count.

    Raises:
        InputError: A line cannot be used, has no label, or is there twice; the message names file
            and line.
    """
    judged: dict[str, JudgedQuestion] = {}
    for number, line in _lines(path):
        try:
            question = _joined(line, labels)
            if question.id in judged:
                raise InputError(f"id {question.id!r} is used twice")
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        judged[question.id] = question
    return list(judged.values())


def read_judge(path: Path, report: Path | None = None) -> dict[str, str]:
    """Return which judge gave the scores of an output file, from the report of that run.

    Args:
        path: The output file.
        report: The report; the one beside the output file if None.

    Raises:
        InputError: There is no such report, or it does not say.
    """
    report = report or path.with_name(path.name.removesuffix(".jsonl") + _REPORT_SUFFIX)
    manifest = _parsed(_text(report), str(report)).get("manifest")
    if not isinstance(manifest, dict) or not isinstance(manifest.get("backend"), str):
        raise InputError(f"{report} does not say which backend gave the scores")
    return judge_identity(manifest["backend"], manifest)


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8", newline="\n") as source:
            for number, line in enumerate(source, start=1):
                if line.strip():
                    yield number, _parsed(line, f"{path}, line {number}")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error.reason}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error.reason}") from error


def _parsed(text: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{place}: must be a JSON object, got {value!r:.80}")
    return value


def _joined(line: Mapping[str, Any], labels: Mapping[str, Labels]) -> JudgedQuestion:
    id, ranking = line.get("id"), line.get("ranking")
    if not isinstance(id, str) or not isinstance(ranking, list):
        raise InputError("not an output line: it needs an id and a ranking")
    if id not in labels:
        raise InputError(f"question {id!r} is not labelled")
    scores = [_scored(item, labels[id]) for item in ranking]
    if len({name for name, _ in scores}) != len(scores):
        raise InputError("a passage id is used twice")
    return JudgedQuestion.of(id, scores, labels[id])


def _scored(item: Any, labels: Labels) -> tuple[str, float | None]:
    if not isinstance(item, Mapping) or "score" not in item:
        raise InputError(f"a ranked passage needs an id and a score, got {item!r:.80}")
    name, score = item.get("id"), item["score"]
    if not isinstance(name, str) or name not in labels:
        raise InputError(f"passage {name!r} is not labelled")
    if score is None:
        if item.get("status") == "not_needed":
            raise InputError(
                f"passage {name!r} was not asked about; take a run without --enough, as thresholds "
                "are measured over all passages"
            )
        return name, None
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise InputError(f"passage {name!r}: score must be in [0, 1], got {score!r:.80}")
    return name, float(score)


N_CALIBRATION_RESAMPLES = 2000
LEVEL = 0.95
_CELLS_AT_ONCE = 4_000_000


class Ratios(NamedTuple):
    """Ratios and their intervals, each of shape (n_ratios,); NaN where nothing is divided."""

    mean: Floats
    low: Floats
    high: Floats


def ratios(
    numerators: Floats,
    denominators: Floats,
    *,
    n_resamples: int = N_CALIBRATION_RESAMPLES,
    seed: int = 0,
) -> Ratios:
    """Return sums of numerators over sums of denominators, with percentile intervals of 95 %.

    Passages of a question stand or fall together, so whole questions are drawn, the same ones for
    every ratio. Resamples in which a denominator is 0 are left out of that ratio's interval.

    Args:
        numerators: Of every question, shape (n_questions, n_ratios).
        denominators: Of every question, shape (n_questions, n_ratios).
        n_resamples: >= 1.
        seed: The same seed gives the same intervals.

    Source:
        Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
    """
    above, below = numerators.astype(float), denominators.astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = above.sum(axis=0) / below.sum(axis=0)
        drawn = np.concatenate(
            [(times @ above) / (times @ below) for times in _draws(len(above), n_resamples, seed)]
        )
    bounds = [_interval(column) for column in drawn.T]
    return Ratios(
        mean, np.array([low for low, _ in bounds]), np.array([high for _, high in bounds])
    )


def _draws(n_questions: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    """Yield how often each question is drawn, shape (some, n_questions)."""
    rng = np.random.default_rng(seed)
    size = max(1, _CELLS_AT_ONCE // n_questions)
    even = np.full(n_questions, 1 / n_questions)
    for start in range(0, n_resamples, size):
        some = min(size, n_resamples - start)
        yield rng.multinomial(n_questions, even, size=some).astype(float)


def _interval(values: Floats) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


FEWEST_KEPT = 10
TAUS = tuple(step / 100 for step in range(101))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and its bootstrap interval of 95 %; all None where nothing was kept."""

    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """What one threshold does, over all questions.

    Attributes:
        precision: Share of the kept passages that are evidence, in [0, 1].
        recall: Share of the evidence that is kept, in [0, 1]; evidence that could not be judged
            is not kept.
        kept: Passages kept a question, >= 0, before any `top_n`.
        answered: Share of the questions of which something is kept, in [0, 1].
    """

    precision: Estimate
    recall: Estimate
    kept: Estimate
    answered: Estimate


class Kept:
    """How much of every question is kept at every threshold of a list.

    Args:
        questions: Labelled.
        values: What the thresholds are set on, scores or probabilities: one tuple a question.
        taus: Thresholds, inclusive, shape (n_taus,).
        n_resamples: For the intervals.
        seed: For the intervals.
    """

    def __init__(
        self,
        questions: Sequence[JudgedQuestion],
        values: Sequence[Sequence[float]],
        taus: Sequence[float],
        *,
        n_resamples: int = N_CALIBRATION_RESAMPLES,
        seed: int = 0,
    ) -> None:
        self.taus = tuple(taus)
        self._n_resamples, self._seed = n_resamples, seed
        pairs = [
            _counts(its_values, one.labels, taus)
            for one, its_values in zip(questions, values, strict=True)
        ]
        self._kept = np.array([kept for kept, _ in pairs])
        self._found = np.array([found for _, found in pairs])
        self._relevant = np.array([[float(one.n_relevant)] for one in questions])

    def points(self) -> list[OperatingPoint]:
        """Return what each threshold does, with intervals."""
        kept, found, ones = self._kept, self._found, np.ones_like(self._kept)
        return [
            OperatingPoint(precision=precision, recall=recall, kept=number, answered=answered)
            for precision, recall, number, answered in zip(
                _estimates(self._ratios(found, kept)),
                _estimates(self._ratios(found, self._relevant * ones)),
                _estimates(self._ratios(kept, ones)),
                _estimates(self._ratios((kept > 0).astype(float), ones)),
                strict=True,
            )
        ]

    def precisions(self) -> list[Estimate]:
        """Return the precision at each threshold; unknown where fewer than ten are kept in all."""
        found = _estimates(self._ratios(self._found, self._kept))
        enough = self._kept.sum(axis=0) >= FEWEST_KEPT
        return [
            one if ok else Estimate(None, None, None) for one, ok in zip(found, enough, strict=True)
        ]

    def _ratios(self, above: Floats, below: Floats) -> Ratios:
        return ratios(above, below, n_resamples=self._n_resamples, seed=self._seed)


def _counts(
    values: Sequence[float], labels: Sequence[int], taus: Sequence[float]
) -> tuple[Floats, Floats]:
    """Count what is kept, and the evidence in it, at every threshold; shape (n_taus,) each."""
    passes = np.asarray(values, dtype=float).reshape(-1, 1) >= np.asarray(taus, dtype=float)
    truth = np.asarray(labels, dtype=float)
    return passes.sum(axis=0).astype(float), truth @ passes


def _estimates(found: Ratios) -> list[Estimate]:
    return [
        Estimate(*(None if math.isnan(number) else float(number) for number in numbers))
        for numbers in zip(found.mean, found.low, found.high, strict=True)
    ]


Bound = Literal["mean", "low"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A threshold, or why there is none.

    Attributes:
        probability: The lowest probability that reaches the wanted precision; None if none does.
        why_not: Empty, or what comes closest.
    """

    probability: float | None
    why_not: str = ""


def suggest(
    taus: Sequence[float], precisions: Sequence[Estimate], wanted: float, *, bound: Bound = "mean"
) -> Suggestion:
    """Return the lowest threshold whose precision is at least *wanted*.

    Args:
        taus: Thresholds, rising, shape (n_taus,).
        precisions: At those thresholds, as `Kept.precisions` gives them.
        wanted: In [0, 1].
        bound: What has to reach it: the precision itself, or the lower end of its interval, which
            also holds for most other questions of the same kind.
    """
    known = [
        (tau, value)
        for tau, one in zip(taus, precisions, strict=True)
        if (value := one.mean if bound == "mean" else one.low) is not None
    ]
    reached = [tau for tau, value in known if value >= wanted]
    if reached:
        return Suggestion(probability=min(reached))
    if not known:
        return Suggestion(probability=None, why_not=f"fewer than {FEWEST_KEPT} passages to keep")
    best, tau = max((value, -tau) for tau, value in known)
    name = "precision" if bound == "mean" else "lower end of the precision"
    return Suggestion(
        probability=None,
        why_not=f"the best {name} is {best:.3f}, at probability {-tau:.2f}; wanted {wanted:g}",
    )
