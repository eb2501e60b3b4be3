"""The ways to ask for a structured answer: each tried once, by itself, as the judge would ask."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal

from deepera_graph import prompts
from deepera_graph.chat.client import UNSUPPORTED, ChatModel, OutputMode
from deepera_graph.chat.parsing import parse_reply
from deepera_graph.chat.schema import JudgementReply, ReplyModel
from deepera_graph.doctor.finding import Finding
from deepera_graph.doctor.sample import TASK
from deepera_graph.errors import AnswerError, CallError
from deepera_graph.judges.llm import prompt as show

IN_WORDS: dict[OutputMode, str] = {
    "json_schema": "JSON schema",
    "tools": "tool call",
    "json_object": "JSON mode",
    "text": "plain text",
}
SIMPLEST: OutputMode = "text"
_OF_ONE_METHOD = UNSUPPORTED - {404}
Outcome = Literal["usable", "unusable", "no_json", "no_answer"]


class AnyObject(ReplyModel):
    """Any JSON object that is not empty."""


@dataclass(frozen=True, slots=True)
class Trial:
    """How one way of asking went.

    Attributes:
        method: The way.
        outcome: ``usable``; ``unusable``, a JSON object that breaks the schema, so that the server
            supports the method and the model does badly; ``no_json``, words or nothing;
            ``no_answer``, an error or silence.
        found: What came back.
        error: Why there was no answer at all; None if there was one.
    """

    method: OutputMode
    outcome: Outcome
    found: str
    error: CallError | None = None

    @property
    def finding(self) -> Finding:
        """What to tell."""
        name = f"method: {IN_WORDS[self.method]}"
        if self.outcome == "usable":
            return Finding(name, "ok", self.found)
        if self.outcome == "unusable":
            advice = "the server supports it; a larger model would answer better"
            return Finding(name, "warn", self.found, advice)
        return Finding(name, "warn", self.found, "nothing, as long as another method works")


async def try_methods(model: ChatModel) -> AsyncIterator[Trial]:
    """Yield how each way of asking goes: the simplest first, then best first.

    Nothing follows where the simplest failed for a reason that holds for all: no connection, no
    time, wrong key, unknown model, too many requests.
    """
    simplest = await _try(model, SIMPLEST)
    yield simplest
    if simplest.error is not None and simplest.error.status not in _OF_ONE_METHOD:
        return
    for method in model.output_modes.all:
        if method != SIMPLEST:
            yield await _try(model, method)


async def _try(model: ChatModel, method: OutputMode) -> Trial:
    sentences = show.sentences_of(TASK)
    values = show.passage_values(TASK, show.numbered(sentences))
    try:
        reply = await model.call(method, prompts.messages("score", **values), JudgementReply, None)
    except CallError as error:
        return Trial(method, "no_answer", str(error), error)
    if reply.refusal:
        return Trial(method, "no_json", f"the model refused: {reply.refusal}")
    return _read(method, reply.text)


def _read(method: OutputMode, text: str) -> Trial:
    try:
        parse_reply(text, JudgementReply)
    except AnswerError as error:
        try:
            parse_reply(text, AnyObject)
        except AnswerError:
            return Trial(method, "no_json", f"an answer without what was asked for: {error}")
        return Trial(method, "unusable", f"a JSON object, but {error}")
    return Trial(method, "usable", "a usable answer")
