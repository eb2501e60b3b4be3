"""Signs of failure, counted over many questions in constant memory.

| key | sign | source |
|---|---|---|
| ``intent_failures`` | useless intents, scores that tell passages hardly apart | FA-1 |
| ``calibration_drift`` | scores that mean something else in another subject | FA-2 |
| ``over_filtering`` | too little passes the threshold | FA-3 |
| ``summary_drift`` | numbers and names of a summary that its passage does not have | FA-4 |

Source:
    Failure signatures FA-1 to FA-4 of the DeepEra study.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations
from statistics import quantiles
from time import perf_counter
from typing import Any

from deepera_graph.jobs.lines import BadLine, DoneLine, Facts, Signs, SummarySigns, signs_of
from deepera_graph.result import RerankResult
from deepera_graph.usage import Usage

N_BINS = 200
MOST_SUBJECTS = 100
OTHER = "(other subjects)"
FEWEST_SCORES = 5
FEWEST_DISTINCT = 3
LEAST_IQR = 0.05
LEAST_RANGE = 0.2


class Histogram:
    """Numbers in [0, 1], to within half a hundredth."""

    def __init__(self) -> None:
        self.n = 0
        self._bins = [0] * (N_BINS + 1)

    def add(self, value: float) -> None:
        """Count one number."""
        self.n += 1
        self._bins[int(value * N_BINS + 1e-9)] += 1

    def quantile(self, share: float) -> float | None:
        """Return the value that *share* of the numbers do not exceed; None if there are none."""
        below = 0
        for index, count in enumerate(self._bins):
            below += count
            if self.n and below >= share * self.n and count:
                return index / N_BINS
        return None

    def distance(self, other: "Histogram") -> float:
        """Return the two-sample Kolmogorov-Smirnov distance, in [0, 1]; 0 if either is empty."""
        if not self.n or not other.n:
            return 0.0
        here = there = widest = 0.0
        for mine, theirs in zip(self._bins, other._bins, strict=True):
            here += mine / self.n
            there += theirs / other.n
            widest = max(widest, abs(here - there))
        return widest


@dataclass(slots=True)
class IntentFailures:
    """FA-1: intents that had to fall back, and questions whose scores hardly differ.

    Scores are undifferentiated if at least five passages were scored, with fewer than three
    distinct values (to two decimals), an interquartile range below 0.05, and a range below 0.2.
    The limits are ours; the range keeps a judge that says only 0 or 1 from being called flat.
    """

    fallbacks: int = 0
    repaired: int = 0
    undifferentiated: int = 0
    distinct: Counter[int] = field(default_factory=Counter)
    iqr: Histogram = field(default_factory=Histogram)

    def add(self, signs: Signs) -> None:
        """Count one question."""
        if not signs["n_passages"]:
            return
        scores = signs["scores"]
        self.fallbacks += signs["intent"] == "fallback"
        self.repaired += signs["intent"] == "repaired"
        if len(scores) < FEWEST_SCORES:
            return
        n_distinct = len({round(score, 2) for score in scores})
        low, _, high = quantiles(scores, n=4, method="inclusive")
        self.distinct[n_distinct] += 1
        self.iqr.add(high - low)
        self.undifferentiated += (
            n_distinct < FEWEST_DISTINCT
            and high - low < LEAST_IQR
            and max(scores) - min(scores) < LEAST_RANGE
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "fallbacks": self.fallbacks,
            "repaired": self.repaired,
            "undifferentiated": self.undifferentiated,
            "distinct_scores": {str(n): self.distinct[n] for n in sorted(self.distinct)},
            "score_iqr": _quantiles(self.iqr),
        }


@dataclass(slots=True)
class CalibrationDrift:
    """FA-2: how scores are distributed in each subject, and how far subjects are apart."""

    scores: dict[str, Histogram] = field(default_factory=dict)
    passed: Counter[str] = field(default_factory=Counter)

    def add(self, signs: Signs) -> None:
        """Count one question."""
        name = signs["subject"] or "(none)"
        if name not in self.scores and len(self.scores) >= MOST_SUBJECTS:
            name = OTHER
        histogram = self.scores.setdefault(name, Histogram())
        for score in signs["scores"]:
            histogram.add(score)
        self.passed[name] += sum(score >= signs["threshold"] for score in signs["scores"])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        pairs = [
            (one.distance(other), name, other_name)
            for (name, one), (other_name, other) in combinations(sorted(self.scores.items()), 2)
        ]
        distance, *between = max(pairs, default=(None,))
        return {
            "largest_ks_distance": None if distance is None else round(distance, 4),
            "between": between,
            "subjects": {
                name: {
                    "scores": one.n,
                    "pass_rate": _share(self.passed[name], one.n),
                    "quantiles": _quantiles(one),
                }
                for name, one in sorted(self.scores.items())
            },
        }


@dataclass(slots=True)
class OverFiltering:
    """FA-3: how many passages are kept, and how often none."""

    kept: Counter[int] = field(default_factory=Counter)

    def add(self, signs: Signs) -> None:
        """Count one question that had passages."""
        if signs["n_passages"]:
            self.kept[signs["n_kept"]] += 1

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; what `on_empty` filled in counts as nothing kept."""
        return {
            "empty_results": self.kept[0],
            "empty_share": _share(self.kept[0], self.kept.total()),
            "kept": {str(n): self.kept[n] for n in sorted(self.kept) if self.kept[n]},
        }


