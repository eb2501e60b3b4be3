"""Retrieval for questions of several hops: methods compared at one budget of passages read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from deepera_graph.calibration.statistics import Interval, Values, bootstraps, paired_bootstraps
from deepera_graph.errors import SettingsError
from deepera_graph.lab.studies.experiment import Resampling
from deepera_graph.lab.studies.multihop.data import HopData
from deepera_graph.lab.studies.multihop.methods import BUDGET, METHODS, OF_STEPS, HopSearch, Method
from deepera_graph.settings import check_at_least

CUTOFFS = (5, 10, 20, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class HopRow:
    """One method on one data set.

    Attributes:
        recall: The share of supporting passages among the first k, by k, over questions.
        complete: The share of questions with all of them among the first k, by k.
        difference: Recall at 10 minus that of the baseline, on the same questions.
        passages: Passages read for a question; never more than the budget.
        seconds: Time a question takes, with the embedding of its queries.
    """

    dataset: str
    method: str
    n_questions: int
    recall: dict[int, Interval]
    complete: dict[int, Interval]
    difference: Interval | None
    passages: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class HopBench(Resampling):
    """What is compared, and how."""

    methods: tuple[str, ...] = ()  # all that the data has steps for if empty
    budget: int = BUDGET
    baseline: str = "rrf"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("budget", self.budget, 1)
        for name in (*self.methods, self.baseline):
            if name not in METHODS:
                raise SettingsError(f"methods are {', '.join(METHODS)}, got {name!r}")

    def measure(
        self,
        data: HopData,
        search: HopSearch,
        *,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[HopRow]:
        """Return a row a method.

        Raises:
            SettingsError: A method that was asked for takes steps, and the data has none.
        """
        runs: dict[str, _Run] = {}
        for name in self._choose(data):
            runs[name] = _Run(data, *_time(METHODS[name], data, search, self.budget))
            if on_progress is not None:
                on_progress(len(runs))
        base = runs.get(self.baseline)
        return [self._row(data, name, run, base) for name, run in runs.items()]

    def _choose(self, data: HopData) -> list[str]:
        has_steps = all(question.steps for question in data.questions)
        for name in self.methods:
            if name in OF_STEPS and not has_steps:
                raise SettingsError(f"{name} needs sub-questions, and {data.name} has none")
        every = [name for name in METHODS if has_steps or name not in OF_STEPS]
        return [*dict.fromkeys(self.methods or every)]

    def _row(self, data: HopData, name: str, run: "_Run", base: "_Run | None") -> HopRow:
        shown = [cutoff for cutoff in CUTOFFS if cutoff <= max(self.budget, CUTOFFS[0])]
        columns = [run.recall(k) for k in shown] + [run.complete(k) for k in shown]
        found = bootstraps(columns, **self.how)
        difference = None
        if base is not None and base is not run:
            difference = paired_bootstraps([(run.recall(10), base.recall(10))], **self.how)[0]
        return HopRow(
            dataset=data.name,
            method=name,
            n_questions=len(data.questions),
            recall=dict(zip(shown, found, strict=False)),
            complete=dict(zip(shown, found[len(shown) :], strict=True)),
            difference=difference,
            passages=float(np.mean([len(one) for one in run.lists])),
            seconds=run.seconds / len(data.questions),
        )


@dataclass(frozen=True)
class _Run:
    """What a method found for each question."""

    data: HopData
    lists: list[list[str]]
    seconds: float

    def recall(self, k: int) -> Values:
        return Values.of([found / needed for found, needed in self._count(k)])

    def complete(self, k: int) -> Values:
        return Values.of([float(found == needed) for found, needed in self._count(k)])

    def _count(self, k: int) -> Iterator[tuple[int, int]]:
        for question, names in zip(self.data.questions, self.lists, strict=True):
            needed = question.supporting
            yield len(needed.intersection(names[:k])), len(needed)


def _time(
    method: Method, data: HopData, search: HopSearch, budget: int
) -> tuple[list[list[str]], float]:
    search.forget_queries()
    started = perf_counter()
    lists = [method(search, question, budget) for question in data.questions]
    return lists, perf_counter() - started
