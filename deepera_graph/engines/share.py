"""Which part of a run's limits a worker has: an equal one, whole numbers to within one."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from deepera_graph.budget import Budget, Meter
from deepera_graph.errors import SettingsError
from deepera_graph.usage import Usage

_LIMITS = "limits"
_COUNTS = ("calls_at_once", "max_calls", "max_tokens")
_RATES = ("requests_per_minute", "tokens_per_minute", "max_cost")
_SHORTEST = 1e-3  # seconds: a budget's time must be > 0, even if it is up


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The part of one worker.

    What a limit leaves over when it is divided goes to the first workers, so that all parts
    together are the whole. What one worker does not use, no other one gets.

    Attributes:
        n_workers: How many there are, >= 1.
        place: Which of them this is, from 0.
        spent: What workers at this place that were lost have spent of it.
        seconds: How long the run has lasted, >= 0 seconds.
    """

    n_workers: int = 1
    place: int = 0
    spent: Usage = field(default_factory=Usage)
    seconds: float = 0.0

    def count(self, name: str, whole: int) -> int:
        """Return the part of a number of things, >= 1.

        Raises:
            SettingsError: There are fewer things than workers.
        """
        if whole < self.n_workers:
            raise SettingsError(
                f"{name} of {whole} cannot be divided among {self.n_workers} workers"
            )
        return whole // self.n_workers + (self.place < whole % self.n_workers)

    def limits(self, limits: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of limits by name: counts, rates and money are divided, the rest is not.

        Raises:
            SettingsError: A count is below the number of workers.
        """
        return {name: self._part(name, value) for name, value in limits.items()}

    def spec(self, spec: Any) -> Any:
        """Return the spec of a backend with the part of every model's limits in it."""
        if not isinstance(spec, Mapping):
            return spec
        return {
            name: self.limits(part) if name == _LIMITS else self.spec(part)
            for name, part in spec.items()
        }

    def budget(self, budget: Budget | None) -> Budget | None:
        """Return the part of a budget; its time runs from the beginning of the run."""
        if budget is None:
            return None
        part = self.limits(asdict(budget))
        if budget.max_seconds is not None:
            part["max_seconds"] = max(_SHORTEST, budget.max_seconds - self.seconds)
        return Budget(**part)

    def meter(self, budget: Budget | None) -> Meter:
        """Return what counts against the part of a budget, with what is spent already."""
        meter = Meter(self.budget(budget))
        meter.add(self.spent)
        return meter

    def _part(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if name in _COUNTS:
            return self.count(name, value)
        return value / self.n_workers if name in _RATES else value
