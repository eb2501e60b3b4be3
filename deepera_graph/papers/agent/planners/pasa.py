"""In the style of PaSa: queries of the question, then the citations of what is kept, in layers.

Source:
    He and others (2025), PaSa: an LLM agent for comprehensive academic paper search; the code at
    bytedance/pasa: at most 5 queries of 10 papers, 2 layers, 20 papers of each. It expands by the
    references that the text of a section names; here those of the base stand in.
"""

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.papers.agent.planning import is_kept
from deepera_graph.papers.agent.state import Action, PlanTask, SearchPlan
from deepera_graph.usage import Usage

N_QUERIES, PER_QUERY = 5, 10
LAYERS, PER_LAYER = 2, 20


class PasaPlanner(Runnable[PlanTask, SearchPlan]):
    """Queries first; then layer by layer the references of all papers that fit: above .5."""

    def __init__(self, writer: Runnable[PlanTask, SearchPlan]) -> None:
        self._writer = writer

    def invoke(
        self, input: PlanTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> SearchPlan:
        """Plan the next round."""
        return expand(input) if input["history"] else trim(self._writer.invoke(input, config))

    async def ainvoke(
        self, input: PlanTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> SearchPlan:
        """Plan the next round in the running loop."""
        if input["history"]:
            return expand(input)
        return trim(await self._writer.ainvoke(input, config))


def trim(plan: SearchPlan, k: int = PER_QUERY) -> SearchPlan:
    """Return a plan with the searches of the first round alone."""
    kept = [one for one in plan.actions if one.tool == "search"][:N_QUERIES]
    actions = [one.model_copy(update={"k": k}) for one in kept]
    return plan.model_copy(update={"actions": actions, "is_complete": not actions})


def expand(task: PlanTask) -> SearchPlan:
    """Expand the papers of the last layer that are kept, best first."""
    if task["step"] > 1 + LAYERS:
        return SearchPlan(
            usage=Usage(), actions=[], is_complete=True, thought="all layers are done"
        )
    done = {one["text"] for one in task["history"] if one["tool"] == "references"}
    actions = [
        Action(tool="references", text=one["id"], k=PER_LAYER)
        for one in task["pool"]
        if is_kept(one, task) and one["id"] not in done
    ][:PER_LAYER]
    return SearchPlan(usage=Usage(), actions=actions, is_complete=not actions)
