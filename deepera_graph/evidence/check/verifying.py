"""Whether one work says what a statement says: judged, and decided."""

from dataclasses import dataclass, replace
from typing import Any

from langchain_core.documents import Document

from deepera_graph.errors import AnswerError
from deepera_graph.evidence.asking import Asked, Steps
from deepera_graph.evidence.check.library import CitedWork
from deepera_graph.evidence.check.verdict import (
    LOCAL_POINTS,
    MOST_SENTENCES,
    Decision,
    Points,
    cut_work,
    decide_by_model,
    decide_by_rules,
)
from deepera_graph.judges.heuristic.roles import LocalRole
from deepera_graph.judges.llm.judging import LlmJudge
from deepera_graph.prompts import Domain
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.schema import Backend, Intent, IntentTask
from deepera_graph.usage import Usage


def _read_nothing(task: IntentTask) -> Intent:
    """Leave the judge of a statement with the statement alone: it goes by that."""
    raise AnswerError("a statement is not read", usage=Usage())


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a work comes to for a statement, and what it cost to find out."""

    decision: Decision
    usage: Usage


class ClaimVerifier:
    """Judges works for statements.

    A statement is no question that had to be understood: a chat model is not asked to read it,
    which saves a call.

    Args:
        reranker: Who judges; its cache, budget and limits count.
        rules: What a chat model is told of such statements beside the rules of its field.
    """

    def __init__(self, reranker: EvidenceReranker, rules: Domain | None = None) -> None:
        self._asks_model = reranker.backend.asks_model
        reranker = reranker.with_backend(_for_statements(reranker.backend, rules))
        self.reranker = reranker.with_settings(
            threshold=_find_threshold(reranker) if self._asks_model else None,
            content="passage",
            answer=False,
            on_empty="empty",
            stop_after=None,
            top_n=MOST_SENTENCES,
        )

    def verify(self, statement: str, work: CitedWork) -> Steps[Verified]:
        """Judge what of a work is nearest to a statement, and decide; `run_steps` runs it.

        The sentence that is nearest is judged once more, by itself; not by a chat model.
        """
        pool = yield Asked(self.reranker, statement, self.cut(statement, work))
        alone = None
        if pool.passages and not self._asks_model:
            best = pool.passages[0]
            only = Document(page_content=best.text, metadata=best.metadata)
            alone = yield Asked(self.reranker, statement, (only,))
        return self._decide(statement, work, pool, alone)

    def cut(self, statement: str, work: CitedWork) -> list[Document]:
        """Return what of a work is judged: passages for a chat model, sentences for others."""
        return cut_work(work, statement, by_sentence=not self._asks_model)

    def _decide(
        self, statement: str, work: CitedWork, pool: RerankResult, alone: RerankResult | None
    ) -> Verified:
        if self._asks_model:
            found = decide_by_model(pool, work)
        elif alone is None:
            found = Decision(verdict="not_judged", notes=("there was nothing to judge",))
        else:
            only = alone.all_passages[0]
            found = decide_by_rules(statement, work, only, only.score, self._points)
        usage = pool.total_usage + (alone.total_usage if alone else Usage())
        return Verified(decision=found, usage=usage)

    @property
    def _points(self) -> Points:
        if (self.reranker.backend.spec or {}).get("kind") == "local":
            return LOCAL_POINTS
        judge_point = self.reranker.effective_settings.threshold
        cut = judge_point if isinstance(judge_point, float) else 0.5
        return Points(cut, cut / 2)


def _for_statements(backend: Backend, rules: Domain | None) -> Backend:
    """Return a backend that asks no model to read a statement, and judges it by these rules."""
    if backend.asks_model and not backend.reads_by_rules:
        about = {**backend.about, "intent": "unread"}  # other answers than those of its model
        backend = replace(backend, intent=LocalRole(_read_nothing), about=about)
    if rules and isinstance(backend.judge, LlmJudge):
        about = {**backend.about, "rules": rules.to_dict()}
        backend = replace(backend, judge=backend.judge.with_rules(rules), about=about)
    return backend


def _find_threshold(reranker: EvidenceReranker) -> Any:
    """Return the judge's own threshold, or a higher one of the settings; a rule is for a pool."""
    given = reranker.settings.threshold
    own = reranker.with_settings(threshold=None).effective_settings.threshold
    return (
        max(own, given) if isinstance(given, int | float) and isinstance(own, int | float) else own
    )
