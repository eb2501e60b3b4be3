"""The common shape of all experiments: what one is, and what it gives back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from matplotlib.figure import Figure

from deepera_graph.bench.experiments.lab import Lab
from deepera_graph.bench.table import Estimate

Unit = Literal["text", "percent", "number", "count", "seconds"]
Cell = str | int | float | Estimate | None


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a grid.

    `unit` says what its numbers are: ``percent`` is a fraction that people see times 100; ``count``
    is seen as a whole number if it is one.
    """

    name: str
    unit: Unit = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table of named columns.

    Attributes:
        name: Names its files: lower case and hyphens.
        title: For people.
        columns: At least one.
        rows: Cells in the order of the columns; None where there is nothing to measure.
        note: How to read it, in a sentence or two.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


class Drawing(Protocol):
    """A figure that draws itself; the same numbers give the same figure."""

    @property
    def name(self) -> str:
        """Names its files: lower case and hyphens."""

    @property
    def title(self) -> str:
        """What it shows, for people."""

    def draw(self) -> Figure:
        """Draw it anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentResult:
    """What an experiment found.

    Attributes:
        grids: Tables, the main one first.
        drawings: Figures.
        findings: What was checked on the way, a sentence each.
        facts: What it depended on besides rankers, data and settings; for the manifest.
    """

    grids: tuple[Grid, ...]
    drawings: tuple[Drawing, ...] = ()
    findings: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment.

    Attributes:
        name: What the command line calls it.
        title: Its name for people.
        measures: What it measures, in a sentence or two.
        run: Measures it.
        asks_again: Whether it must not be answered from a cache.
    """

    name: str
    title: str
    measures: str
    run: Callable[[Lab], ExperimentResult]
    asks_again: bool = False
