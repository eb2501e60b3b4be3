"""Roles that follow a script, and keep count of what they were asked."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph import Backend, Intent, Judgement, Summary, Usage
from deepera_graph.schema import Answer

Score = float | Exception | Judgement
FREE = Usage()


class Gauge:
    """How many are inside at once; for threads and event loops."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.inside = self.most = self.entered = 0

    @contextmanager
    def entry(self) -> Iterator[None]:
        with self._lock:
            self.inside += 1
            self.entered += 1
            self.most = max(self.most, self.inside)
        try:
            yield
        finally:
            with self._lock:
                self.inside -= 1


class ScriptedRole(Runnable[Any, Any]):
    """A role that plays a function; *seconds* long, sync and async alike."""

    def __init__(self, play: Callable[[Any], Any], seconds: float = 0, gauge: Gauge | None = None):
        self._play, self._seconds = play, seconds
        self.gauge = gauge or Gauge()
        self.tasks: list[Any] = []
        self.threads_used = self.loops_used = 0

    @property
    def calls(self) -> int:
        return len(self.tasks)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        self.threads_used += 1
        with self.gauge.entry():
            time.sleep(self._seconds)
            return self._answer(input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        self.loops_used += 1
        with self.gauge.entry():
            await asyncio.sleep(self._seconds)
            return self._answer(input)

    def _answer(self, task: Any) -> Any:
        self.tasks.append(task)
        answer = self._play(task)
        if isinstance(answer, Exception):
            raise answer
        return answer


def an_intent(question: str, **changes: Any) -> Intent:
    """An intent that the guard lets pass."""
    values = {
        "topic": "testing",
        "entity_type": f"subject: {question}",
        "intent": "causal inference",
        "expected_answer_type": "categorical",
        "usage": FREE,
    }
    return Intent(**{**values, **changes})


def judged(score: Score, **changes: Any) -> Any:
    """A judgement of one score, or the error that stands in its place."""
    if isinstance(score, Exception | Judgement):
        return score
    return Judgement(score=score, **{"reason": f"scored {score}", "usage": FREE, **changes})


def first_sentence(task: Mapping[str, Any]) -> Summary:
    return Summary(text=task["text"].split(". ")[0].rstrip(".") + ".", usage=FREE)


def cite_all(task: Mapping[str, Any]) -> Answer:
    numbers = list(range(1, len(task["evidence"]) + 1))
    return Answer(text=f"It does {numbers}.", citations=numbers, usage=FREE)


def scripted_backend(
    scores: Mapping[str, Score] | Callable[[Any], Any],
    *,
    seconds: float = 0,
    gauge: Gauge | None = None,
    intent: Callable[[Any], Any] | None = None,
    summary: Callable[[Any], Any] = first_sentence,
    answer: Callable[[Any], Any] | None = cite_all,
    spec: Mapping[str, Any] | None = None,
) -> Backend:
    """A backend that scores by the text of a passage; every role is a `ScriptedRole`."""

    def judge(task: Any) -> Any:
        return judged(scores[task["text"]]) if isinstance(scores, Mapping) else scores(task)

    def role(play: Callable[[Any], Any]) -> ScriptedRole:
        return ScriptedRole(play, seconds, gauge)

    return Backend(
        name="scripted",
        intent=role(intent or (lambda task: an_intent(task["question"]))),
        judge=role(judge),
        summarizer=role(summary),
        answerer=None if answer is None else role(answer),
        about={"model": "scripted"},
        spec=spec,
    )


def importable_backend() -> Backend:
    """The factory ``support.roles:importable_backend``: scores are the length of the text."""
    return scripted_backend(lambda task: judged(min(1.0, len(task["text"]) / 10)))
