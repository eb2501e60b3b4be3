"""A judge that is asked about one passage, or about some, with no pipeline around it."""

from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.errors import AnswerError
from deepera_graph.judges.base import Judge, as_judge, read_verdicts
from deepera_graph.schema import Batch, Judgement, Unjudged


def batch_of(task: Any, *more: Any) -> Batch:
    """A batch of passages of one question."""
    tasks = [task, *more]
    batch: Batch = {
        "question": task["question"],
        "intent": task["intent"],
        "windows": [{key: one[key] for key in ("text", "title", "section")} for one in tasks],
        "numbers": list(range(len(tasks))),
        "part": "",
        "is_joint": False,
    }
    if "summary_from" in task:
        batch["summary_from"] = task["summary_from"]
    return batch


class Alone(Runnable[Any, Judgement]):
    """Asks a judge about one passage; one that has no judgement is an `AnswerError`."""

    def __init__(self, judge: Any) -> None:
        self._judge: Judge = as_judge(judge)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Judgement:
        batch = batch_of(input)
        return _only(read_verdicts(batch, self._judge.judge(batch, config)))

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Judgement:
        batch = batch_of(input)
        return _only(read_verdicts(batch, await self._judge.ajudge(batch, config)))


def _only(verdicts: Any) -> Judgement:
    [verdict] = verdicts
    if isinstance(verdict, Unjudged):
        raise AnswerError(verdict.cause, usage=verdict.usage)
    assert isinstance(verdict, Judgement)
    return verdict
