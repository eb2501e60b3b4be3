"""One search for the question as it is: the baseline (AG-1)."""

from deepera_graph.papers.agent.state import Action, PlanTask, SearchPlan
from deepera_graph.papers.results import SearchMode
from deepera_graph.usage import Usage

DEPTH = 100


def plan_once(task: PlanTask, mode: SearchMode) -> SearchPlan:
    """Search once, for the topic of the question: what it excludes is not searched for."""
    if task["history"]:
        return SearchPlan(usage=Usage(), actions=[], is_complete=True)
    query = task["limits"]["topic"]
    return SearchPlan(
        usage=Usage(), actions=[Action(tool="search", text=query, k=DEPTH, mode=mode)]
    )
