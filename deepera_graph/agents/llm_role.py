"""A role that a chat model plays, and a model that counts what it would cost."""

import json
import re
from collections.abc import Coroutine, Sequence
from typing import Any, Generic, Self, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph import prompts
from deepera_graph.chat import io_loop
from deepera_graph.chat.client import ChatModel
from deepera_graph.chat.retry import RateLimits, RetryPolicy
from deepera_graph.chat.structured import UsableReply
from deepera_graph.prompts import Domain
from deepera_graph.usage import CHARS_PER_TOKEN

REPLY_TOKENS = 60
LONGEST_QUESTION = 500
_MEMBER = re.compile(r"^=====(\d+)$", re.MULTILINE)
_SUMMARY = re.compile(r"^Summary: from ", re.MULTILINE)


class CountingModel(BaseChatModel):
    """Answers at once, keeps every passage, and puts the length of the prompt into its usage.

    A token is taken for 4 characters (`CHARS_PER_TOKEN`), about what English costs, and each thing
    asked for in a reply, a verdict or a summary, for 60 tokens (`REPLY_TOKENS`): 25 words, numbers
    and JSON. Both are rough.
    """

    @property
    def _llm_type(self) -> str:
        return "deepera-counting"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        texts = [str(message.text) for message in messages]
        members = _MEMBER.findall(texts[-1])
        n_asked = max(1, len(members)) * (1 + bool(_SUMMARY.search(texts[-1])))
        n_tokens = -(-sum(map(len, texts)) // CHARS_PER_TOKEN)
        verdict = {
            "reason": "counted",
            "evidence": [1],
            "score": 1.0,
            "direction": "supports",
            "summary": "counted",
        }
        fits_all_roles = {
            **verdict,
            "topic": "any",
            "entity_type": texts[-1][:LONGEST_QUESTION],
            "intent": "other",
            "expected_answer_type": "other",
            "text": "counted",
            "citations": [],
            "verdicts": [{"id": int(one), **verdict} for one in members],
        }
        message = AIMessage(
            json.dumps(fits_all_roles),
            usage_metadata={
                "input_tokens": n_tokens,
                "output_tokens": n_asked * REPLY_TOKENS,
                "total_tokens": n_tokens + n_asked * REPLY_TOKENS,
            },
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop)


TaskT = TypeVar("TaskT")
AnswerT = TypeVar("AnswerT")


class LlmRole(Runnable[TaskT, AnswerT], Generic[TaskT, AnswerT]):
    """A role played by a chat model, in the loop of the model calls."""

    def __init__(self, model: ChatModel, domain: Domain | None = None) -> None:
        self.model, self.domain = model, domain

    def invoke(self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any) -> AnswerT:
        """Play the role, waiting in this thread."""
        return io_loop.run(self._play(input, config))

    async def ainvoke(
        self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AnswerT:
        """Play the role, waiting in the running loop."""
        return await io_loop.arun(self._play(input, config))

    def counting(self) -> Self:
        """Return this role on a model that counts its prompts and is never asked."""
        return type(self)(counting_model(), self.domain)

    def _play(self, task: TaskT, config: RunnableConfig | None) -> Coroutine[Any, Any, AnswerT]:
        raise NotImplementedError

    def _messages(self, node: str, /, **values: str) -> list[BaseMessage]:
        return fill_messages(self.domain, node, (node,), **values)


def fill_messages(
    domain: Domain | None, node: str, rules: Sequence[str], /, **values: str
) -> list[BaseMessage]:
    """Fill the templates of a node, with the *rules* of the field for one or more roles."""
    filled = prompts.messages(node, **values)
    for role in rules if domain else ():
        filled = domain.add_rules(role, filled)  # type: ignore[union-attr]  # there is one
    return filled


def counting_model() -> ChatModel:
    """Return a model that counts its prompts and is never asked."""
    return ChatModel(CountingModel(), RetryPolicy(), RateLimits())


def how(filled: UsableReply[Any]) -> dict[str, Any]:
    """Return what is noted of an answer beside its content."""
    return {"usage": filled.usage, "repaired": filled.repaired, "problem": filled.problem}
