"""The table a benchmark makes: rows with intervals, as Markdown and CSV."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from deepera_graph.lab.metrics.ranking import DatasetSummary
from deepera_graph.lab.tables import (
    Column,
    Grid,
    MetricEstimate,
    Row,
    format_cell,
    format_csv,
    format_rows,
)

_WIDEST_CELL = 120
_percent = partial(format_cell, unit="percent")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """One ranker on one data set."""

    dataset: str
    ranker: str
    n_repeats: int  # how many runs are averaged, >= 1
    estimates: tuple[MetricEstimate, ...]  # one a metric, in the order of the table's metrics
    seconds: float  # wall time a question
    calls: float  # model calls a question
    tokens: float  # tokens a question, in and out
    failed: float = 0.0  # passages a question that could not be judged
    problem: str = ""  # why the last of them failed


class Missing(NamedTuple):
    """A ranker that could not run on a data set, and why."""

    dataset: str
    ranker: str
    reason: str


class Difference(NamedTuple):
    """A ranker minus a baseline under one metric, on one data set; p is two-sided."""

    dataset: str
    ranker: str
    baseline: str
    metric: str
    mean: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Everything a run measured."""

    metrics: tuple[str, ...]
    summaries: tuple[DatasetSummary, ...]
    rows: tuple[ResultRow, ...]
    differences: tuple[Difference, ...] = ()
    missing: tuple[Missing, ...] = ()

    def of(self, dataset: str, ranker: str) -> ResultRow:
        """Return the row of a ranker on a data set."""
        for row in self.rows:
            if (row.dataset, row.ranker) == (dataset, ranker):
                return row
        raise KeyError((dataset, ranker))

    def overview(self) -> str:
        """Return one Markdown table of means in percent: rankers down, data sets across."""
        names = [summary.name for summary in self.summaries]
        rankers = dict.fromkeys(
            [*(row.ranker for row in self.rows), *(one.ranker for one in self.missing)]
        )
        body = [[one, *(self._means(name, one) for name in names)] for one in rankers]
        return f"{' / '.join(self.metrics)}, in percent.\n\n{format_rows(['ranker', *names], body)}"

    def markdown(self) -> str:
        """Return a Markdown table a data set: percent, with 95 % intervals over questions."""
        return "\n".join(self._section(summary) for summary in self.summaries)

    def csv(self) -> str:
        """Return a line a data set, ranker and metric; numbers are fractions, not percent."""
        head = (
            "dataset", "questions", "ceiling", "ranker", "repeats", "metric", "mean", "low",
            "high", "std", "seconds", "calls", "tokens", "failed", "note",
        )  # fmt: skip
        summaries = {one.name: one for one in self.summaries}
        lines: list[Row] = []
        for row in self.rows:
            summary = summaries[row.dataset]
            about = (row.dataset, summary.n_questions, summary.ceiling, row.ranker, row.n_repeats)
            costs = (row.seconds, row.calls, row.tokens, row.failed, row.problem)
            for metric, one in zip(self.metrics, row.estimates, strict=True):
                lines.append((*about, metric, *one, *costs))
        for gone in self.missing:
            summary = summaries[gone.dataset]
            about = (gone.dataset, summary.n_questions, summary.ceiling, gone.ranker, 0)
            lines.append((*about, *[""] * 9, _not_available(gone)))
        return _csv(head, tuple(lines))

    def differences_csv(self) -> str:
        """Return a line a difference; numbers are fractions, not percent."""
        return _csv(Difference._fields, self.differences)

    def _means(self, dataset: str, ranker: str) -> str:
        if any((one.dataset, one.ranker) == (dataset, ranker) for one in self.missing):
            return "not available"
        return " / ".join(_percent(one.mean) for one in self.of(dataset, ranker).estimates)

    def _section(self, summary: DatasetSummary) -> str:
        head = ["ranker", *self.metrics, "seconds a question"]
        body = [
            [
                row.ranker,
                *map(_percent, row.estimates),
                f"{row.seconds:.2g}",
            ]
            for row in self.rows
            if row.dataset == summary.name
        ]
        absent = [one for one in self.missing if one.dataset == summary.name]
        body += [[one.ranker, _shorten(one), *[""] * len(self.metrics)] for one in absent]
        return (
            f"### {summary.name}\n\n"
            f"{summary.n_questions} questions, {summary.n_candidates:.1f} candidates each "
            f"({summary.n_distractors:.1f} labelled distractors); golden among them for "
            f"{format_cell(summary.ceiling, 'percent')} %. First stage: {summary.first_stage}.\n"
            f"{_describe_unanswered(summary)}\n"
            f"{format_rows(head, body)}{self._failures(summary)}"
        )

    def _failures(self, summary: DatasetSummary) -> str:
        """Say in a sentence a ranker what could not be judged."""
        notes = [
            f"{row.ranker}: {_percent(row.failed / summary.n_candidates)} % of the passages could "
            f"not be judged and keep their first-stage order among themselves ({row.problem}).\n"
            for row in self.rows
            if row.dataset == summary.name and row.failed
        ]
        return "".join(f"\n{note}" for note in notes)


def _not_available(one: Missing) -> str:
    return f"not available: {one.reason}"


def _shorten(one: Missing) -> str:
    text = _not_available(one)
    return text if len(text) <= _WIDEST_CELL else f"{text[:_WIDEST_CELL].rstrip()} …"


def _describe_unanswered(summary: DatasetSummary) -> str:
    """Say which questions the metrics are over, if some have no golden passage."""
    n = summary.n_unanswered
    if not n:
        return ""
    return (
        f"Nothing answers {n} of the questions: Abstention and FalseKeeps are over these, NRS@K is "
        f"over all, the other metrics over the {summary.n_questions - n} with a golden passage.\n"
    )


def _csv(head: tuple[str, ...], rows: tuple[Row, ...]) -> str:
    return format_csv(Grid(name="", title="", columns=Column.several("text", *head), rows=rows))
