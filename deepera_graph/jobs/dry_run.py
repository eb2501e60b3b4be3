"""What a run would cost: the run itself, with a model that counts its prompts and says yes."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, BinaryIO

from deepera_graph.backends.cascade import cascade_judge
from deepera_graph.backends.counting import counting_backend
from deepera_graph.backends.llm import llm_backend
from deepera_graph.backends.llm.counting import CHARS_PER_TOKEN, REPLY_TOKENS, CountingModel
from deepera_graph.backends.local import local_backend
from deepera_graph.errors import InputError
from deepera_graph.jobs.in_flight import Line
from deepera_graph.jobs.lines import BadLine, read_lines
from deepera_graph.jobs.report import JobReport
from deepera_graph.jobs.rerank import Watch, rerank_lines
from deepera_graph.passages import read_passages
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.settings import Settings

__all__ = ["CHARS_PER_TOKEN", "REPLY_TOKENS", "count_calls", "count_lines"]
AT_ONCE = 4


def count_calls(
    settings: Settings,
    source: BinaryIO,
    *,
    report: JobReport,
    domain: str | None = None,
    calls: Mapping[str, Any] | None = None,
    cascade: int | None = None,
    limit: int | None = None,
    watch: Watch = lambda line: None,
) -> None:
    """Add up what a language model would be asked; `report.usage` has calls and tokens a stage.

    As every passage is kept, the summaries are the most there can be. Second tries are not
    counted; the rules of the field are. *calls* says what a call does: `mode` and `group_size` of
    `llm_backend`. With *cascade* the model reads so many passages a question at most.

    Raises:
        SettingsError: There is no such field, or no such mode.
    """
    plain = {**settings.to_dict(), "max_concurrency": AT_ONCE}
    backend = llm_backend(CountingModel(), domain=domain, **(calls or {}))
    if cascade is not None:
        backend = counting_backend(cascade_judge(local_backend(), backend, cascade))
    reranker = EvidenceReranker(backend, **plain)
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
