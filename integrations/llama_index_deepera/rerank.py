"""A LlamaIndex node postprocessor that keeps the nodes that give evidence."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Self, Unpack

from langchain_core.documents import Document
from llama_index.core.bridge.pydantic import Field, PrivateAttr, field_serializer
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher

from deepera_graph import Backend, EvidenceReranker, InputError, RerankResult
from deepera_graph.settings import SettingsKwargs
from langchain_deepera.base import kept_documents

_KEY = "deepera"
_dispatcher = get_dispatcher(__name__)


class DeepEraRerank(BaseNodePostprocessor):
    """Keeps the nodes that give direct evidence for a query, best first.

    ``index.as_query_engine(similarity_top_k=30, node_postprocessors=[DeepEraRerank(top_n=5)])``

    What comes back are new nodes with their ids, texts and metadata, scored in [0, 1]; a `deepera`
    key of the metadata has the rest: rank, reason, direction, quote, summary, citation and the
    first stage's score. No model is shown that key. A node that could not be judged is left out
    and a warning is logged; it never has a score of 0.

    Args:
        backend: Who judges, as for `EvidenceReranker`: a `Backend`, its name, or its plain form.
        preset: Settings to begin with: ``"fast"``, ``"careful"`` or ``"cheap"``.
        reranker: A reranker that was made before, instead of a backend.
        callback_manager: LlamaIndex's callbacks, which are told of each rerank.
        settings: What `to_dict` wrote: settings that those given by name count more than.
        named: Settings by name, e.g. ``top_n=5, threshold=0.5``; see `deepera_graph.Settings`.

    Raises:
        SettingsError: A setting is unknown or out of range, or the backend cannot be built.
    """

    backend: Any = Field(description="Who judges.")
    settings: dict[str, Any] = Field(description="Settings of deepera_graph, by name.")
    _reranker: EvidenceReranker = PrivateAttr()

    def __init__(
        self,
        backend: Backend | str | Mapping[str, Any] = "local",
        *,
        preset: str | None = None,
        reranker: EvidenceReranker | None = None,
        callback_manager: CallbackManager | None = None,
        settings: Mapping[str, Any] | None = None,
        **named: Unpack[SettingsKwargs],
    ) -> None:
        chosen: Any = {**(settings or {}), **named}
        if reranker is None:
            made = EvidenceReranker(backend, preset=preset, **chosen)
        else:
            made = reranker.with_settings(**chosen) if chosen else reranker
        values: Any = {"backend": made.backend, "settings": made.settings.to_dict()}
        super().__init__(callback_manager=callback_manager or CallbackManager([]), **values)
        self._reranker = made

    @classmethod
    def class_name(cls) -> str:
        """Name the class, in what `to_dict` writes."""
        return "DeepEraRerank"

    @classmethod
    def from_reranker(cls, reranker: EvidenceReranker) -> Self:
        """Return a postprocessor on a reranker that was made before."""
        return cls(reranker=reranker)

    @property
    def reranker(self) -> EvidenceReranker:
        """Who reranks."""
        return self._reranker

    def __reduce__(self) -> tuple[Any, ...]:
        # LlamaIndex would leave out a judge that cannot be pickled, and the default would judge
        return partial(type(self), reranker=self._reranker), ()

    @field_serializer("backend")
    def _backend_to_plain(self, _: object) -> Any:
        return self._reranker.to_dict()["backend"]

    def find(self, nodes: Sequence[NodeWithScore], query: str) -> RerankResult:
        """Return the whole result: also what was dropped or could not be judged, and why."""
        return self._reranker.rerank(query, _to_documents(nodes))

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = _read_query(query_bundle)
        if not nodes:
            return []
        with self._told(nodes, query) as kept:
            kept.extend(_to_nodes(self.find(nodes, query), nodes))
        return kept

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = _read_query(query_bundle)
        if not nodes:
            return []
        with self._told(nodes, query) as kept:
            result = await self._reranker.arerank(query, _to_documents(nodes))
            kept.extend(_to_nodes(result, nodes))
        return kept

    @contextmanager
    def _told(self, nodes: list[NodeWithScore], query: str) -> Iterator[list[NodeWithScore]]:
        """Tell callbacks and instrumentation of a rerank; what is kept goes into the list."""
        name, top_n = self._reranker.backend.name, self._reranker.settings.top_n
        kept: list[NodeWithScore] = []
        _dispatcher.event(ReRankStartEvent(query=query, nodes=nodes, top_n=top_n, model_name=name))
        payload: dict[Any, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: name,
            EventPayload.QUERY_STR: query,
            EventPayload.TOP_K: top_n,
        }
        with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
            yield kept
            event.on_end(payload={EventPayload.NODES: kept})
        _dispatcher.event(ReRankEndEvent(nodes=kept))


def _read_query(query_bundle: QueryBundle | None) -> str:
    if query_bundle is None:
        raise InputError("DeepEraRerank needs the query: give query_str or query_bundle")
    return str(query_bundle.query_str)


def _to_documents(nodes: Sequence[NodeWithScore]) -> list[Document]:
    """Return nodes as passages; their places are the ranks of the first stage."""
    return [
        Document(
            id=one.node.node_id,
            page_content=one.node.get_content(metadata_mode=MetadataMode.NONE),
            metadata={
                **one.node.metadata,
                "retrieval_rank": place,
                "retrieval_score": one.score,
            },
        )
        for place, one in enumerate(nodes, start=1)
    ]


def _to_nodes(result: RerankResult, nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Return the kept nodes as copies, each with its verdict."""
    kept = []
    for one in kept_documents(result):
        verdict = one.metadata[_KEY]
        node = nodes[verdict["retrieval_rank"] - 1].node
        changes = {
            "metadata": {**node.metadata, _KEY: verdict},
            "excluded_embed_metadata_keys": _with_key(node.excluded_embed_metadata_keys),
            "excluded_llm_metadata_keys": _with_key(node.excluded_llm_metadata_keys),
        }
        copy = node.model_copy(update=changes)
        kept.append(NodeWithScore(node=copy, score=one.metadata["relevance_score"]))
    return kept


def _with_key(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*names, _KEY]))
