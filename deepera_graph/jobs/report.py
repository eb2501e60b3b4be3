"""The report of a run over many questions: counts, times, costs, and signs of failure."""

from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from deepera_graph.diagnostics import Diagnostics
from deepera_graph.jobs.facts import Facts
from deepera_graph.jobs.lines import BadLine, DoneLine
from deepera_graph.usage import Usage

MOST_CAUSES = 50
MOST_ERRORS = 1000
OTHER = "(other causes)"
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
            self.causes[cause if known else OTHER] += n_failed
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
