"""The report of a run over many questions: counts, times, costs, and signs of failure."""

from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from deepera_graph.diagnostics import Diagnostics
from deepera_graph.jobs.lines import BadLine, QuestionLine
from deepera_graph.result import RerankResult
from deepera_graph.usage import Usage

MOST_CAUSES = 50
MOST_ERRORS = 1000
OTHER = "(other causes)"


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
    """

    end: str = "running"
    n_written: int = 0
    n_bad: int = 0
    n_passages: int = 0
    n_kept: int = 0
    n_failed: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    usage: dict[str, Usage] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    manifest: dict[str, Any] | None = None
    started: float = field(default_factory=perf_counter)

    def add(self, line: QuestionLine, result: RerankResult) -> None:
        """Count a question whose line was written."""
        self.n_written += 1
        self.n_passages += len(result.passages)
        self.n_kept += len(result.kept)
        self.n_failed += len(result.failed)
        self.outcomes[result.outcome] += 1
        self.statuses.update(passage.status for passage in result.passages)
        for passage in result.failed:
            known = passage.reason in self.causes or len(self.causes) < MOST_CAUSES
            self.causes[passage.reason if known else OTHER] += 1
        for stage, used in result.usage.items():
            self.usage[stage] = self.usage.get(stage, Usage()) + used
        for stage, seconds in result.seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        self.diagnostics.add(result, subject=_subject(line))
        self.manifest = dict(result.manifest)

    def add_bad(self, line: BadLine) -> None:
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
        of which run at once.
        """
        return {
            "end": self.end,
            "lines": {
                "read": self.n_written + self.n_bad,
                "written": self.n_written,
                "bad": self.n_bad,
            },
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


def _subject(line: QuestionLine) -> str | None:
    subject = line.metadata.get("subject")
    return subject if isinstance(subject, str) and subject else None


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
