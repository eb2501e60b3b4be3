"""DeepEra: an evidence reranker for scientific question answering, built on LangGraph."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deepera_graph.version import __version__

if TYPE_CHECKING:
    from deepera_graph.backends import load_backend
    from deepera_graph.backends.cascade import cascade_judge
    from deepera_graph.backends.encoder import encoder_backend
    from deepera_graph.backends.llm import llm_backend
    from deepera_graph.backends.local import local_backend, local_model
    from deepera_graph.backends.mixed import mixed_backend, screened_backend
    from deepera_graph.budget import Budget
    from deepera_graph.cache.store import JudgementCache
    from deepera_graph.curve import Curve
    from deepera_graph.errors import (
        AnswerError,
        BackendError,
        BudgetError,
        CallError,
        DeepEraError,
        InputError,
        PromptError,
        RoleError,
        SettingsError,
        StoreError,
    )
    from deepera_graph.estimate import Estimate
    from deepera_graph.graph import build_graph
    from deepera_graph.passages import Passage
    from deepera_graph.reranker import EvidenceReranker
    from deepera_graph.result import RankedPassage, RerankResult
    from deepera_graph.roles import Backend
    from deepera_graph.schema import Answer, Intent, Judgement, Summary, Survey
    from deepera_graph.settings import Settings
    from deepera_graph.thresholds import Calibrated, Gap, PerIntent, Quantile
    from deepera_graph.usage import Usage

_HOME = {
    "Answer": "schema",
    "AnswerError": "errors",
    "Backend": "roles",
    "BackendError": "errors",
    "Budget": "budget",
    "BudgetError": "errors",
    "CallError": "errors",
    "Calibrated": "thresholds",
    "Curve": "curve",
    "DeepEraError": "errors",
    "Estimate": "estimate",
    "EvidenceReranker": "reranker",
    "Gap": "thresholds",
    "InputError": "errors",
    "Intent": "schema",
    "Judgement": "schema",
    "JudgementCache": "cache.store",
    "Passage": "passages",
    "PerIntent": "thresholds",
    "PromptError": "errors",
    "Quantile": "thresholds",
    "RankedPassage": "result",
    "RerankResult": "result",
    "RoleError": "errors",
    "Settings": "settings",
    "SettingsError": "errors",
    "StoreError": "errors",
    "Summary": "schema",
    "Survey": "schema",
    "Usage": "usage",
    "build_graph": "graph",
    "cascade_judge": "backends.cascade",
    "encoder_backend": "backends.encoder",
    "llm_backend": "backends.llm",
    "load_backend": "backends",
    "local_backend": "backends.local",
    "local_model": "backends.local",
    "mixed_backend": "backends.mixed",
    "screened_backend": "backends.mixed",
}

__all__ = [
    "Answer",
    "AnswerError",
    "Backend",
    "BackendError",
    "Budget",
    "BudgetError",
    "Calibrated",
    "CallError",
    "Curve",
    "DeepEraError",
    "Estimate",
    "EvidenceReranker",
    "Gap",
    "InputError",
    "Intent",
    "Judgement",
    "JudgementCache",
    "Passage",
    "PerIntent",
    "PromptError",
    "Quantile",
    "RankedPassage",
    "RerankResult",
    "RoleError",
    "Settings",
    "SettingsError",
    "StoreError",
    "Summary",
    "Survey",
    "Usage",
    "__version__",
    "build_graph",
    "cascade_judge",
    "encoder_backend",
    "llm_backend",
    "load_backend",
    "local_backend",
    "local_model",
    "mixed_backend",
    "screened_backend",
]


def __getattr__(name: str) -> Any:  # langgraph takes over a second to import
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
