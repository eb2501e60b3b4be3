"""Measures what DeepEra's own code and LangGraph cost, beside the calls that they make.

The roles answer at once. The same calls are made by bare `asyncio.gather`, and the difference of
the medians is the overhead. Prints Markdown.

  python benchmarks/speed/overhead.py
  python benchmarks/speed/overhead.py --n 1000 --profile profile.txt    # where the time goes
"""

import argparse
import asyncio
import cProfile
import gc
import pstats
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from ranker import TOP_N
from texts import Question, make_question

from deepera_graph import Backend, EvidenceReranker, Intent, Judgement, Summary, Usage

_SEED = 7
_ONE_CALL = Usage(calls=1)
_PROFILED_LINES = 40


class AtOnce(Runnable[Any, Any]):
    """A role that is a function, with nothing around it."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self._answer = answer

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Answer."""
        return self._answer(input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Answer."""
        return self._answer(input)


def backend(kind: Callable[[Callable[[Any], Any]], Runnable[Any, Any]] = AtOnce) -> Backend:
    """Return a backend without latency, also for ``--backend overhead:backend``."""
    return Backend(
        name="at once", intent=kind(_intent), judge=kind(_judge), summarizer=kind(_summarize)
    )


def as_lambda(answer: Callable[[Any], Any]) -> Runnable[Any, Any]:
    """Return a role as LangChain users write it."""

    async def awaited(task: Any) -> Any:
        return answer(task)

    return RunnableLambda(answer, afunc=awaited)


def _intent(task: Any) -> Intent:
    return Intent(
        topic="plant science",
        entity_type=f"subject: {task['question']}",
        intent="causal inference",
        expected_answer_type="categorical",
        usage=_ONE_CALL,
    )


def _judge(task: Any) -> Judgement:
    score = 0.9 if "%" in task["text"] else 0.1
    return Judgement(score=score, reason="scripted", usage=_ONE_CALL)


def _summarize(task: Any) -> Summary:
    return Summary(text=task["text"].split(". ")[0], usage=_ONE_CALL)


async def bare(roles: Backend, question: Question) -> list[Any]:
    """Make the calls that DeepEra makes, and nothing else."""
    intent = await roles.intent.ainvoke({"question": question.text, "problem": ""})
    fields = intent.model_dump()
    tasks: list[Any] = [
        {"question": question.text, "intent": fields, "text": text, "title": "", "section": ""}
        for text in question.passages.values()
    ]
    judged = await asyncio.gather(*map(roles.judge.ainvoke, tasks))
    best = [task for task, one in zip(tasks, judged, strict=True) if one.score > 0.8][:TOP_N]
    return await asyncio.gather(*map(roles.summarizer.ainvoke, best))


async def timed(once: Callable[[], Awaitable[object]], times: int) -> list[float]:
    """Return the CPU seconds of every run but the first two.

    Nothing waits here, so on an idle machine they are the wall time; on a busy one they are not
    disturbed by it.
    """
    found = []
    for _ in range(times + 2):
        start = time.process_time()
        await once()
        found.append(time.process_time() - start)
    return found[2:]


async def measure(roles: Backend, n_passages: int, times: int) -> tuple[float, float, float]:
    """Return the medians in CPU seconds: bare calls, `arerank`, `rerank`."""
    question = make_question(_SEED, 1, n_passages)
    items = [{"id": code, "text": text} for code, text in question.passages.items()]
    reranker = EvidenceReranker(roles)

    async def in_this_thread() -> None:
        reranker.rerank(question.text, items)

    gc.collect()
    return (
        median(await timed(lambda: bare(roles, question), times)),
        median(await timed(lambda: reranker.arerank(question.text, items), times)),
        median(await timed(in_this_thread, times)),
    )


def profile(roles: Backend, n_passages: int, times: int) -> str:
    """Return what `cProfile` finds in `arerank`, most own time first, then most time in all."""
    question = make_question(_SEED, 1, n_passages)
    items = [{"id": code, "text": text} for code, text in question.passages.items()]
    reranker = EvidenceReranker(roles)
    profiler = cProfile.Profile()

    async def run() -> None:
        await reranker.arerank(question.text, items)
        with profiler:
            for _ in range(times):
                await reranker.arerank(question.text, items)

    asyncio.run(run())
    out = StringIO()
    found = pstats.Stats(profiler, stream=out)
    found.sort_stats("tottime").print_stats(_PROFILED_LINES)
    found.sort_stats("cumtime").print_stats(2 * _PROFILED_LINES)
    return out.getvalue()


def main() -> None:
    """Read the options, measure, print."""
    options = _options()
    roles = backend(as_lambda if options.lambdas else AtOnce)
    if options.profile:
        text = profile(roles, options.n[-1], options.times)
        Path(options.profile).write_text(text, encoding="utf-8")
        return
    head = ("passages", "bare ms", "`arerank` ms", "`rerank` ms", "overhead ms", "a passage ms")
    lines = [_line(head), _line(["---"] * len(head))]
    for n in options.n:
        calls, async_, sync = asyncio.run(measure(roles, n, options.times))
        over = async_ - calls
        numbers = (calls, async_, sync, over, over / n)
        lines.append(_line([str(n), *(f"{1000 * one:.3g}" for one in numbers)]))
    sys.stdout.write("\n".join(lines) + "\n")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--n", default="30,100,1000", metavar="N,N", help="passages; default 30,100,1000")
    add("--times", type=int, default=15, help="runs of which the median is taken; default 15")
    add("--lambdas", action="store_true", help="roles that are RunnableLambdas, as users write")
    add("--profile", metavar="FILE", help="profile the last number of passages instead")
    options = parser.parse_args()
    try:
        options.n = [int(one) for one in options.n.split(",")]
    except ValueError:
        parser.error(f"--n takes numbers with commas between, got {options.n!r}")
    if min(*options.n, options.times, 1) < 1:
        parser.error("--n and --times must be at least 1")
    return options


if __name__ == "__main__":
    main()
