"""The cross-encoder as relevance judge: one passage a call, many calls a batch."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.backends.encoder.batcher import Batcher
from deepera_graph.backends.encoder.packages import brief
from deepera_graph.backends.encoder.pairs import Pair, PairModel, Reading, pair_of, titled
from deepera_graph.backends.encoder.score import Scoring
from deepera_graph.errors import CallError, RoleError
from deepera_graph.roles import PassageTask
from deepera_graph.schema import Judgement
from deepera_graph.text.sentences import split_sentences
from deepera_graph.usage import Usage

Rebuild = tuple[Callable[..., Any], tuple[Any, ...]]


class EncoderJudge(Runnable[PassageTask, Judgement]):
    """Scores a passage by what a cross-encoder makes of question and passage.

    Args:
        model: The cross-encoder.
        scoring: How its numbers become scores.
        batch_size: Most pairs a call of the model, >= 1.
        quote: Whether to quote the sentence that the model puts first, at one more pair a sentence.
        rebuild: How to make this judge again where it is unpickled; None if that is not possible.
    """

    def __init__(
        self,
        model: PairModel,
        scoring: Scoring,
        *,
        batch_size: int,
        quote: bool = False,
        rebuild: Rebuild | None = None,
    ) -> None:
        self._scoring, self._quote, self._rebuild = scoring, quote, rebuild
        self._batcher: Batcher[Pair, Reading] = Batcher(
            model.read, size=_length, batch_size=batch_size, renew=model.renew
        )

    def __reduce__(self) -> Any:
        if self._rebuild is None:
            raise TypeError(f"cross-encoder {self._scoring.name} is a live object: not pickled")
        return self._rebuild

    def counting(self) -> "CountedEncoder":
        """Return a judge that costs nothing and says what this one would cost."""
        return CountedEncoder(self._scoring.usage)

    def invoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Judgement:
        """Judge one passage; calls from other threads share its batch.

        Raises:
            AnswerError: The model gave no usable number.
            CallError: The model failed on this pair alone.
        """
        if not input["text"].strip():
            return _blank()
        sentences = self._sentences(input)
        futures = [self._batcher.submit(pair) for pair in self._pairs(input, sentences)]
        try:
            readings = [future.result() for future in futures]
        except Exception as error:  # the boundary to foreign code
            raise self._told(error) from error
        finally:
            _give_up(futures)
        return self._judgement(readings, sentences)

    async def ainvoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Judgement:
        """Judge one passage in the running loop."""
        if not input["text"].strip():
            return _blank()
        sentences = self._sentences(input)
        futures = [self._batcher.submit(pair) for pair in self._pairs(input, sentences)]
        try:
            readings = await asyncio.gather(*map(asyncio.wrap_future, futures))
        except Exception as error:  # the boundary to foreign code
            raise self._told(error) from error
        finally:
            _give_up(futures)
        return self._judgement(readings, sentences)

    def _sentences(self, task: PassageTask) -> list[str]:
        return [one.text for one in split_sentences(task["text"])] if self._quote else []

    def _pairs(self, task: PassageTask, sentences: Sequence[str]) -> list[Pair]:
        """Return the passage's pair, then that of each sentence; a lone sentence needs none."""
        alone = [] if len(sentences) < 2 else sentences
        title = task["title"]
        return [pair_of(task), *((task["question"], titled(title, one)) for one in alone)]

    def _judgement(self, readings: Sequence[Reading], sentences: Sequence[str]) -> Judgement:
        passage, *others = readings
        best = max(range(len(others)), key=lambda place: others[place].value, default=0)
        return self._scoring.judgement(passage, quote=sentences[best] if sentences else "")

    def _told(self, error: Exception) -> RoleError:
        if isinstance(error, RoleError):
            return error
        return CallError(
            f"cross-encoder {self._scoring.name} failed: {brief(error)}", usage=self._scoring.usage
        )


class CountedEncoder(Runnable[PassageTask, Judgement]):
    """Stands in for a cross-encoder where only costs are counted."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage

    def counting(self) -> "CountedEncoder":
        """Return this judge itself."""
        return self

    def invoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Judgement:
        """Return the judgement that makes the most calls follow."""
        return Judgement(score=1.0, usage=self._usage)

    async def ainvoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Judgement:
        """Do what `invoke` does, in the running loop."""
        return self.invoke(input)


def _length(pair: Pair) -> int:
    return len(pair[0]) + len(pair[1])


def _blank() -> Judgement:
    return Judgement(score=0.0, reason="the passage has no text", usage=Usage())


def _give_up(futures: "Sequence[Future[Reading]]") -> None:
    for future in futures:
        future.cancel()
