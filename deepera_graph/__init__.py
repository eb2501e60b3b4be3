"""DeepEra: an evidence reranker for scientific question answering, built on LangGraph.

Names are imported when they are first used, as langgraph takes over a second to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepera_graph.budget import Budget as Budget
    from deepera_graph.chat.retry import RateLimits as RateLimits
    from deepera_graph.chat.retry import RetryPolicy as RetryPolicy
    from deepera_graph.errors import AnswerError as AnswerError
    from deepera_graph.errors import BackendError as BackendError
    from deepera_graph.errors import BudgetError as BudgetError
    from deepera_graph.errors import CallError as CallError
    from deepera_graph.errors import DeepEraError as DeepEraError
    from deepera_graph.errors import InputError as InputError
    from deepera_graph.errors import MissingStoreError as MissingStoreError
    from deepera_graph.errors import PromptError as PromptError
    from deepera_graph.errors import RoleError as RoleError
    from deepera_graph.errors import SettingsError as SettingsError
    from deepera_graph.errors import StoreError as StoreError
    from deepera_graph.errors import WorkerError as WorkerError
    from deepera_graph.evidence.check.graph import ManuscriptCheck as ManuscriptCheck
    from deepera_graph.evidence.check.library import WorkLibrary as WorkLibrary
    from deepera_graph.evidence.check.report import CheckReport as CheckReport
    from deepera_graph.evidence.check.writing import export_check as export_check
    from deepera_graph.evidence.report.report import EvidenceReport as EvidenceReport
    from deepera_graph.evidence.report.writer import ReportWriter as ReportWriter
    from deepera_graph.evidence.report.writing import export_report as export_report
    from deepera_graph.evidence.table.table import EvidenceTable as EvidenceTable
    from deepera_graph.evidence.table.table import EvidenceTabulator as EvidenceTabulator
    from deepera_graph.evidence.table.writing import export_table as export_table
    from deepera_graph.export.tables import describe_evidence as describe_evidence
    from deepera_graph.export.tables import export_result as export_result
    from deepera_graph.judges import load_backend as load_backend
    from deepera_graph.judges.base import Judge as Judge
    from deepera_graph.judges.base import PlanRequest as PlanRequest
    from deepera_graph.judges.cascade import cascade_backend as cascade_backend
    from deepera_graph.judges.cascade import mixed_backend as mixed_backend
    from deepera_graph.judges.cascade import screened_backend as screened_backend
    from deepera_graph.judges.cross_encoder.backend import encoder_backend as encoder_backend
    from deepera_graph.judges.embeddings import EvidenceEmbeddings as EvidenceEmbeddings
    from deepera_graph.judges.llm.backend import LlmKwargs as LlmKwargs
    from deepera_graph.judges.llm.backend import llm_backend as llm_backend
    from deepera_graph.judges.trained.backend import local_backend as local_backend
    from deepera_graph.judges.trained.backend import local_model as local_model
    from deepera_graph.literature.citation import Citation as Citation
    from deepera_graph.literature.retractions import Retractions as Retractions
    from deepera_graph.literature.retractions import read_retractions as read_retractions
    from deepera_graph.multihop.agent.agent import MultiHopAgent as MultiHopAgent
    from deepera_graph.multihop.agent.agent import build_multihop_graph as build_multihop_graph
    from deepera_graph.multihop.agent.roles import MultiHopBackend as MultiHopBackend
    from deepera_graph.multihop.agent.roles import multihop_backend as multihop_backend
    from deepera_graph.multihop.agent.state import MultiHopResult as MultiHopResult
    from deepera_graph.multihop.agent.state import MultiHopSettings as MultiHopSettings
    from deepera_graph.multihop.agent.uncertainty import Uncertainty as Uncertainty
    from deepera_graph.multihop.agent.uncertainty import nli_labels as nli_labels
    from deepera_graph.multihop.passages.expansion import HopPassage as HopPassage
    from deepera_graph.multihop.passages.expansion import HopResult as HopResult
    from deepera_graph.multihop.passages.expansion import aexpand_hops as aexpand_hops
    from deepera_graph.multihop.passages.expansion import expand_hops as expand_hops
    from deepera_graph.multihop.passages.graph import NeighbourGraph as NeighbourGraph
    from deepera_graph.multihop.passages.retriever import AdaptiveRetriever as AdaptiveRetriever
    from deepera_graph.papers.agent.found import Found as Found
    from deepera_graph.papers.agent.found import FoundPaper as FoundPaper
    from deepera_graph.papers.agent.graph import PaperSearch as PaperSearch
    from deepera_graph.papers.base import PaperBase as PaperBase
    from deepera_graph.papers.calls import answer_call as answer_call
    from deepera_graph.papers.calls import describe_paper_calls as describe_paper_calls
    from deepera_graph.papers.paper import Paper as Paper
    from deepera_graph.papers.results import Hit as Hit
    from deepera_graph.papers.results import Hits as Hits
    from deepera_graph.papers.results import Neighbours as Neighbours
    from deepera_graph.papers.results import Scope as Scope
    from deepera_graph.papers.results import TitleMatch as TitleMatch
    from deepera_graph.papers.sources import Literature as Literature
    from deepera_graph.papers.sources import LiteratureAnswer as LiteratureAnswer
    from deepera_graph.papers.sources import PaperSource as PaperSource
    from deepera_graph.papers.sources import SourceAnswer as SourceAnswer
    from deepera_graph.papers.sources import SourceQuery as SourceQuery
    from deepera_graph.papers.sources import live_base as live_base
    from deepera_graph.papers.sources import open_sources as open_sources
    from deepera_graph.passages import Passage as Passage
    from deepera_graph.pipeline.graph import build_graph as build_graph
    from deepera_graph.pipeline.subgraph import evidence_subgraph as evidence_subgraph
    from deepera_graph.prompts import Domain as Domain
    from deepera_graph.reranker import Estimate as Estimate
    from deepera_graph.reranker import EvidenceReranker as EvidenceReranker
    from deepera_graph.result import RankedPassage as RankedPassage
    from deepera_graph.result import RerankResult as RerankResult
    from deepera_graph.retrieval.collections.passage_store import PassageStore as PassageStore
    from deepera_graph.retrieval.collections.store import open_store as open_store
    from deepera_graph.retrieval.sources import read_passages as read_passages
    from deepera_graph.schema import Answer as Answer
    from deepera_graph.schema import AnswerTask as AnswerTask
    from deepera_graph.schema import Backend as Backend
    from deepera_graph.schema import Batch as Batch
    from deepera_graph.schema import EvidenceItem as EvidenceItem
    from deepera_graph.schema import Intent as Intent
    from deepera_graph.schema import IntentFields as IntentFields
    from deepera_graph.schema import IntentTask as IntentTask
    from deepera_graph.schema import Judgement as Judgement
    from deepera_graph.schema import PassageTask as PassageTask
    from deepera_graph.schema import RewriteTask as RewriteTask
    from deepera_graph.schema import Rewritten as Rewritten
    from deepera_graph.schema import Summary as Summary
    from deepera_graph.schema import Unjudged as Unjudged
    from deepera_graph.schema import Window as Window
    from deepera_graph.schema import describe_directions as describe_directions
    from deepera_graph.schema import name_direction as name_direction
    from deepera_graph.settings import Preset as Preset
    from deepera_graph.settings import Settings as Settings
    from deepera_graph.settings import SettingsKwargs as SettingsKwargs
    from deepera_graph.settings import preset as preset
    from deepera_graph.stores.judgements import JudgementCache as JudgementCache
    from deepera_graph.stores.judgements import open_cache as open_cache
    from deepera_graph.thresholds import Calibrated as Calibrated
    from deepera_graph.thresholds import Curve as Curve
    from deepera_graph.thresholds import Gap as Gap
    from deepera_graph.thresholds import PerIntent as PerIntent
    from deepera_graph.thresholds import Quantile as Quantile
    from deepera_graph.usage import Usage as Usage
    from langchain_deepera import DeepEraCompressor as DeepEraCompressor
    from langchain_deepera import DeepEraRetriever as DeepEraRetriever
    from langchain_deepera import EvidenceCrossEncoder as EvidenceCrossEncoder
    from langchain_deepera import LiteratureRetriever as LiteratureRetriever
    from langchain_deepera import PaperRetriever as PaperRetriever
    from langchain_deepera import ScorerCompressor as ScorerCompressor
    from langchain_deepera import create_check_tool as create_check_tool
    from langchain_deepera import create_evidence_tool as create_evidence_tool
    from langchain_deepera import create_multihop_tool as create_multihop_tool
    from langchain_deepera import create_table_tool as create_table_tool
    from langchain_deepera import paper_tools as paper_tools

__version__ = "0.9.0"

_NAMES = {
    "budget": "Budget",
    "chat.retry": "RateLimits RetryPolicy",
    "literature.citation": "Citation",
    "evidence.check.graph": "ManuscriptCheck",
    "evidence.check.library": "WorkLibrary",
    "evidence.check.report": "CheckReport",
    "evidence.check.writing": "export_check",
    "evidence.report.report": "EvidenceReport",
    "evidence.report.writer": "ReportWriter",
    "evidence.report.writing": "export_report",
    "evidence.table.table": "EvidenceTable EvidenceTabulator",
    "evidence.table.writing": "export_table",
    "export.tables": "describe_evidence export_result",
    "errors": (
        "AnswerError BackendError BudgetError CallError DeepEraError InputError MissingStoreError "
        "PromptError RoleError SettingsError StoreError WorkerError"
    ),
    "judges.embeddings": "EvidenceEmbeddings",
    "judges": "load_backend",
    "judges.base": "Judge PlanRequest",
    "judges.cascade": "cascade_backend mixed_backend screened_backend",
    "judges.cross_encoder.backend": "encoder_backend",
    "judges.llm.backend": "LlmKwargs llm_backend",
    "judges.trained.backend": "local_backend local_model",
    "multihop.agent.agent": "MultiHopAgent build_multihop_graph",
    "multihop.passages.expansion": "HopPassage HopResult aexpand_hops expand_hops",
    "multihop.passages.graph": "NeighbourGraph",
    "multihop.passages.retriever": "AdaptiveRetriever",
    "multihop.agent.roles": "MultiHopBackend multihop_backend",
    "multihop.agent.state": "MultiHopResult MultiHopSettings",
    "multihop.agent.uncertainty": "Uncertainty nli_labels",
    "papers.agent.found": "Found FoundPaper",
    "papers.agent.graph": "PaperSearch",
    "papers.base": "PaperBase",
    "papers.calls": "answer_call describe_paper_calls",
    "papers.paper": "Paper",
    "papers.results": "Hit Hits Neighbours Scope TitleMatch",
    "papers.sources": (
        "Literature LiteratureAnswer PaperSource SourceAnswer SourceQuery live_base open_sources"
    ),
    "passages": "Passage",
    "pipeline.graph": "build_graph",
    "pipeline.subgraph": "evidence_subgraph",
    "prompts": "Domain",
    "reranker": "Estimate EvidenceReranker",
    "result": "RankedPassage RerankResult",
    "literature.retractions": "Retractions read_retractions",
    "retrieval.collections.passage_store": "PassageStore",
    "retrieval.sources": "read_passages",
    "retrieval.collections.store": "open_store",
    "schema": (
        "Answer AnswerTask Backend Batch EvidenceItem Intent IntentFields IntentTask Judgement "
        "PassageTask RewriteTask Rewritten Summary Unjudged Window describe_directions "
        "name_direction"
    ),
    "settings": "Preset Settings SettingsKwargs preset",
    "stores.judgements": "JudgementCache open_cache",
    "thresholds": "Calibrated Curve Gap PerIntent Quantile",
    "usage": "Usage",
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
_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = sorted((*_HOME, *_OF_LANGCHAIN, "__version__"))  # noqa: PLE0605  # from the tables


def __getattr__(name: str) -> Any:
    if name in _OF_LANGCHAIN:
        import langchain_deepera  # noqa: PLC0415  # it imports our names, and langchain-core

        return getattr(langchain_deepera, name)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"deepera_graph.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
