"""How to measure, and how far a run is."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from deepera_graph.bench.errors import MetricError
from deepera_graph.bench.metrics.named import check_metric
from deepera_graph.bench.metrics.resample import N_RESAMPLES

ORACLE = "oracle"
METRICS = ("HitRate@1", "HitRate@3", "RP")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How to measure.

    Attributes:
        metrics: Names, see `deepera_graph.bench.metrics.named`.
        baseline: Name of the ranker that the others are compared with; empty compares none.
        n_repeats: Runs of each ranker that differs from run to run, >= 1.
        n_resamples: Bootstrap resamples and permutations, >= 1.
        seed: Of bootstrap and permutation test.
        keep: Folder for rankings, to be read back by the next run; None keeps nothing.
        oracle: Whether to add a row for the best possible order of the candidates, found by
            their labels: the ceiling of any ranker.
        strict: Whether a ranker that is not available is an error.
        retry_failed: Whether kept rankings are made anew where a passage could not be judged.
    """

    metrics: tuple[str, ...] = METRICS
    baseline: str = ""
    n_repeats: int = 3
    n_resamples: int = N_RESAMPLES
    seed: int = 0
    keep: Path | None = None
    oracle: bool = False
    strict: bool = False
    retry_failed: bool = False

    def __post_init__(self) -> None:
        for metric in self.metrics:
            check_metric(metric)
        for name in ("n_repeats", "n_resamples"):
            if getattr(self, name) < 1:
                raise MetricError(f"{name} must be >= 1, got {getattr(self, name)}")


class Step(NamedTuple):
    """How far a run is: so many questions of a data set ranked, all repeats counted together."""

    dataset: str
    ranker: str
    n_done: int
    n_questions: int


Watch = Callable[[Step], None]