@dataclass(slots=True)
class SummaryDrift:
    """FA-4: summaries that were replaced, and how many terms of the others are in their passage."""

    statuses: Counter[str] = field(default_factory=Counter)
    terms: Counter[str] = field(default_factory=Counter)
    retained: Counter[str] = field(default_factory=Counter)

    def add(self, summaries: SummarySigns) -> None:
        """Count the summaries of one question."""
        self.statuses.update(summaries["statuses"])
        self.terms.update(summaries["terms"])
        self.retained.update(summaries["retained"])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; the retentions are of the summaries handed out."""
        return {
            "summaries": self.statuses.total(),
            "drifted": self.statuses["drifted"],
            "failed": self.statuses["failed"],
            "found_nothing": self.statuses["none"],
            "number_retention": _share(self.retained["numbers"], self.terms["numbers"]),
            "name_retention": _share(self.retained["names"], self.terms["names"]),
        }


@dataclass(slots=True)
class Diagnostics:
    """All four signs together."""

    intent_failures: IntentFailures = field(default_factory=IntentFailures)
    calibration_drift: CalibrationDrift = field(default_factory=CalibrationDrift)
    over_filtering: OverFiltering = field(default_factory=OverFiltering)
    summary_drift: SummaryDrift = field(default_factory=SummaryDrift)

    def add(self, result: RerankResult, *, subject: str | None = None) -> None:
        """Count one question, and the subject it belongs to if that is known."""
        self.count(signs_of(result, subject))

    def count(self, signs: Signs) -> None:
        """Count what one question showed."""
        self.intent_failures.add(signs)
        self.calibration_drift.add(signs)
        self.over_filtering.add(signs)
        self.summary_drift.add(signs["summaries"])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "intent_failures": self.intent_failures.to_dict(),
            "calibration_drift": self.calibration_drift.to_dict(),
            "over_filtering": self.over_filtering.to_dict(),
            "summary_drift": self.summary_drift.to_dict(),
        }


def _quantiles(histogram: Histogram) -> dict[str, float | None]:
    return {f"p{share}": histogram.quantile(share / 100) for share in (10, 25, 50, 75, 90)}


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


MOST_CAUSES = 50
MOST_ERRORS = 1000
OTHER_CAUSE = "(other causes)"
UNFINISHED = "unfinished"


@dataclass(slots=True)
class JobReport:
    """Adds up what happens; its size does not grow with the file.

    Attributes:
        end: How the run ended: ``complete``, ``interrupted``, ``unreachable``, or ``running``.
        n_written: Lines written.
        n_bad: Lines that failed as a whole.
        n_passages: Passages in the lines written.
        n_kept: Those that were kept.
        n_failed: Those that could not be judged.
        n_earlier: Those of `n_written` that an earlier run has written.
        usage_earlier: Calls and tokens of that earlier run, for these lines.
    """

    end: str = "running"
    n_written: int = 0
    n_bad: int = 0
    n_passages: int = 0
    n_kept: int = 0
    n_failed: int = 0
    n_earlier: int = 0
    usage_earlier: Usage = field(default_factory=Usage)
    errors: list[dict[str, Any]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    usage: dict[str, Usage] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    manifest: dict[str, Any] | None = None
    started: float = field(default_factory=perf_counter)

    def count(self, facts: Facts) -> None:
        """Count a question whose line was written."""
        self.n_written += 1
        self.n_passages += facts["passages"]
        self.n_kept += facts["kept"]
        self.n_failed += sum(facts["causes"].values())
        self.outcomes[facts["outcome"]] += 1
        self.statuses.update(facts["statuses"])
        for cause, n_failed in facts["causes"].items():
            known = cause in self.causes or len(self.causes) < MOST_CAUSES
            self.causes[cause if known else OTHER_CAUSE] += n_failed
        for stage, used in facts["usage"].items():
            self.usage[stage] = self.usage.get(stage, Usage()) + Usage.of(used)
        for stage, seconds in facts["seconds"].items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        self.diagnostics.count(facts["signs"])

    def count_earlier(self, facts: Facts) -> None:
        """Count a question whose line an earlier run has written."""
        self.count(facts)
        self.n_earlier += 1
        self.usage_earlier += sum(map(Usage.of, facts["usage"].values()), Usage())

    def add_unfinished(self, usage: Usage) -> None:
        """Count what a question cost that failed as a whole, under a stage of its own."""
        self.usage[UNFINISHED] = self.usage.get(UNFINISHED, Usage()) + usage

    def add_bad(self, line: BadLine | DoneLine) -> None:
        """Count a line that failed as a whole; the first 1000 (`MOST_ERRORS`) are listed."""
        self.n_bad += 1
        if len(self.errors) < MOST_ERRORS:
            self.errors.append({"line": line.number, "id": line.id, "error": line.error})

    @property
    def total_usage(self) -> Usage:
        """Calls and tokens of all stages."""
        return sum(self.usage.values(), Usage())

    def to_dict(self) -> dict[str, Any]:
        """Return plain data.

        `seconds` has the wall time of the run; its `stages` are summed over the questions, several
        of which run at once. All but the wall time is of the whole file; after a resume, `earlier`
        has the part that was done before.
        """
        return {
            "end": self.end,
            "lines": {
                "read": self.n_written + self.n_bad,
                "written": self.n_written,
                "bad": self.n_bad,
            },
            **self._earlier(),
            "passages": {
                "ranked": self.n_passages,
                "kept": self.n_kept,
                "failed": self.n_failed,
                "statuses": _sorted(self.statuses),
                "failures_by_cause": dict(self.causes.most_common()),
            },
            "outcomes": _sorted(self.outcomes),
            "seconds": {
                "wall": round(perf_counter() - self.started, 3),
                "stages": {
                    stage: round(seconds, 3)
                    for stage, seconds in self.seconds.items()
                    if stage != "total"
                },
            },
            "usage": {
                **self.total_usage.record(),
                "stages": {stage: used.record() for stage, used in self.usage.items()},
            },
            "diagnostics": self.diagnostics.to_dict(),
            "errors": self.errors,
            "manifest": self.manifest,
        }

    def _earlier(self) -> dict[str, Any]:
        if not self.n_earlier:
            return {}
        return {"earlier": {"written": self.n_earlier, "usage": self.usage_earlier.record()}}


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
