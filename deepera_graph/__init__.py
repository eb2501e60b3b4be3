"""DeepEra: an evidence reranker for scientific question answering, built on LangGraph."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepera_graph.budget import Budget
    from deepera_graph.cache.store import JudgementCache
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
    from deepera_graph.judges import load_backend
    from deepera_graph.judges.cascade import cascade_judge, mixed_backend, screened_backend
    from deepera_graph.judges.cross_encoder.backend import encoder_backend
    from deepera_graph.judges.llm.backend import llm_backend
    from deepera_graph.judges.trained.backend import local_backend, local_model
    from deepera_graph.passages import Passage
    from deepera_graph.pipeline.graph import build_graph
    from deepera_graph.reranker import Estimate, EvidenceReranker
    from deepera_graph.result import RankedPassage, RerankResult
    from deepera_graph.schema import Answer, Backend, Intent, Judgement, Summary, Survey
    from deepera_graph.settings import Preset, Settings, preset
    from deepera_graph.thresholds import Calibrated, Curve, Gap, PerIntent, Quantile
    from deepera_graph.usage import Usage


__version__ = "0.5.0"

_HOME = {
    "Answer": "schema",
    "AnswerError": "errors",
    "Backend": "schema",
    "BackendError": "errors",
    "Budget": "budget",
    "BudgetError": "errors",
    "CallError": "errors",
    "Calibrated": "thresholds",
    "Curve": "thresholds",
    "DeepEraError": "errors",
    "Estimate": "reranker",
    "EvidenceReranker": "reranker",
    "Gap": "thresholds",
    "InputError": "errors",
    "Intent": "schema",
    "Judgement": "schema",
    "JudgementCache": "cache.store",
    "Passage": "passages",
    "PerIntent": "thresholds",
    "Preset": "settings",
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
    "build_graph": "pipeline.graph",
    "cascade_judge": "judges.cascade",
    "encoder_backend": "judges.cross_encoder.backend",
    "llm_backend": "judges.llm.backend",
    "load_backend": "judges",
    "local_backend": "judges.trained.backend",
    "local_model": "judges.trained.backend",
    "mixed_backend": "judges.cascade",
    "preset": "settings",
    "screened_backend": "judges.cascade",
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
    "Preset",
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
    "preset",
    "screened_backend",
]


def __getattr__(name: str) -> Any:  # langgraph takes over a second to import
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
