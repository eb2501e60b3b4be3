"""A chat model that is never asked: it says yes to everything and counts its prompts."""

import json
import re
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

CHARS_PER_TOKEN = 4
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
        verdict = {"reason": "counted", "evidence": [1], "score": 1.0, "summary": "counted"}
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
