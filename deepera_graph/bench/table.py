"""The table a benchmark makes: rows with intervals, as Markdown and CSV."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from math import isnan
from typing import NamedTuple

from deepera_graph.bench.data.instance import MetricError
from deepera_graph.bench.metrics.ranking import Survey

_WIDEST_CELL = 120


class Estimate(NamedTuple):
    """A metric of one ranker on one data set, each number in [0, 1].

    `std` is the standard deviation over repeated runs, 0 for a single one; all are not a number
    when the data has nothing to measure.
    """

    mean: float
    low: float
    high: float
    std: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One ranker on one data set.

    Attributes:
        dataset: Name of the data set.
        ranker: Name of the ranker.
        n_repeats: How many runs are averaged, >= 1.
        estimates: One a metric, in the order of the table's metrics.
        seconds: Wall time a question.
        calls: Model calls a question.
        tokens: Tokens a question, in and out.
        failed: Passages a question that the ranker could not judge; they keep their first-stage
            order among themselves.
        problem: Why the last of them failed.
    """

    dataset: str
    ranker: str
    n_repeats: int
    estimates: tuple[Estimate, ...]
    seconds: float
    calls: float
    tokens: float
    failed: float = 0.0
    problem: str = ""


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
    surveys: tuple[Survey, ...]
    rows: tuple[Row, ...]
    differences: tuple[Difference, ...] = ()
    missing: tuple[Missing, ...] = ()

    def of(self, dataset: str, ranker: str) -> Row:
        """Return the row of a ranker on a data set."""
        for row in self.rows:
            if (row.dataset, row.ranker) == (dataset, ranker):
                return row
        raise KeyError((dataset, ranker))

    def overview(self) -> str:
        """Return one Markdown table of means in percent: rankers down, data sets across."""
        names = [survey.name for survey in self.surveys]
        rankers = dict.fromkeys(
            [*(row.ranker for row in self.rows), *(one.ranker for one in self.missing)]
        )
        body = [[one, *(self._means(name, one) for name in names)] for one in rankers]
        return f"{' / '.join(self.metrics)}, in percent.\n\n{_grid(['ranker', *names], body)}"

    def markdown(self) -> str:
        """Return a Markdown table a data set: percent, with 95 % intervals over questions."""
        return "\n".join(self._section(survey) for survey in self.surveys)

    def csv(self) -> str:
        """Return a line a data set, ranker and metric; numbers are fractions, not percent."""
        head = (
            "dataset", "questions", "ceiling", "ranker", "repeats", "metric", "mean", "low",
            "high", "std", "seconds", "calls", "tokens", "failed", "note",
        )  # fmt: skip
        surveys = {survey.name: survey for survey in self.surveys}
        lines: list[Sequence[object]] = []
        for row in self.rows:
            survey = surveys[row.dataset]
            about = (row.dataset, survey.n_questions, survey.ceiling, row.ranker, row.n_repeats)
            costs = (row.seconds, row.calls, row.tokens, row.failed, row.problem)
            for metric, one in zip(self.metrics, row.estimates, strict=True):
                lines.append((*about, metric, *one, *costs))
        for gone in self.missing:
            survey = surveys[gone.dataset]
            about = (gone.dataset, survey.n_questions, survey.ceiling, gone.ranker, 0)
            lines.append((*about, *[""] * 9, _not_available(gone)))
        return _csv(head, lines)

    def differences_csv(self) -> str:
        """Return a line a difference; numbers are fractions, not percent."""
        return _csv(Difference._fields, self.differences)

    def _means(self, dataset: str, ranker: str) -> str:
        if any((one.dataset, one.ranker) == (dataset, ranker) for one in self.missing):
            return "not available"
        return " / ".join(_percent(one.mean) for one in self.of(dataset, ranker).estimates)

    def _section(self, survey: Survey) -> str:
        head = ["ranker", *self.metrics, "seconds a question"]
        body = [
            [row.ranker, *map(_estimate, row.estimates), f"{row.seconds:.2g}"]
            for row in self.rows
            if row.dataset == survey.name
        ]
        gone = [one for one in self.missing if one.dataset == survey.name]
        body += [[one.ranker, _shortened(one), *[""] * len(self.metrics)] for one in gone]
        return (
            f"### {survey.name}\n\n"
            f"{survey.n_questions} questions, {survey.n_candidates:.1f} candidates each "
            f"({survey.n_distractors:.1f} labelled distractors); golden among them for "
            f"{_percent(survey.ceiling)} %. First stage: {survey.first_stage}.\n\n"
            f"{_grid(head, body)}{self._failures(survey)}"
        )

    def _failures(self, survey: Survey) -> str:
        """Say in a sentence a ranker what could not be judged."""
        notes = [
            f"{row.ranker}: {_percent(row.failed / survey.n_candidates)} % of the passages could "
            f"not be judged and keep their first-stage order among themselves ({row.problem}).\n"
            for row in self.rows
            if row.dataset == survey.name and row.failed
        ]
        return "".join(f"\n{note}" for note in notes)


def _grid(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    ruler = ["---", *("---:" for _ in head[1:])]
    rows = [[cell.replace("|", "\\|") for cell in cells] for cells in (head, ruler, *body)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _not_available(one: Missing) -> str:
    return f"not available: {one.reason}"


def _shortened(one: Missing) -> str:
    text = _not_available(one)
    return text if len(text) <= _WIDEST_CELL else f"{text[:_WIDEST_CELL].rstrip()} …"


def _estimate(one: Estimate) -> str:
    if isnan(one.mean):
        return "–"
    spread = f" ± {_percent(one.std)}" if one.std else ""
    return f"{_percent(one.mean)}{spread} [{_percent(one.low)}, {_percent(one.high)}]"


def _percent(share: float) -> str:
    return "–" if isnan(share) else f"{100 * share:.1f}"


def _csv(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_cell(one) for one in line] for line in lines)
    return text.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, float):
        return value
    return "" if isnan(value) else f"{value:.6g}"


class Change(NamedTuple):
    """One metric of one ranker on two data sets.

    `relative` is (after - before) / before, e.g. -0.5 for half as much; not a number where before
    is 0.
    """

    ranker: str
    metric: str
    before: float
    after: float
    relative: float


def changes(table: Table, before: str, after: str) -> list[Change]:
    """Return a change a ranker and metric, in the order of the table."""
    names = [survey.name for survey in table.surveys]
    for name in (before, after):
        if name not in names:
            raise MetricError(f"data set must be one of {names}, got {name!r}")
    return [
        Change(row.ranker, metric, old.mean, new.mean, _relative(old.mean, new.mean))
        for row in table.rows
        if row.dataset == before
        for metric, old, new in zip(
            table.metrics,
            row.estimates,
            table.of(after, row.ranker).estimates,
            strict=True,
        )
    ]


def _relative(before: float, after: float) -> float:
    return (after - before) / before if before else float("nan")
