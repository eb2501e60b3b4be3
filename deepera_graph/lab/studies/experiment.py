"""Any systems on any questions by any measures: what each reaches, and how far they differ.

Source: pyterrier's ``pt.Experiment(systems, topics, qrels, measures, baseline=...)``, whose systems
are things that search or results that were written before, alike.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple, Self, TypeVar

from deepera_graph.calibration.statistics import (
    Interval,
    Values,
    bootstraps,
    paired_bootstraps,
    permutation_tests,
)
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.bench.figures import Drawing
from deepera_graph.lab.tables import Cell, Column, Grid, MetricEstimate
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.text.plain import read_lists


class Failures(NamedTuple):
    """What could not be judged of what a ranker was given, or was not answered."""

    data: str
    who: str
    what: str
    share: float  # in [0, 1]
    problem: str  # why the last of them failed


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """What a study found; `facts` are what it depends on besides rankers, data and settings."""

    grids: tuple[Grid, ...]
    drawings: tuple[Drawing, ...] = ()
    findings: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    failures: tuple[Failures, ...] = ()  # besides those of rankers


QuestionT = TypeVar("QuestionT")
FoundT = TypeVar("FoundT")


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """How figures get their intervals: by resampled questions."""

    n_resamples: int = 10_000  # of the bootstrap and of tests, >= 1
    seed: int = 0  # of both

    def __post_init__(self) -> None:
        check_at_least("n_resamples", self.n_resamples, 1)

    @property
    def how(self) -> dict[str, int]:
        """Both, as the functions of `deepera_graph.calibration.statistics` take them."""
        return {"n_resamples": self.n_resamples, "seed": self.seed}

    def estimate(self, columns: Sequence[Values]) -> list[MetricEstimate]:
        """Return mean and 95 % interval of columns over the same questions."""
        return [*map(as_estimate, bootstraps(columns, **self.how))] if columns else []

    def differences(self, pairs: Sequence[tuple[Values, Values]]) -> list[MetricEstimate]:
        """Return the first minus the second of each pair, with intervals."""
        return [*map(as_estimate, paired_bootstraps(pairs, **self.how))]


def as_estimate(one: Interval) -> MetricEstimate:
    """Return an interval of a single run."""
    return MetricEstimate(*one, 0.0)


@dataclass(frozen=True)
class About:
    """What a study is called, and what it measures in a sentence or two."""

    name: str  # names its files
    title: str
    measures: str

    @classmethod
    def named(cls, name: str, **more: Any) -> Self:
        """Return what ``studies.toml`` says of one of ours."""
        return cls(name, **_OURS[name], **more)


_OURS = read_lists(__file__, "studies.toml")


def check_baseline(baseline: str, systems: Mapping[str, Any]) -> str:
    """Return the system that others are compared with: the first if none is named."""
    chosen = baseline or next(iter(systems))
    if chosen not in systems:
        raise SettingsError(f"baseline must be one of {', '.join(systems)}, got {chosen!r}")
    return chosen


def compare_columns(
    columns: Mapping[str, Mapping[str, Values]], baseline: str, resampling: Resampling
) -> Grid:
    """Return the table of what systems have more or less than the baseline on equal questions."""
    names = [(system, what) for system in columns if system != baseline for what in columns[system]]
    pairs = [(columns[system][what], columns[baseline][what]) for system, what in names]
    tests = permutation_tests(pairs, **resampling.how)
    found = zip(names, resampling.differences(pairs), tests, strict=True)
    return Grid(
        name="differences",
        title=f"Minus {baseline}, on the same queries",
        columns=(
            Column("system"),
            Column("measure"),
            Column("difference", "percent"),
            Column("p", "number"),
        ),
        rows=tuple((*name, one, p) for name, one, p in found),
        note="Intervals by a paired bootstrap, p of a permutation test, two-sided.",
    )


def experiment(
    systems: Mapping[str, Callable[[QuestionT], FoundT] | Mapping[str, FoundT]],
    questions: Mapping[str, QuestionT],
    measures: Mapping[str, Callable[[QuestionT, FoundT], float]],
    *,
    baseline: str = "",
    resampling: Resampling = Resampling(),
) -> StudyResult:
    """Compare systems on questions; `write_study` writes what comes out into a folder.

    Args:
        systems: By name; each is asked one question after the other, or is a mapping of what was
            found before, by the id of the question.
        questions: By id; at least one.
        measures: By name; each says what is found for a question is worth, as a share in [0, 1].
        baseline: The system that others are compared with; the first if empty.
        resampling: How intervals and p-values are found.

    Raises:
        InputError: There is no question, or something found before lacks one.
        SettingsError: There is no system or measure, or no system of the baseline's name.
    """
    if not questions:
        raise InputError("no questions were given to measure with")
    if not systems or not measures:
        raise SettingsError("an experiment needs at least one system and one measure")
    baseline = check_baseline(baseline, systems)
    columns: dict[str, dict[str, Values]] = {}
    rows: list[tuple[Cell, ...]] = []
    for name, system in systems.items():
        started = perf_counter()
        found = _find(name, system, questions)
        seconds = (perf_counter() - started) / len(questions) if callable(system) else None
        columns[name] = {
            what: Values.of([measure(one, found[key]) for key, one in questions.items()])
            for what, measure in measures.items()
        }
        rows.append((name, *resampling.estimate([*columns[name].values()]), seconds))
    table = Grid(
        name="systems",
        title=f"Mean of {len(questions)} questions",
        columns=(
            Column("system"),
            *Column.several("percent", *measures),
            Column("a question", "seconds"),
        ),
        rows=tuple(rows),
        note="Brackets hold 95 % intervals over questions.",
    )
    more = (compare_columns(columns, baseline, resampling),) if len(systems) > 1 else ()
    return StudyResult(grids=(table, *more))


def _find(
    name: str,
    system: Callable[[QuestionT], FoundT] | Mapping[str, FoundT],
    questions: Mapping[str, QuestionT],
) -> Mapping[str, FoundT]:
    if not isinstance(system, Mapping):
        return {key: system(one) for key, one in questions.items()}
    lacking = [key for key in questions if key not in system]
    if lacking:
        some = ", ".join(map(repr, lacking[:3]))
        raise InputError(
            f"{name!r} has nothing for {len(lacking)} of {len(questions)} questions, e.g. {some}"
        )
    return system
