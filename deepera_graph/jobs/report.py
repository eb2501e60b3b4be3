"""The report of a run over a file: counts, costs and signs of failure, in constant memory.

| key of ``diagnostics`` | sign |
|---|---|
| ``intent_failures`` | useless intents, scores that tell passages hardly apart |
| ``calibration_drift`` | scores that mean something else in another subject |
| ``over_filtering`` | too little passes the threshold |
| ``summary_drift`` | numbers and names of a summary that its passage does not have |

Source:
    The four ways to fail that a study of DeepEra names; how they are measured is ours.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations
from statistics import quantiles
from time import perf_counter
from typing import Any

from deepera_graph.jobs.lines import BadLine, DoneLine, QuestionStats
from deepera_graph.pipeline.state import read_outcome
from deepera_graph.usage import HasUsage, Usage

N_BINS = 200
MOST_SUBJECTS = 100
OTHER = "(other subjects)"
FEWEST_SCORES = 5
FEWEST_DISTINCT = 3
LEAST_IQR = 0.05
LEAST_RANGE = 0.2
MOST_CAUSES = 50
MOST_ERRORS = 1000
OTHER_CAUSE = "(other causes)"
UNFINISHED = "unfinished"
_QUOTED = re.compile(r": ['\"]")


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

    def quantiles(self) -> dict[str, float | None]:
        """Return the 10th, 25th, 50th, 75th and 90th percentile by name."""
        return {f"p{share}": self.quantile(share / 100) for share in (10, 25, 50, 75, 90)}

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
class Diagnostics:
    """Signs of failure, added up over questions."""

    fallbacks: int = 0
    repaired: int = 0
    undifferentiated: int = 0
    distinct: Counter[int] = field(default_factory=Counter)
    iqr: Histogram = field(default_factory=Histogram)
    scores: dict[str, Histogram] = field(default_factory=dict)
    passed: Counter[str] = field(default_factory=Counter)
    kept: Counter[int] = field(default_factory=Counter)
    summaries: Counter[str] = field(default_factory=Counter)
    terms: Counter[str] = field(default_factory=Counter)
    retained: Counter[str] = field(default_factory=Counter)

    def add(self, stats: QuestionStats) -> None:
        """Count one question."""
        if stats["n_passages"]:
            self.fallbacks += stats["intent"] == "fallback"
            self.repaired += stats["intent"] == "repaired"
            self.kept[stats["n_passed"]] += 1
        if len(stats["scores"]) >= FEWEST_SCORES:
            self._add_spread(stats["scores"])
        self._add_subject(stats)
        self.summaries.update(stats["summary_statuses"])
        self.terms.update(stats["summary_terms"])
        self.retained.update(stats["retained_terms"])

    def _add_spread(self, scores: list[float]) -> None:
        """Count scores as undifferentiated that are few, close together and in a narrow range."""
        # The limits are ours; that of the range is for judges that only say 0 or 1.
        n_distinct = len({round(score, 2) for score in scores})
        low, _, high = quantiles(scores, n=4, method="inclusive")
        self.distinct[n_distinct] += 1
        self.iqr.add(high - low)
        self.undifferentiated += (
            n_distinct < FEWEST_DISTINCT
            and high - low < LEAST_IQR
            and max(scores) - min(scores) < LEAST_RANGE
        )

    def _add_subject(self, stats: QuestionStats) -> None:
        name = stats["subject"] or "(none)"
        if name not in self.scores and len(self.scores) >= MOST_SUBJECTS:
            name = OTHER
        histogram = self.scores.setdefault(name, Histogram())
        for score in stats["scores"]:
            histogram.add(score)
        self.passed[name] += sum(score >= stats["threshold"] for score in stats["scores"])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; what `on_empty` filled in counts as nothing kept."""
        return {
            "intent_failures": {
                "fallbacks": self.fallbacks,
                "repaired": self.repaired,
                "undifferentiated": self.undifferentiated,
                "distinct_scores": {str(n): self.distinct[n] for n in sorted(self.distinct)},
                "score_iqr": self.iqr.quantiles(),
            },
            "calibration_drift": self._drift(),
            "over_filtering": {
                "empty_results": self.kept[0],
                "empty_share": _share(self.kept[0], self.kept.total()),
                "kept": {str(n): self.kept[n] for n in sorted(self.kept) if self.kept[n]},
            },
            "summary_drift": {
                "summaries": self.summaries.total(),
                "drifted": self.summaries["drifted"],
                "failed": self.summaries["failed"],
                "found_nothing": self.summaries["none"],
                "number_retention": _share(self.retained["numbers"], self.terms["numbers"]),
                "name_retention": _share(self.retained["names"], self.terms["names"]),
            },
        }

    def _drift(self) -> dict[str, Any]:
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
                    "quantiles": one.quantiles(),
                }
                for name, one in sorted(self.scores.items())
            },
        }


