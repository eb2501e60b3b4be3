"""A Haystack ranker that keeps the documents that give evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from haystack import Document, component, default_from_dict, default_to_dict
from langchain_core.documents import Document as Candidate

from deepera_graph import Backend, EvidenceReranker, RerankResult, Settings, SettingsError
from langchain_deepera.base import kept_documents

_KEY = "deepera"


@component
class DeepEraRanker:
    """Keeps the documents that give direct evidence for a query, best first.

    ``pipeline.add_component("ranker", DeepEraRanker(top_k=5))``

    What comes back are new documents with their ids, contents and meta, scored in [0, 1]; a
    `deepera` key of the meta has the rest: rank, reason, direction, quote, summary, citation and
    the first stage's score. Documents that could not be judged come back under `failed`, with the
    reason and without a score; they are never scored 0. Of documents with one id the one with the
    highest score counts, as with other rankers.

    Args:
        backend: Who judges, as for `deepera_graph.EvidenceReranker`: its name, its plain form, or
            a `Backend`. It is built by `warm_up`.
        preset: Settings to begin with: ``"fast"``, ``"careful"`` or ``"cheap"``.
        top_k: Most documents kept, >= 1.
        threshold: Lowest score kept, in [0, 1]; None is the judge's own.
        settings: Further settings of `deepera_graph.Settings`, by name.

    Raises:
        SettingsError: A setting is unknown, out of range or given twice.
    """

    def __init__(
        self,
        backend: Backend | str | Mapping[str, Any] = "local",
        *,
        preset: str | None = None,
        top_k: int = 10,
        threshold: float | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.backend, self.preset = backend, preset
        self.top_k, self.threshold = top_k, threshold
        self.settings = dict(settings or {})
        if "top_n" in self.settings or (threshold is not None and "threshold" in self.settings):
            raise SettingsError("give top_k and threshold to the ranker itself, not in settings")
        self._chosen: Any = {**self.settings, "top_n": top_k}
        if threshold is not None:
            self._chosen["threshold"] = threshold
        Settings.check_names(self._chosen)
        Settings.of(self._chosen)
        self._reranker: EvidenceReranker | None = None

    def warm_up(self) -> None:
        """Build the judge, if that was not done before.

        Raises:
            SettingsError: It cannot be built.
        """
        if self._reranker is None:
            self._reranker = EvidenceReranker(self.backend, preset=self.preset, **self._chosen)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `from_dict` reads; it holds no secret.

        Raises:
            SettingsError: The backend was made from live objects and cannot be written down.
        """
        plain: dict[str, Any] = default_to_dict(
            self,
            backend=_describe_backend(self.backend),
            preset=self.preset,
            top_k=self.top_k,
            threshold=self.threshold,
            settings=_describe_settings(self.settings),
        )
        return plain

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Build what `to_dict` wrote down; clients are made anew."""
        return default_from_dict(cls, data)  # type: ignore[no-any-return,unused-ignore]

    @component.output_types(documents=list[Document], failed=list[Document], outcome=str)
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, Any]:
        """Keep the documents that give evidence.

        Args:
            query: The question; not blank unless there are no documents.
            documents: In first-stage order; none of them is changed.
            top_k: Most documents kept, instead of that of the ranker.

        Returns:
            `documents`, best first; `failed`, those that could not be judged; and the `outcome`, as
            in `deepera_graph.RerankResult`: ``ok`` if evidence was kept.

        Raises:
            InputError: The query is blank.
            BackendError: No document could be judged.
        """
        candidates = _deduplicate(documents)
        if not candidates:
            return _find_nothing()
        result = self._with(top_k).rerank(query, _to_candidates(candidates))
        return _describe(result, candidates)

    @component.output_types(documents=list[Document], failed=list[Document], outcome=str)
    async def run_async(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, Any]:
        """Do what `run` does, in the running loop."""
        candidates = _deduplicate(documents)
        if not candidates:
            return _find_nothing()
        result = await self._with(top_k).arerank(query, _to_candidates(candidates))
        return _describe(result, candidates)

    def _with(self, top_k: int | None) -> EvidenceReranker:
        self.warm_up()
        reranker: Any = self._reranker
        made: EvidenceReranker = reranker if top_k is None else reranker.with_settings(top_n=top_k)
        return made


def _find_nothing() -> dict[str, Any]:
    return {"documents": [], "failed": [], "outcome": "nothing_retrieved"}


def _describe_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that were given as plain data: others would undo a preset."""
    plain = Settings.of(settings).to_dict()
    return {name: plain[name] for name in settings}


def _describe_backend(backend: Backend | str | Mapping[str, Any]) -> Any:
    if not isinstance(backend, Backend):
        return dict(backend) if isinstance(backend, Mapping) else backend
    if backend.spec is None:
        raise SettingsError(
            f"backend {backend.name!r} was made from live objects; to write it down, name a "
            "factory: DeepEraRanker('package.module:factory')"
        )
    return dict(backend.spec)


def _deduplicate(documents: Sequence[Document]) -> list[Document]:
    best: dict[str, Document] = {}
    for one in documents:
        known = best.get(one.id)
        if known is None or _score(one) > _score(known):
            best[one.id] = one
    return list(best.values())


def _score(document: Document) -> float:
    return float("-inf") if document.score is None else float(document.score)


def _to_candidates(documents: Sequence[Document]) -> list[Candidate]:
    """Return documents as passages; their places are the ranks of the first stage."""
    return [
        Candidate(
            id=one.id,
            page_content=one.content or "",
            metadata={**one.meta, "retrieval_rank": place, "retrieval_score": one.score},
        )
        for place, one in enumerate(documents, start=1)
    ]


def _describe(result: RerankResult, documents: Sequence[Document]) -> dict[str, Any]:
    """Return the kept documents and those that failed as copies, each with its verdict."""
    kept = []
    for one in kept_documents(result):
        verdict = one.metadata[_KEY]
        given = documents[verdict["retrieval_rank"] - 1]
        score = one.metadata["relevance_score"]
        kept.append(replace(given, score=score, meta={**given.meta, _KEY: verdict}))
    failed = []
    for each in result.failed:
        given = documents[each.retrieval_rank - 1]
        why = {"status": each.status, "reason": each.reason}
        failed.append(replace(given, score=None, meta={**given.meta, _KEY: why}))
    return {"documents": kept, "failed": failed, "outcome": result.outcome}
