"""A limit on what a run may cost: at the limit no new call starts, and what is done is kept."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from threading import Lock
from time import monotonic
from typing import Any

from langchain_core.runnables import RunnableConfig

from deepera_graph.errors import BudgetError, SettingsError
from deepera_graph.usage import Usage

_KEY = "__deepera_meter"  # keys of this form stay out of checkpoints and traces
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run may cost; None is no limit. Calls in flight at the limit are finished.

    Attributes:
        max_calls: Most model calls, > 0; retries, hedges and repeated questions count.
        max_tokens: Most tokens, prompt and answer, > 0.
        max_seconds: Longest time from the start of the run, > 0 seconds.
        max_cost: Most money, > 0, in the currency of the prices; needs both prices.
        input_price: Price of a million prompt tokens, >= 0.
        output_price: Price of a million completion tokens, >= 0.

    Raises:
        SettingsError: A number is out of range, or there is a cost without prices.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    max_cost: float | None = None
    input_price: float | None = None
    output_price: float | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            is_price = one.name.endswith("price")
            if value is not None and not (value >= 0 if is_price else value > 0):
                raise SettingsError(f"{one.name} must be > 0, got {value!r}")
        if self.max_cost is not None and None in (self.input_price, self.output_price):
            raise SettingsError("max_cost needs input_price and output_price")

    def cost(self, usage: Usage) -> float:
        """Return what tokens cost, in the currency of the prices; without prices 0."""
        paid_in = usage.input_tokens * (self.input_price or 0)
        return (paid_in + usage.output_tokens * (self.output_price or 0)) / _MILLION

    def to_dict(self) -> dict[str, Any]:
        """Return the limits that are set, as plain data."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Meter:
    """Counts what one run, or several that share it, have cost; for threads and loops alike.

    Args:
        budget: The limit; none if None.
        clock: Seconds that only grow.
    """

    def __init__(self, budget: Budget | None, clock: Callable[[], float] = monotonic) -> None:
        self._budget = budget or Budget()
        self._clock, self._started = clock, clock()
        self._lock = Lock()
        self._in_flight = 0
        self.spent = Usage()

    def admit(self) -> None:
        """Let one more call start.

        Raises:
            BudgetError: A limit is reached; the message names it.
        """
        with self._lock:
            reached = self._reached()
            if reached:
                raise BudgetError(f"budget reached: {reached}")
            self._in_flight += 1

    def charge(self, usage: Usage) -> None:
        """Note that a call has ended, and what it cost."""
        with self._lock:
            self._in_flight -= 1
            self.spent += usage

    def _reached(self) -> str:
        budget, spent = self._budget, self.spent
        n_calls = spent.sent_calls + self._in_flight
        if budget.max_calls is not None and n_calls >= budget.max_calls:
            return f"{budget.max_calls} calls"
        if budget.max_tokens is not None and spent.tokens >= budget.max_tokens:
            return f"{budget.max_tokens} tokens"
        if budget.max_cost is not None and budget.cost(spent) >= budget.max_cost:
            return f"{budget.max_cost:g} of money"
        seconds = self._clock() - self._started
        if budget.max_seconds is not None and seconds >= budget.max_seconds:
            return f"{budget.max_seconds:g} seconds"
        return ""


def with_meter(config: RunnableConfig, meter: Meter) -> RunnableConfig:
    """Return a config that carries a meter to the role calls."""
    return {**config, "configurable": {**(config.get("configurable") or {}), _KEY: meter}}


def has_meter(config: RunnableConfig | None) -> bool:
    """Whether a config carries a meter."""
    return _KEY in ((config or {}).get("configurable") or {})


def meter_of(config: RunnableConfig | None) -> Meter:
    """Return the meter that a config carries; one without a limit if there is none."""
    found = ((config or {}).get("configurable") or {}).get(_KEY)
    return found if isinstance(found, Meter) else Meter(None)
