"""The work of `deepera-lab judge evaluate`: measures of a judge, as tables and figures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite, nan
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from deepera_graph.calibration.statistics import Interval, tell_few
from deepera_graph.judges.trained.model import SHIPPED, EvidenceModel
from deepera_graph.judges.trained.scorer import EvidenceScorer
from deepera_graph.lab.bench.figures import CurveFigure, CurvePoints, draw_files
from deepera_graph.lab.tables import format_rows
from deepera_graph.lab.training.fitting.features import FeatureExtractor, open_extractor
from deepera_graph.lab.training.fitting.scorer import build_learner, build_model_scorer
from deepera_graph.lab.training.fitting.sentences import (
    match_marked,
    measure_sentences,
    read_marked,
)
from deepera_graph.lab.training.lessons.augment import merge_evidence, take_first
from deepera_graph.lab.training.lessons.pools import N_CANDIDATES, DataPlan, Pool
from deepera_graph.lab.training.measure import (
    KEPT,
    N_FOLDS,
    RANKS,
    TAU,
    ReliabilityBin,
    ScoredPool,
    compute_calibration,
    compute_operating_curve,
    compute_prefilter_metrics,
    compute_rank_metrics,
    compute_reliability,
    compute_threshold_metrics,
    cross_validate,
    score_pools,
)
from deepera_graph.lab.training.weights import (
    Log,
    count_known,
    find_encoder,
    import_package,
    load_scorer,
    load_unexposed,
    log_nothing,
    read_trained_questions,
)
from deepera_graph.settings.thresholds import OPERATING_POINT

COLUMNS = (*RANKS, *KEPT)
_OPERATING = ("precision", "any golden", "empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPlan(DataPlan):
    """What is measured, and on what."""

    split: str = "test"
    n_candidates: int = N_CANDIDATES
    weights: Path | None = None  # folder; the shipped ones if None. Fitted judges use its encoder
    tau: float | None = None  # threshold, inclusive, in [0, 1]; that of the weights if None
    n_folds: int = N_FOLDS  # of a cross-validation, >= 2
    first: tuple[int, ...] = ()  # questions are also measured over so many, >= 1
    joined: bool = False  # also measure with all evidence that several sets have

    @property
    def folder(self) -> Path:
        """The folder of the weights."""
        return self.weights or SHIPPED

    def add_measured(self, pools: Sequence[Pool]) -> list[Pool]:
        """Return the pools and what else they are measured as, in sets of their own."""
        also = [(one, f"first {n}") for n in self.first for one in take_first(pools, n)]
        if self.joined:
            also += [(one, "joined") for one in merge_evidence(pools)]
        return [*pools, *(replace(one, set=f"{one.set}, {how}", weight=0.0) for one, how in also)]

    @contextmanager
    def open_extractor(self, log: Log = log_nothing) -> Iterator[FeatureExtractor]:
        """Give what extracts features with the encoder of the weights."""
        import_package("lightgbm")
        with open_extractor(find_encoder(self.folder), self.keep, log) as extractor:
            yield extractor

    def load_base(self, pools: Sequence[Pool]) -> EvidenceScorer | None:
        """Return the judge that gives what the data cannot teach; None if it knows a question."""
        return load_unexposed(self.folder, pools)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetResult:
    """What was measured on one set."""

    n_questions: int
    n_groups: int  # that intervals are over
    n_trained_on: int  # known to the judge: its figures are no promise then
    n_unanswerable: int  # without golden passages: ranks, and `any golden`, are over the others
    n_abstained: int  # of these, those of which nothing is kept
    false_keeps: float  # share of their passages that is kept, a mean over these; nan without them
    metrics: Mapping[str, Interval]  # with intervals of 95 %
    curve: Mapping[float, Mapping[str, Interval]]  # what other thresholds keep
    best: Mapping[int, Mapping[str, Interval]]  # left when the best so many go on to a reader
    bins: Sequence[ReliabilityBin]  # probabilities against shares of evidence
    calibration: Mapping[str, float]  # Brier score and calibration error

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values; null for what is not a number."""
        return {
            "questions": self.n_questions,
            "groups": self.n_groups,
            "trained_on": self.n_trained_on,
            "unanswerable": self.n_unanswerable,
            "abstained": self.n_abstained,
            "false_keeps": self.false_keeps if self.n_unanswerable else None,
            "metrics": _intervals_to_dict(self.metrics),
            "curve": [{"tau": tau, **_intervals_to_dict(its)} for tau, its in self.curve.items()],
            "best": [{"keep": cut, **_intervals_to_dict(its)} for cut, its in self.best.items()],
            "reliability": [part._asdict() for part in self.bins],
            "calibration": dict(self.calibration),
        }


