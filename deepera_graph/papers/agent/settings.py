"""What a caller can turn of a search for papers: how far it goes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from deepera_graph.settings import AgentSettings
from deepera_graph.settings.budget import Budget
from deepera_graph.settings.ranges import check_cosine, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperSearchSettings(AgentSettings):
    """How far a search goes.

    Source:
        Rounds: PaSa needs 4, SPAR 5.
    """

    max_steps: int = setting(6, "Most rounds.", metavar="N")
    max_actions: int = setting(
        40, "Most calls of the base: searches, references, citations.", metavar="N"
    )
    max_parallel: int = setting(
        20, "Most calls of the base that one round makes; the rest is noted."
    )
    max_papers: int = setting(
        1000, "Most papers looked at; what a call finds beyond them is counted.", metavar="N"
    )
    patience: int = setting(
        2, "Rounds without a new paper that is kept after which the search ends."
    )
    judged: int = setting(20, "Papers that one call of the selector is given.")
    max_judged: int = setting(
        100, "Most papers that the selector is given in a whole search, the best first."
    )
    max_concurrency: int = setting(8, "Most calls in flight.")
    screen: float | None = setting(
        None,
        "Least cosine, in [-1, 1], of title and abstract with the topic or with a query that was "
        "searched for, from which on a paper is worth a judgement; papers below it come last. "
        "None: 0.25 where judging costs calls of a model, and no screen elsewhere.",
        check=check_cosine,
    )
    budget: Budget | None = setting(None, "What the calls of a model may cost; None is no limit.")


class PaperSearchKwargs(TypedDict, total=False):
    """The settings as keyword arguments; see `PaperSearchSettings`."""

    max_steps: int
    max_actions: int
    max_parallel: int
    max_papers: int
    patience: int
    judged: int
    max_judged: int
    max_concurrency: int
    screen: float | None
    budget: Budget | Mapping[str, Any] | None
