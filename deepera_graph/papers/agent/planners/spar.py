"""In the style of SPAR: queries, the references of what fits, and queries that grow out of it.

Source:
    Shi and others (2025), SPAR: scholar paper retrieval with LLM-based agents; the code at
    xiaofengShi/SPAR: intent, fusion of queries, RefChain (references of relevant papers), evolution
    of queries, rerank; depth 2, relevance at least .5. Its stop "enough relevant" is computed there
    and not used; here it is neither.
"""

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.papers.agent.planners.pasa import N_QUERIES, is_kept, trim
from deepera_graph.papers.agent.state import Action, PlanTask, SearchPlan
from deepera_graph.usage import Usage

DEPTH, PER_QUERY, N_SEEDS, PER_SEED = 2, 10, 5, 20
THRESHOLD = 0.5


class SparPlanner(Runnable[PlanTask, SearchPlan]):
    """Rounds of queries, the question itself among the first; after each the RefChain."""

    def __init__(self, writer: Runnable[PlanTask, SearchPlan]) -> None:
        self._writer = writer

    def invoke(
        self, input: PlanTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> SearchPlan:
        """Plan the next round."""
        chained = chain(input)
        return chained or with_question(self._writer.invoke(input, config), input)

    async def ainvoke(
        self, input: PlanTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> SearchPlan:
        """Plan the next round in the running loop."""
        chained = chain(input)
        return chained or with_question(await self._writer.ainvoke(input, config), input)


def chain(task: PlanTask) -> SearchPlan | None:
    """Return the RefChain in even rounds, and the end when all depths are done."""
    if task["step"] > 2 * DEPTH:
        return SearchPlan(
            usage=Usage(), actions=[], is_complete=True, thought="all depths are done"
        )
    if task["step"] % 2:
        return None
    done = {one["text"] for one in task["history"] if one["tool"] == "references"}
    actions = [
        Action(tool="references", text=one["id"], k=PER_SEED)
        for one in task["pool"]
        if is_kept(one["score"], one["verdict"], THRESHOLD) and one["id"] not in done
    ][:N_SEEDS]
    return SearchPlan(usage=Usage(), actions=actions) if actions else None


def with_question(plan: SearchPlan, task: PlanTask) -> SearchPlan:
    """Return the queries of a plan, in the first round with the topic before them."""
    trimmed = trim(plan, PER_QUERY)
    if task["history"]:
        return trimmed
    own = Action(tool="search", text=task["limits"]["topic"], k=PER_QUERY)
    rest = [one for one in trimmed.actions if one.text != own.text][: N_QUERIES - 1]
    return trimmed.model_copy(update={"actions": [own, *rest], "is_complete": False})
