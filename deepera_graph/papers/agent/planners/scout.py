"""In the style of PaperScout, by a script: a round of queries, a round of citations, and again.

With a chat model the planner is `deepera_graph.papers.agent.roles.LlmScout`, which chooses.

Source:
    PaperScout (pty12345/PaperScout): ``search(query)`` and ``expand(id)``, at most 5 calls at once
    and 5 rounds; no call twice; the history is shown, and of the pool ten papers and ten more;
    papers below .01 are dropped. No reinforcement learning here.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.papers.agent.planning import is_kept
from deepera_graph.papers.agent.state import Action, PlanTask, SearchPlan
from deepera_graph.usage import Usage

PARALLEL, PER_CALL = 5, 20
LEAST = 0.01  # a paper that scores below it is dropped


class ScriptedScout(Runnable[PlanTask, SearchPlan]):
    """Searches in odd rounds, expands the best that were not expanded in even ones."""

    def __init__(self, queries: Sequence[str]) -> None:
        self._queries = list(queries)

    def invoke(
        self, input: PlanTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> SearchPlan:
        """Plan the next round."""
        done = {(one["tool"], one["text"]) for one in input["history"]}
        rest = [one for one in self._queries if ("search", one) not in done][:PARALLEL]
        actions = [Action(tool="search", text=one, k=PER_CALL) for one in rest]
        if input["step"] % 2 == 0 or not rest:
            best = [one["id"] for one in input["pool"] if is_kept(one, input)]
            actions = [
                Action(tool="citations", text=one, k=PER_CALL)
                for one in best
                if ("citations", one) not in done
            ][:PARALLEL] or actions
        return SearchPlan(usage=Usage(), actions=actions, is_complete=not actions)