def _intervals_to_dict(metrics: Mapping[str, Interval]) -> dict[str, Any]:
    return {
        name: {key: value if isfinite(value) else None for key, value in one._asdict().items()}
        for name, one in metrics.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEvaluation:
    """What was measured, by set; *how* is one sentence on it, *tau* the threshold."""

    how: str
    tau: float
    sets: Mapping[str, SetResult]
    quotes: "QuoteResult | None" = None  # where the data have marked sentences

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values; null for what is not a number."""
        sets = {name: one.to_dict() for name, one in self.sets.items()}
        quotes = None if self.quotes is None else self.quotes._asdict()
        plain = {"how": self.how, "tau": self.tau, "sets": sets, "quotes": quotes}
        return {**plain, "notes": [*_describe_groups(self)]}


class QuoteResult(NamedTuple):
    """How often the sentence that is quoted is one that people marked as the proof."""

    right: float  # share of the texts, in [0, 1]
    n_texts: int


def evaluate_weights(plan: EvaluationPlan, log: Log = log_nothing) -> JudgeEvaluation:
    """Measure weights as they are; questions they were trained on are counted and told."""
    pools = plan.read_pools(to_train=False)
    measured = plan.add_measured(pools)
    model = EvidenceModel.load(plan.weights)
    trained_on = read_trained_questions(plan.folder)
    known = count_known(measured, trained_on)
    scored = list(score_pools(measured, build_model_scorer(model), log))
    how = f"Weights {model.version}, as they are."
    if known:
        n_known = sum(count_known(pools, trained_on).values())
        how += (
            f" They were trained on {n_known} of the {len(pools)} questions, whose "
            "figures promise nothing: cross-validate instead."
        )
    tau = _threshold_of(plan, model.head)
    found = evaluate(scored, how=how, tau=tau, trained_on=known, seed=plan.seed)
    return replace(found, quotes=_measure_quotes(plan, model))


def _measure_quotes(plan: EvaluationPlan, model: EvidenceModel) -> QuoteResult | None:
    """Measure the choice of a sentence on SciFact's dev claims, which no judge is trained on."""
    marked = [one for path in plan.data for one in read_marked(path, claims="dev")]
    texts = match_marked([one for one in marked if one.answering], model.encoder)
    if not texts:
        return None
    right = measure_sentences(texts, model.head.results, model.head.sentence)
    return QuoteResult(right, len(texts))


def evaluate_fits(plan: EvaluationPlan, log: Log = log_nothing) -> JudgeEvaluation:
    """Measure judges fitted on the other folds of the same data: no question is trained on."""
    pools = plan.read_pools(to_train=True)
    with plan.open_extractor(log) as extractor:
        learn = build_learner(extractor, plan.load_base(pools))
        measured = plan.add_measured(pools)
        scored = cross_validate(measured, learn, n_folds=plan.n_folds, seed=plan.seed, log=log)
    how = (
        f"Judges fitted on the other {plan.n_folds - 1} of {plan.n_folds} folds, split by "
        f"groups of questions, seed {plan.seed}."
    )
    tau = _threshold_of(plan, load_scorer(plan.folder))
    return evaluate(scored, how=how, tau=tau, seed=plan.seed)


def _threshold_of(plan: EvaluationPlan, judge: EvidenceScorer | None) -> float:
    if plan.tau is not None:
        return plan.tau
    return OPERATING_POINT if judge is None else judge.operating_point


def evaluate(
    scored: Sequence[ScoredPool],
    *,
    how: str,
    tau: float = TAU,
    trained_on: Mapping[str, int] | None = None,
    seed: int = 0,
) -> JudgeEvaluation:
    """Measure scores, each set for itself; *trained_on* counts the questions known, by set."""
    by_set: dict[str, list[ScoredPool]] = {}
    for one in scored:
        by_set.setdefault(one.pool.set, []).append(one)
    known = trained_on or {}
    sets = {name: _measure(its, tau, known.get(name, 0), seed) for name, its in by_set.items()}
    return JudgeEvaluation(how=how, tau=tau, sets=sets)


def _measure(scored: Sequence[ScoredPool], tau: float, n_trained_on: int, seed: int) -> SetResult:
    unanswerable = [one for one in scored if not one.pool.n_golden]
    return SetResult(
        n_questions=len(scored),
        n_groups=len({one.pool.group for one in scored}),
        n_trained_on=n_trained_on,
        n_unanswerable=len(unanswerable),
        n_abstained=sum(bool((one.scores < tau).all()) for one in unanswerable),
        false_keeps=fmean((one.scores >= tau).mean() for one in unanswerable)
        if unanswerable
        else nan,
        metrics={
            **compute_rank_metrics(scored, seed=seed),
            **compute_threshold_metrics(scored, tau, seed=seed),
        },
        curve=compute_operating_curve(scored, seed=seed),
        best=compute_prefilter_metrics(scored, seed=seed),
        bins=compute_reliability(scored),
        calibration=compute_calibration(scored),
    )


def format_evaluation(evaluation: JudgeEvaluation) -> str:
    """Return all tables; shares are times 100, a kept count is passages a question."""
    overview, prefilter = format_overview(evaluation), _format_prefilter(evaluation)
    parts = [overview, "## What a pre-filter keeps", "", prefilter.removesuffix("\n")]
    for name, one in evaluation.sets.items():
        parts += ["", f"## {name}", "", _format_curve(one), _format_bins(one.bins)]
        parts.append(", ".join(f"{key} {value:.3f}" for key, value in one.calibration.items()))
    return "\n".join(parts) + "\n"


def format_overview(evaluation: JudgeEvaluation) -> str:
    """Return the table of all sets alone, after the sentence on how it was measured."""
    at = f"at {evaluation.tau:g}"
    head = ["set", "questions", *(f"{name} {at}" if name == "kept" else name for name in COLUMNS)]
    rows = [
        [
            name,
            f"{one.n_questions} ({one.n_trained_on} trained on)"
            if one.n_trained_on
            else str(one.n_questions),
            *(format_interval(column, one.metrics[column]) for column in COLUMNS),
        ]
        for name, one in evaluation.sets.items()
    ]
    quotes = evaluation.quotes
    told = (
        ""
        if quotes is None
        else f"\nThe quote is a sentence that people marked in {100 * quotes.right:.1f} % of "
        f"{quotes.n_texts} texts (SciFact dev).\n"
    )
    unanswerable = "".join(
        f"\nNothing answers {one.n_unanswerable} of the {one.n_questions} questions of {name}: "
        f"nothing is kept for {one.n_abstained} of them, {100 * one.false_keeps:.1f} % of their "
        f"passages are; ranks, recall and any golden are {_over(one)}.\n"
        for name, one in evaluation.sets.items()
        if one.n_unanswerable
    )
    groups = "".join(f"\n{one}.\n" for one in _describe_groups(evaluation))
    return f"{evaluation.how}\n\n{format_rows(head, rows)}{groups}{unanswerable}{told}"


def _describe_groups(evaluation: JudgeEvaluation) -> Iterator[str]:
    """Say what intervals are over, where that is fewer than the questions, and of what is few."""
    for name, one in evaluation.sets.items():
        if one.n_groups == 1:
            is_one = one.n_questions == 1
            what = "1 question" if is_one else "1 group of questions that share passages"
            yield f"{name}: {what}: no interval"
            continue
        if one.n_groups < one.n_questions:
            shared = f"{one.n_groups} groups of questions that share passages"
            yield f"{name}: intervals are over {shared}"
        answered = one.n_questions - one.n_unanswerable or one.n_questions
        if few := tell_few(min(answered, one.n_groups)):
            yield f"{name}: {few.removesuffix('.')}"


def _over(one: SetResult) -> str:
    return "unknown" if one.n_unanswerable == one.n_questions else "over the others"


def format_interval(name: str, one: Interval) -> str:
    """Return a mean with its interval, if it has one; a dash if it is not a number."""
    if not isfinite(one.mean):
        return "-"
    factor, decimals = (1, 2) if name == "kept" else (100, 1)
    mean, low, high = (f"{factor * value:.{decimals}f}" for value in one)
    return f"{mean} ({low} to {high})" if isfinite(one.low) else mean


def _format_prefilter(evaluation: JudgeEvaluation) -> str:
    cuts = list(dict.fromkeys(cut for one in evaluation.sets.values() for cut in one.best))
    rows = [
        [name, *(format_interval("golden", one.best[cut]["golden"]) for cut in cuts)]
        for name, one in evaluation.sets.items()
    ]
    return format_rows(["golden passages among the best", *map(str, cuts)], rows)


def _format_curve(one: SetResult) -> str:
    rows = [
        [f"{tau:.2f}", *(format_interval(name, its[name]) for name in KEPT)]
        for tau, its in one.curve.items()
    ]
    return format_rows(["threshold", *KEPT], rows)


def _format_bins(bins: Sequence[ReliabilityBin]) -> str:
    rows = [
        [f"{one.low:.1f} to {one.high:.1f}", str(one.n), f"{one.mean:.3f}", f"{one.share:.3f}"]
        for one in bins
        if one.mean is not None and one.share is not None
    ]
    return format_rows(["probability", "passages", "mean probability", "share of evidence"], rows)


def draw_operating(evaluation: JudgeEvaluation) -> CurveFigure:
    """Return what thresholds keep, a panel a set."""

    def curve(one: SetResult, column: str) -> CurvePoints:
        its = [kept[column] for kept in one.curve.values()]
        mean, low, high = zip(*its, strict=True)
        return CurvePoints(list(one.curve), mean, low, high)

    return CurveFigure(
        name="operating",
        title="What a threshold keeps",
        x_label="threshold",
        y_label="share",
        panels={
            name: {column: curve(one, column) for column in _OPERATING}
            for name, one in evaluation.sets.items()
        },
    )


def draw_reliability(evaluation: JudgeEvaluation) -> CurveFigure:
    """Return probabilities against shares of evidence, a panel a set; best is the diagonal."""
    ideal = CurvePoints([0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0], dashed=True)

    def curve(one: SetResult) -> CurvePoints:
        filled = [part for part in one.bins if part.mean is not None and part.share is not None]
        shares = [part.share or 0.0 for part in filled]
        return CurvePoints([part.mean or 0.0 for part in filled], shares, shares, shares)

    return CurveFigure(
        name="reliability",
        title="How far probabilities hold",
        x_label="mean probability",
        y_label="share of evidence",
        panels={
            name: {"ideal": ideal, "judge": curve(one)} for name, one in evaluation.sets.items()
        },
    )


def save_figures(folder: Path, figures: Iterable[CurveFigure]) -> None:
    """Write each figure as SVG and as PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, drawn in draw_files(figures):
        (folder / name).write_bytes(drawn)
