"""What a run would cost: the run itself, with a model that counts its prompts and says yes."""

import json
from itertools import islice
from typing import Any, BinaryIO

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from deepera_graph.backends.llm import llm_backend
from deepera_graph.errors import InputError
from deepera_graph.jobs.in_flight import Line
from deepera_graph.jobs.lines import BadLine, read_lines
from deepera_graph.jobs.report import JobReport
from deepera_graph.jobs.rerank import Watch, rerank_lines
from deepera_graph.passages import read_passages
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.settings import Settings

CHARS_PER_TOKEN = 4
REPLY_TOKENS = 60
LONGEST_QUESTION = 500
AT_ONCE = 4


class CountingModel(BaseChatModel):
    """Answers at once, keeps every passage, and puts the length of the prompt into its usage.

    A token is taken for 4 characters (`CHARS_PER_TOKEN`), about what English costs, and a reply
    for 60 tokens (`REPLY_TOKENS`): 25 words of reason, numbers and JSON. Both are rough.
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
        n_tokens = -(-sum(map(len, texts)) // CHARS_PER_TOKEN)
        fits_all_roles = {
            "topic": "any",
            "entity_type": texts[-1][:LONGEST_QUESTION],
            "intent": "other",
            "expected_answer_type": "other",
            "reason": "counted",
            "evidence": [1],
            "score": 1.0,
            "text": "counted",
            "citations": [],
        }
        message = AIMessage(
            json.dumps(fits_all_roles),
            usage_metadata={
                "input_tokens": n_tokens,
                "output_tokens": REPLY_TOKENS,
                "total_tokens": n_tokens + REPLY_TOKENS,
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


def count_calls(
    settings: Settings,
    source: BinaryIO,
    *,
    report: JobReport,
    limit: int | None = None,
    watch: Watch = lambda line: None,
) -> None:
    """Add up what a language model would be asked; `report.usage` has calls and tokens a stage.

    As every passage is kept, the summaries are the most there can be. Second tries are not
    counted.
    """
    plain = {**settings.to_dict(), "max_concurrency": AT_ONCE}
    reranker = EvidenceReranker(llm_backend(CountingModel()), **plain)
    rerank_lines(reranker, source, None, report=report, limit=limit, watch=watch)


def count_lines(
    source: BinaryIO,
    *,
    report: JobReport,
    limit: int | None = None,
    watch: Watch = lambda line: None,
) -> None:
    """Check the lines, for a backend that makes no calls."""
    for line in islice(read_lines(source), limit):
        checked = _checked(line)
        if isinstance(checked, BadLine):
            report.add_bad(checked)
        else:
            report.n_written += 1
            report.n_passages += len(checked.passages)
        watch(checked)
    report.end = "complete"


def _checked(line: Line) -> Line:
    if isinstance(line, BadLine):
        return line
    try:
        read_passages(line.passages)
    except InputError as error:
        return BadLine(number=line.number, end=line.end, id=line.id, error=str(error))
    return line
