"""Retrieval for questions of several hops: methods compared at one budget of passages read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from time import perf_counter

import numpy as np

from deepera_graph.calibration.statistics import Values
from deepera_graph.errors import SettingsError
from deepera_graph.lab.studies.experiment import About, Resampling, StudyResult
from deepera_graph.lab.studies.multihop.methods import (
    BUDGET,
    MEANINGS,
    METHODS,
    OF_STEPS,
    HopData,
    HopSearch,
)
from deepera_graph.lab.tables import Column, Grid, Row
from deepera_graph.ranges import check_at_least

CUTOFFS = (5, 10, 20, 50)
_COMPARED = 10
MULTIHOP = About.named("multihop")
_Lists = Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class HopBench(Resampling):
    """What is compared, and how.

    Raises:
        SettingsError: A method is unknown, or a number out of range.
    """

    methods: tuple[str, ...] = ()  # all that the data has steps for if empty
    budget: int = BUDGET  # most passages that are read for a question, >= 1
    baseline: str = "rrf"  # method whose recall at 10 the others are compared with

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("budget", self.budget, 1)
        for name in (*self.methods, self.baseline):
            if name not in METHODS:
                raise SettingsError(f"methods are {', '.join(METHODS)}, got {name!r}")

    @property
    def cutoffs(self) -> list[int]:
        """Ranks at which recall is counted."""
        return [one for one in CUTOFFS if one <= max(self.budget, CUTOFFS[0])]

    def measure(
        self,
        data: HopData,
        search: HopSearch,
        *,
        on_progress: Callable[[int], None] = lambda n_done: None,
    ) -> list[Row]:
        """Return the rows of a data set for `study`.

        Raises:
            SettingsError: A method that was asked for takes steps, and the data has none.
        """
        runs: dict[str, tuple[_Lists, float]] = {}
        has_steps = all(question.steps for question in data.questions)
        for name in self.methods:
            if name in OF_STEPS and not has_steps:
                raise SettingsError(f"{name} needs sub-questions, and {data.name} has none")
        every = [name for name in METHODS if has_steps or name not in OF_STEPS]
        for name in [*dict.fromkeys(self.methods or every)]:
            search.forget_queries()
            started = perf_counter()
            lists = [METHODS[name](search, question, self.budget) for question in data.questions]
            runs[name] = lists, perf_counter() - started
            on_progress(len(runs))
        base = runs[self.baseline][0] if self.baseline in runs else None
        return [
            (data.name, name, *self._cells(data, lists, base), seconds / len(data.questions))
            for name, (lists, seconds) in runs.items()
        ]

    def _cells(self, data: HopData, lists: _Lists, base: _Lists | None) -> Row:
        recalls = [_recalls(data, lists, k) for k in self.cutoffs]
        means = self.estimate([*recalls, *(Values.of(one.values == 1) for one in recalls)])
        minus = None
        if base is not None and base is not lists:
            pair = _recalls(data, lists, _COMPARED), _recalls(data, base, _COMPARED)
            minus = self.differences([pair])[0]
        return *means, minus, float(np.mean([len(one) for one in lists]))

    def study(self, measured: Mapping[str, Sequence[Row]]) -> StudyResult:
        """Return the table of the rows of each data set."""
        rows = tuple(chain.from_iterable(measured.values()))
        grid = Grid(
            name="methods",
            title="Retrieval",
            columns=(
                *Column.several("text", "data", "method"),
                *Column.several("percent", *(f"recall@{k}" for k in self.cutoffs)),
                *Column.several("percent", *(f"all@{k}" for k in self.cutoffs)),
                Column(f"recall@{_COMPARED} minus {self.baseline}", "percent"),
                Column("read", "number"),
                Column("a question", "seconds"),
            ),
            rows=rows,
            note="Brackets hold 95 % intervals over questions; read is passages of a question.",
        )
        names = dict.fromkeys(str(row[1]) for row in rows)
        findings = [f"{name}: {MEANINGS[name]}" for name in names]
        if any(name in OF_STEPS for name in names):
            findings.append("Sub-questions are given with the right answers of those before them.")
        return StudyResult(grids=(grid,), findings=tuple(findings))


def _recalls(data: HopData, lists: _Lists, k: int) -> Values:
    """Return the share of the supporting passages among the first *k* of each question."""
    pairs = zip(data.questions, lists, strict=True)
    return Values.of(
        [len(one.supporting.intersection(names[:k])) / len(one.supporting) for one, names in pairs]
    )
