"""What a run may cost, told before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from deepera_graph.budget import Budget
from deepera_graph.result import RerankResult
from deepera_graph.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The most that questions may cost if every reply is usable; second tries are not counted.

    With `enough` among the settings fewer passages may be asked about: all of them are counted.

    Attributes:
        n_questions: Questions counted, >= 0.
        n_passages: Their passages together, >= 0.
        usage: Calls and tokens a stage, for every passage that may be kept kept. A token is taken
            for 4 characters of prompt, and a verdict or a summary in a reply for 60 tokens.
        tokens_known: Whether all tokens are counted; the roles of one's own count calls alone.
        cost: Money, in the currency of the budget's prices; None without both prices.
    """

    n_questions: int
    n_passages: int
    usage: Mapping[str, Usage]
    tokens_known: bool
    cost: float | None

    @classmethod
    def of(
        cls, results: Sequence[RerankResult], budget: Budget | None, *, tokens_known: bool
    ) -> Self:
        """Add up what counting runs used; *budget* has the prices."""
        usage: dict[str, Usage] = {}
        for result in results:
            for stage, used in result.usage.items():
                usage[stage] = usage.get(stage, Usage()) + used
        priced = budget is not None and None not in (budget.input_price, budget.output_price)
        return cls(
            n_questions=len(results),
            n_passages=sum(len(result.all_passages) for result in results),
            usage=usage,
            tokens_known=tokens_known,
            cost=budget.cost(sum(usage.values(), Usage())) if budget and priced else None,
        )

    @property
    def total_usage(self) -> Usage:
        """Calls and tokens of all stages."""
        return sum(self.usage.values(), Usage())