@dataclass(slots=True)
class JobReport(HasUsage):
    """Adds up what happens; its size does not grow with the file."""

    end: str = "running"  # then complete, interrupted or unreachable
    n_written: int = 0
    n_bad: int = 0  # lines that failed as a whole
    n_passages: int = 0  # in the lines written
    n_kept: int = 0
    n_failed: int = 0
    n_evidence: int = 0  # questions for which a passage is evidence
    n_possible: int = 0  # questions for which passages are possible evidence alone
    n_earlier: int = 0  # lines that an earlier run has written
    usage_earlier: Usage = field(default_factory=Usage)  # of these lines
    errors: list[dict[str, Any]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    outcomes_beside: Counter[str] = field(default_factory=Counter)  # of those with either
    statuses: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    usage: dict[str, Usage] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    manifest: dict[str, Any] | None = None
    started: float = field(default_factory=perf_counter)

    def add(self, stats: QuestionStats, *, earlier: bool = False) -> None:
        """Count a question whose line was written, now or by an *earlier* run."""
        self.n_written += 1
        self.n_passages += stats["n_passages"]
        self.n_kept += stats["n_kept"]
        self.n_failed += sum(stats["causes"].values())
        n_sure = stats.get("n_evidence", stats["n_passed"])  # an older journal has it not
        self.n_evidence += n_sure > 0
        self.n_possible += stats["n_passed"] > 0 == n_sure
        outcome = read_outcome(stats["outcome"])
        self.outcomes[outcome] += 1
        self.outcomes_beside[outcome] += stats["n_passed"] > 0
        self.statuses.update(stats["statuses"])
        for cause, n_failed in stats["causes"].items():
            known = cause in self.causes or len(self.causes) < MOST_CAUSES
            self.causes[cause if known else OTHER_CAUSE] += n_failed
        for stage, record in stats["usage"].items():
            used = Usage.of(record)
            self.usage[stage] = self.usage.get(stage, Usage()) + used
            if earlier:
                self.usage_earlier += used
        for stage, seconds in stats["seconds"].items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        self.diagnostics.add(stats)
        self.n_earlier += earlier

    def add_unfinished(self, usage: Usage) -> None:
        """Count what a question cost that failed as a whole, under a stage of its own."""
        self.usage[UNFINISHED] = self.usage.get(UNFINISHED, Usage()) + usage

    def add_bad(self, line: BadLine | DoneLine) -> None:
        """Count a line that failed as a whole; the first 1000 (`MOST_ERRORS`) are listed."""
        self.n_bad += 1
        if len(self.errors) < MOST_ERRORS:
            self.errors.append({"line": line.number, "id": line.id, "error": line.error})

    def commonest_cause(self) -> tuple[str, int] | None:
        """Return what most passages failed of, and how many; None if none failed."""
        # Causes that differ in what they quote, as replies that hold no JSON do, are counted as
        # one, and the first of them is returned.
        counts, examples = Counter[str](), dict[str, str]()
        for cause, n_failed in self.causes.items():
            kind = _QUOTED.split(cause, maxsplit=1)[0]
            counts[kind] += n_failed
            examples.setdefault(kind, cause)
        commonest = counts.most_common(1)
        return (examples[commonest[0][0]], commonest[0][1]) if commonest else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        # `seconds` has the wall time of the run; its `stages` are summed over the questions,
        # several of which run at once. All but the wall time is of the whole file; after a resume,
        # `earlier` has the part that was done before.
        earlier = {"written": self.n_earlier, "usage": self.usage_earlier.record()}
        stages = {name: round(spent, 3) for name, spent in self.seconds.items() if name != "total"}
        return {
            "end": self.end,
            "lines": {
                "read": self.n_written + self.n_bad,
                "written": self.n_written,
                "bad": self.n_bad,
            },
            **({"earlier": earlier} if self.n_earlier else {}),
            "passages": {
                "ranked": self.n_passages,
                "kept": self.n_kept,
                "failed": self.n_failed,
                "statuses": dict(sorted(self.statuses.items())),
                "failures_by_cause": dict(self.causes.most_common()),
            },
            "questions": {"evidence": self.n_evidence, "possible": self.n_possible},
            "outcomes": dict(sorted(self.outcomes.items())),
            "seconds": {
                "wall": round(perf_counter() - self.started, 3),
                "stages": stages,
                "stages_are": "summed over questions and threads, several of which run at once",
            },
            "usage": {
                **self.total_usage.record(),
                "stages": {stage: used.record() for stage, used in self.usage.items()},
            },
            "diagnostics": self.diagnostics.to_dict(),
            "errors": self.errors,
            "manifest": self.manifest,
        }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
