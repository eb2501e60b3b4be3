"""Steps that have passages judged, written once for both ways to wait: they yield what they ask."""

from collections.abc import Callable, Generator, Iterable
from typing import Any, NamedTuple, TypeVar, Unpack

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from deepera_graph.agents.twin import Work, ado, call, do
from deepera_graph.errors import SettingsError
from deepera_graph.passages import PassageLike
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.settings import SettingsKwargs

DoneT = TypeVar("DoneT")
StateT = TypeVar("StateT")


class Asked(NamedTuple):
    """Passages to judge, for a question, by whom."""

    reranker: EvidenceReranker
    question: str
    passages: Iterable[PassageLike]


Steps = Generator[Asked, RerankResult, DoneT]  # is sent what comes of what it yields


def choose_reranker(
    given: EvidenceReranker | None, **settings: Unpack[SettingsKwargs]
) -> EvidenceReranker:
    """Return who judges: the one that is given, or the local judge with these settings.

    Raises:
        SettingsError: Something else is given, such as a name.
    """
    if given is None:
        return EvidenceReranker("local", **settings)
    if isinstance(given, EvidenceReranker):
        return given
    raise SettingsError(
        f"reranker must be an EvidenceReranker, e.g. EvidenceReranker('rules'), got {given!r:.80}"
    )


def follow_steps(steps: Steps[DoneT], config: RunnableConfig | None = None) -> Work[DoneT]:
    """Return the work of having everything judged that steps ask, one after the other."""
    try:
        asked = next(steps)
        while True:
            judge = asked.reranker
            found = yield call(judge.rerank, judge.arerank, *asked[1:], config=config)
            asked = steps.send(found)
    except StopIteration as end:
        done: DoneT = end.value
        return done


def steps_node(
    begin: Callable[[StateT], Steps[dict[str, Any]]],
) -> Runnable[StateT, dict[str, Any]]:
    """Return a node of a graph that runs steps."""

    def run(state: StateT, config: RunnableConfig) -> dict[str, Any]:
        return do(follow_steps(begin(state), config))

    async def arun(state: StateT, config: RunnableConfig) -> dict[str, Any]:
        return await ado(follow_steps(begin(state), config))

    return RunnableLambda(run, afunc=arun)
