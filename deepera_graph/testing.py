"""Stand-ins for models, to test what is built on this package: no network, no key, no waiting.

``EvidenceReranker(scripted_backend({"Tea lowered glucose.": 0.9}))`` judges by a table of texts;
``EvidenceReranker(llm_backend(ScriptedChat(scores={"lowered": 0.9})))`` goes the whole way of a
chat model: prompts, replies, output modes and usage.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field

from deepera_graph.agents.role import AnsweringModel
from deepera_graph.schema import Answer, Backend, Intent, Judgement, Summary
from deepera_graph.usage import Usage

Score = float | Exception | Judgement
FREE = Usage()
_MEMBER = re.compile(r"^=====(\d+)$", re.MULTILINE)
_BLOCK = re.compile(r"=====\n(?:Title: .*\n)?([^=]+)\n=====")


class Gauge:
    """How many are inside at once; for threads and event loops.

    Attributes:
        inside: So many now.
        most: The most there were.
        entered: All that have come.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.inside = self.most = self.entered = 0

    @contextmanager
    def entry(self) -> Iterator[None]:
        """Count one who is inside while the block lasts."""
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
    """A role that plays a function, sync and async alike.

    Attributes:
        tasks: What it was asked, in order.
        gauge: How many calls were in flight at once.
        threads_used: Calls of `invoke`.
        loops_used: Calls of `ainvoke`.

    Args:
        play: From a task to its answer; an exception that it returns is raised.
        seconds: How long a call takes.
        gauge: One to share with other roles; its own if None.
    """

    def __init__(
        self, play: Callable[[Any], Any], seconds: float = 0, gauge: Gauge | None = None
    ) -> None:
        self._play, self._seconds = play, seconds
        self.gauge = gauge or Gauge()
        self.tasks: list[Any] = []
        self.threads_used = self.loops_used = 0

    @property
    def calls(self) -> int:
        """How often it was asked."""
        return len(self.tasks)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Play the role."""
        self.threads_used += 1
        with self.gauge.entry():
            time.sleep(self._seconds)
            return self._answer(input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Play the role in the running loop."""
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
    """Return an intent that the pipeline takes for one of the question, with some changes."""
    values = {
        "topic": "testing",
        "entity_type": f"subject: {question}",
        "intent": "causal inference",
        "expected_answer_type": "categorical",
        "usage": FREE,
    }
    return Intent(**{**values, **changes})


def judged(score: Score, **changes: Any) -> Any:
    """Return a judgement of one score in [0, 1], or the error that stands in its place."""
    if isinstance(score, Exception | Judgement):
        return score
    return Judgement(score=score, **{"reason": f"scored {score}", "usage": FREE, **changes})


def first_sentence(task: Mapping[str, Any]) -> Summary:
    """Summarize a passage by its first sentence."""
    return Summary(text=_first_sentence(task["text"]), usage=FREE)


def cite_all(task: Mapping[str, Any]) -> Answer:
    """Answer with all the evidence there is."""
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
    """Return a backend that scores by the text of a passage; every role is a `ScriptedRole`.

    Args:
        scores: By text: a score in [0, 1], a `Judgement`, or an exception to raise; or a function
            from a `PassageTask` to one of these, see `judged`.
        seconds: How long each call takes.
        gauge: Counts the calls of all roles in flight.
        intent: From an `IntentTask` to an `Intent`; one that fits any question if None.
        summary: From a `PassageTask` to a `Summary`.
        answer: From an `AnswerTask` to an `Answer`; no answerer if None.
        spec: What tells the backend from others, which a cache needs.
    """

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


def look_up(scores: Mapping[str, float | Exception], text: str, default: float = 0.1) -> float:
    """Return the score of the first key that occurs in a text, or raise the error it stands for."""
    found = next((score for key, score in scores.items() if key in text), default)
    if isinstance(found, Exception):
        raise found
    return found


def answer_in_json(
    scores: Mapping[str, float | Exception], system: str, user: str
) -> dict[str, Any]:
    """Answer a prompt of `llm_backend` in any mode; a verdict goes by what a passage contains."""
    if system.startswith("You read"):
        return {
            "topic": "nutrition",
            "entity_type": f"subject: {user}",
            "intent": "causal inference",
            "expected_answer_type": "categorical",
        }
    if system.startswith("You answer"):
        return {"text": "It does [1].", "citations": [1]}
    if "several passages" in system:
        _, *parts = _MEMBER.split(user)
        members = zip(parts[::2], parts[1::2], strict=True)
        return {"verdicts": [{"id": int(n), **_judge(scores, text)} for n, text in members]}
    if "score" in system:
        return _judge(scores, user)
    return {"text": _BLOCK.findall(user)[-1]}


def _judge(scores: Mapping[str, float | Exception], text: str) -> dict[str, Any]:
    return {"reason": "scripted", "evidence": [1], "score": look_up(scores, text)}


def _first_sentence(text: str) -> str:
    return text.split(". ", maxsplit=1)[0].rstrip(".") + "."


class ScriptedChat(AnsweringModel):
    """A chat model that plays the roles of `llm_backend`, and keeps what it was shown.

    It reports usage, four characters a token. For other prompts a subclass overrides `reply`.

    Attributes:
        scores: Of passages, by what they contain: in [0, 1], or an exception to raise; 0.1 for all
            others.
        model_name: By which a manifest tells it from other models.
        shown: The messages of every call, in order.
    """

    scores: dict[str, Any] = Field(default_factory=dict)
    model_name: str = "scripted"
    shown: list[list[BaseMessage]] = Field(default_factory=list)

    def reply(self, messages: list[BaseMessage]) -> Any:
        """Return what is answered, as JSON values."""
        self.shown.append(list(messages))
        return answer_in_json(self.scores, messages[0].text, messages[1].text)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        content = json.dumps(self.reply(messages))
        n_in, n_out = sum(len(one.text) for one in messages) // 4, len(content) // 4
        usage = UsageMetadata(input_tokens=n_in, output_tokens=n_out, total_tokens=n_in + n_out)
        return AIMessage(content, usage_metadata=usage)
