"""In the style of SPAR: queries, the references of what fits, and queries that grow out of it.

Source:
    Shi and others (2025), SPAR: scholar paper retrieval with LLM-based agents; the code at
    xiaofengShi/SPAR: intent, fusion of queries, RefChain (references of relevant papers), evolution
    of queries out of single papers, rerank; depth 2, relevance at least .5, 2 papers that new
    queries grow out of. Its stop "enough relevant" is computed there and not used; here it is
    neither. Prompts are in our own words, `deepera_graph.papers.agent.roles`.
"""

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.papers.agent.planners.pasa import N_QUERIES, trim
from deepera_graph.papers.agent.planning import find_seeds
from deepera_graph.papers.agent.state import Action, PlanTask, SearchPlan
from deepera_graph.usage import Usage

DEPTH, PER_QUERY, N_SEEDS, PER_SEED = 2, 10, 5, 20
Writer = Runnable[PlanTask, SearchPlan]


class SparPlanner(Runnable[PlanTask, SearchPlan]):
    """Rounds of queries, the question itself among the first; after each the RefChain.

    Args:
        fuse: Writes the queries of the first round: the question in fewer words, and its parts.
        evolve: Writes those of later rounds, out of single papers that fit.
    """

    def __init__(self, fuse: Writer, evolve: Writer) -> None:
        self._fuse, self._evolve = fuse, evolve

    def invoke(
        self, input: PlanTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> SearchPlan:
        """Plan the next round."""
        chained = chain(input)
        return chained or with_question(self._writer(input).invoke(input, config), input)

    async def ainvoke(
        self, input: PlanTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> SearchPlan:
        """Plan the next round in the running loop."""
        chained = chain(input)
        if chained:
            return chained
        return with_question(await self._writer(input).ainvoke(input, config), input)

    def _writer(self, task: PlanTask) -> Writer:
        return self._evolve if task["history"] else self._fuse


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
        for one in find_seeds(task)
        if one["id"] not in done
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
