"""What can be set about a study: its options, their defaults and ranges follow from it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from math import inf
from pathlib import Path

from deepera_graph.errors import SettingsError
from deepera_graph.ranges import check_setting, setting


def check_rising(name: str, values: Sequence[float], *, low: float = 0, high: float = 1) -> None:
    """Raise `SettingsError` unless values rise, within a range; at least one."""
    if not values or any(not low <= value <= high for value in values):
        raise SettingsError(f"{name} must be in [{low}, {high}], got {list(values)}")
    if list(values) != sorted(set(values)):
        raise SettingsError(f"{name} must rise, got {list(values)}")


def _check_thresholds(name: str, values: Sequence[float]) -> None:
    if values:  # there may be rules in their place
        check_rising(name, values)


def _check_inside(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise SettingsError(f"{name} must be between 0 and 1, got {value}")


_check_counts = partial(check_rising, low=1, high=inf)


# Source: Cut-off 10: figure 7 of DeepEra; thresholds from 0.6 to 0.9: its follow-up study, those
# below are ours.
@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """What is measured, and how.

    Raises:
        SettingsError: A value is out of range.
    """

    limit: int | None = setting(
        None, "Only the first N questions of each.", least=1, metavar="N", shown="all"
    )
    split: str = setting("test", "Judgements of a BEIR folder to use.", metavar="NAME")
    n_candidates: int = setting(
        100, "Documents that BM25 finds for a question of a BEIR folder.", metavar="K"
    )
    rankers: tuple[str, ...] = setting(
        ("first-stage", "random", "bm25", "deepera:local"),
        "What to compare; see `deepera-lab bench table --help`.",
        metavar="NAME,...",
    )
    metrics: tuple[str, ...] = setting(
        ("HitRate@1", "HitRate@3", "MRR"), "Metrics of the main table.", metavar="NAME,..."
    )
    baseline: str = setting(
        "", "Ranker the others are compared with.", metavar="NAME", shown="none"
    )
    threshold: float | None = setting(
        None,
        "Lowest score kept, from 0 to 1, where it is not what is studied.",
        is_share=True,
        metavar="T",
        shown="the ranker's own, 0.8 for chat models",
    )
    top_n: int = setting(
        10, "Upper bound of passages kept, where it is not what is studied.", metavar="N"
    )
    thresholds: tuple[float, ...] = setting(
        (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        "What [b]threshold[/b] tries: numbers from 0 to 1, gap[:FLOOR], quantile:SHARE[:FLOOR], "
        "calibrated:CURVE[:PROBABILITY] and by intent, e.g. mechanism=0.7+default=0.8.",
        check=_check_thresholds,
        metavar="T,...",
        shown="0.3,0.4,0.5,0.6,0.7,0.8,0.9,gap,quantile:0.1",
    )
    tune_share: float = setting(
        0.5,
        "Share of the questions on which [b]threshold[/b] chooses one, which the others measure.",
        check=_check_inside,
        metavar="S",
    )
    cutoffs: tuple[int, ...] = setting(
        (1, 2, 3, 5, 10, 15, 20, 30),
        "What [b]cutoff[/b] tries.",
        check=_check_counts,
        metavar="N,...",
    )
    counts: tuple[int, ...] = setting(
        (1, 3, 5, 10),
        "Numbers of look-alikes that [b]counts[/b] puts into the pool.",
        check=_check_counts,
        metavar="N,...",
    )
    shares: tuple[float, ...] = setting(
        (0.1, 0.5, 1.0),
        "Shares of the look-alikes that [b]embeddings[/b] puts into the store.",
        check=check_rising,
        metavar="S,...",
    )
    base: str = setting(
        "",
        "Data set without look-alikes, which the others are compared with in [b]main[/b].",
        metavar="NAME",
        shown='those whose setting is "base"',
    )
    n_repeats: int | None = setting(
        None,
        "Runs of everything that may differ from run to run: random order, rankers that ask a "
        "chat model, those who answer and judge answers, and [b]stability[/b].",
        least=1,
        metavar="N",
        shown="3, but 1 for what asks a model",
    )
    max_failed_share: float = setting(
        0.2,
        "Share of failed answers, or of passages that a ranker could not judge, from 0 to 1, above "
        "which no figures are given.",
        is_share=True,
        metavar="S",
    )
    n_sampled: int = setting(
        50, "Questions of each data set that [b]stability[/b] takes.", metavar="N"
    )
    n_resamples: int = setting(10_000, "Resamples for the intervals and tests.", metavar="N")
    seed: int = setting(
        0, "Random seed of the random order and the resamples.", least=0, metavar="S"
    )
    keep: Path | None = setting(
        None,
        "Keep rankings in this folder, and reuse those it already holds.",
        metavar="FOLDER",
        shown="keep none",
    )
    strict: bool = setting(False, "Stop when a ranker cannot run here.")
    retry_failed: bool = setting(False, "Rank kept questions again of which a passage had failed.")

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.name in StudySettings.__dataclass_fields__:
                check_setting(one, getattr(self, one.name))
