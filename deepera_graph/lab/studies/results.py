"""What a study found: tables, figures, findings, and what failed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from matplotlib.figure import Figure

from deepera_graph.lab.tables import Grid


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
