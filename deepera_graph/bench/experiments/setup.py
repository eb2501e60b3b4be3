"""What can be turned in an experiment, checked when made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from langchain_core.embeddings import Embeddings

from deepera_graph.bench.answers.generator import Generator
from deepera_graph.bench.answers.judge import LfsJudge
from deepera_graph.bench.metrics.named import check_metric
from deepera_graph.bench.metrics.resample import N_RESAMPLES
from deepera_graph.errors import SettingsError
from deepera_graph.thresholds import Gap, Quantile

METRICS = ("HitRate@1", "HitRate@3", "RP")
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
CUTOFFS = (1, 2, 3, 5, 10, 15, 20, 30)
SHARES = (0.1, 0.5, 1.0)
BM25, LSA = SEARCHERS = ("bm25", "lsa")


def _rules() -> dict[str, Gap | Quantile]:
    return {"gap": Gap(), "quantile:0.1": Quantile(share=0.1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How to measure.

    Attributes:
        metrics: Of the main table; see `deepera_graph.bench.metrics.named`.
        threshold: Lowest score kept, in [0, 1], where it is not what is studied.
        top_n: Most passages kept, >= 1, where it is not what is studied.
        thresholds: What the threshold study tries, each in [0, 1], rising.
        rules: Rules that set a threshold from the scores of each question, by name; for the same
            study.
        cutoffs: What the cut-off study tries, each >= 1, rising.
        shares: Shares of the look-alikes put into the store, each in [0, 1], rising.
        searchers: Of the embedding study, those that need no model: ``bm25``, ``lsa``.
        embeddings: Of the embedding study, by name.
        generator: Who answers from what was handed on; None leaves the columns of answers out.
        answer_judge: Who scores those answers for LFS; None leaves LFS out.
        base: Name of the data set without look-alikes; found by its setting, ``base``, when empty.
        n_repeats: Runs of a ranker that differs from run to run, and of the stability study, >= 1.
        n_sampled: Questions a data set that the stability study takes, >= 1.
        n_resamples: Bootstrap resamples, >= 1.
        seed: Of the resamples and of what is drawn at random.
        keep: Folder for rankings and vectors, read back by the next run; None keeps nothing.
        strict: Whether a ranker that is not available is an error.

    Raises:
        SettingsError: A value is out of range.
        MetricError: A metric is unknown.

    Source:
        Threshold 0.8: DeepEra, section 3; cut-off 10: its figure 7; thresholds from 0.6 to 0.9: its
        follow-up study, those below are ours.
    """

    metrics: tuple[str, ...] = METRICS
    threshold: float = 0.8
    top_n: int = 10
    thresholds: tuple[float, ...] = THRESHOLDS
    rules: Mapping[str, Gap | Quantile] = field(default_factory=_rules)
    cutoffs: tuple[int, ...] = CUTOFFS
    shares: tuple[float, ...] = SHARES
    searchers: tuple[str, ...] = SEARCHERS
    embeddings: Mapping[str, Embeddings] = field(default_factory=dict)
    generator: Generator | None = None
    answer_judge: LfsJudge | None = None
    base: str = ""
    n_repeats: int = 3
    n_sampled: int = 50
    n_resamples: int = N_RESAMPLES
    seed: int = 0
    keep: Path | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        for metric in self.metrics:
            check_metric(metric)
        for name in self.searchers:
            if name not in SEARCHERS:
                raise SettingsError(f"searchers must be of {SEARCHERS}, got {name!r}")
        for name in ("top_n", "n_repeats", "n_sampled", "n_resamples"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be >= 1, got {getattr(self, name)}")
        _check_rising("threshold", (self.threshold,), 0, 1)
        if self.thresholds or not self.rules:
            _check_rising("thresholds", self.thresholds, 0, 1)
        _check_rising("cutoffs", self.cutoffs, 1, float("inf"))
        _check_rising("shares", self.shares, 0, 1)


def _check_rising(name: str, values: tuple[float, ...], low: float, high: float) -> None:
    if not values or any(not low <= value <= high for value in values):
        raise SettingsError(f"{name} must be in [{low}, {high}], got {list(values)}")
    if list(values) != sorted(set(values)):
        raise SettingsError(f"{name} must rise, got {list(values)}")
