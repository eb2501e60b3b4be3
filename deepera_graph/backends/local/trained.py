"""The roles of the trained judge: a surveyor that reads all passages, a judge that reads one."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.backends.counting import Unasked
from deepera_graph.backends.local.weights import PoolModel, Weights
from deepera_graph.errors import CallError, DeepEraError
from deepera_graph.roles import PassageTask, PassageText, ReadsAhead, SurveyTask
from deepera_graph.schema import Judgement, Survey
from deepera_graph.usage import Usage

_FREE = Usage()


class TrainedSurveyor(Runnable[SurveyTask, Survey]):
    """Reads all passages of a question together, on this machine."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    def counting(self) -> Unasked:
        """Return a surveyor that costs as much, nothing, and does nothing."""
        return Unasked(Survey(notes=[]), usage=_FREE)

    def invoke(
        self, input: SurveyTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Survey:
        """Survey the passages.

        Raises:
            CallError: The weights cannot be loaded.
        """
        return Survey(notes=_loaded(self._weights).survey(input), usage=_FREE)

    def read_ahead(self, passages: Sequence[PassageText]) -> None:
        """Begin to read passages while the intent is not known.

        A process that ends waits for it: one that ends while onnxruntime loads is aborted.
        """
        Thread(target=self._begin, args=(list(passages),), daemon=False).start()

    def _begin(self, passages: Sequence[PassageText]) -> None:
        with suppress(CallError, RuntimeError):  # the survey says so; or the process is ending
            model = _loaded(self._weights)
            if isinstance(model, ReadsAhead):
                model.read_ahead(passages)

    async def ainvoke(
        self, input: SurveyTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Survey:
        """Survey the passages in a thread."""
        return await asyncio.to_thread(self.invoke, input)


class TrainedJudge(Runnable[PassageTask, Judgement]):
    """Scores a passage on this machine: how probable it is that it is evidence."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    def counting(self) -> Unasked:
        """Return a judge that costs as much, nothing, and does nothing."""
        return Unasked(Judgement(score=1.0), usage=_FREE)

    def invoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Judgement:
        """Judge the passage.

        Raises:
            CallError: The weights cannot be loaded.
        """
        judgement = _loaded(self._weights).judge(input)
        return judgement.model_copy(update={"usage": _FREE})

    async def ainvoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Judgement:
        """Judge the passage in a thread."""
        return await asyncio.to_thread(self.invoke, input)


def _loaded(weights: Weights) -> PoolModel:
    """Return the model; without it, no passage can be judged."""
    try:
        return weights.model()
    except (DeepEraError, ImportError, OSError) as error:
        raise CallError(f"the local judge cannot be loaded: {error}", unusable=True) from error
