"""DeepEra: an evidence reranker for scientific question answering, built on LangGraph.

What is public stands in `__init__.pyi`, with the module it comes from. A name is imported when it
is first used, as langgraph takes over a second to import.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any
from warnings import warn

__version__ = "0.9.0"

_HOME = {
    name: home
    for home, name in re.findall(
        r"^from (\S+) import (\w+)",
        Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
}
_MOVED = {  # until 0.11
    "settings.budget": "Estimate",
    "chat.sending": "RateLimits RetryPolicy",
    "errors": (
        "AnswerError BudgetError CallError MissingStoreError PromptError RoleError StoreError "
        "WorkerError"
    ),
    "evidence.check.report": "CheckReport",
    "evidence.report.report": "EvidenceReport",
    "evidence.table.table": "EvidenceTable",
    "export": "describe_evidence",
    "judges.base": "PlanRequest",
    "judges.llm.backend": "LlmKwargs",
    "judges.trained.backend": "local_model",
    "literature.citation": "Citation",
    "literature.same_study": "Retractions",
    "multihop.agent.agent": "build_multihop_graph",
    "multihop.agent.state": "MultiHopResult",
    "multihop.settings": "MultiHopSettings Uncertainty nli_labels",
    "multihop.passages.expansion": "HopPassage HopResult aexpand_hops",
    "papers.agent.found": "Found FoundPaper",
    "papers.calls": "answer_call describe_paper_calls",
    "papers.results": "Hit Hits Neighbours TitleMatch",
    "papers.sources": "Literature LiteratureAnswer PaperSource SourceAnswer SourceQuery live_base",
    "prompts": "Domain",
    "retrieval.collections.passage_store": "PassageStore",
    "schema": (
        "Answer AnswerTask Batch EvidenceItem IntentFields IntentTask PassageTask RewriteTask "
        "Rewritten Window"
    ),
    "settings": "Preset SettingsKwargs",
    "text.questions": "describe_directions name_direction",
}
_OF_LANGCHAIN = (
    "DeepEraCompressor",
    "DeepEraRetriever",
    "EvidenceCrossEncoder",
    "LiteratureRetriever",
    "PaperRetriever",
    "ScorerCompressor",
    "create_check_tool",
    "create_evidence_tool",
    "create_multihop_tool",
    "create_table_tool",
    "paper_tools",
)
_OLD_HOME = {
    **{name: f"deepera_graph.{home}" for home, names in _MOVED.items() for name in names.split()},
    **dict.fromkeys(_OF_LANGCHAIN, "langchain_deepera"),
}
__all__ = sorted((*_HOME, "__version__"))  # noqa: PLE0605  # from the stub


def __getattr__(name: str) -> Any:
    home = _HOME.get(name) or _OLD_HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _OLD_HOME:
        hint = f"import {name} from {home}; deepera_graph.{name} ends with 0.11"
        warn(hint, DeprecationWarning, stacklevel=2)
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
