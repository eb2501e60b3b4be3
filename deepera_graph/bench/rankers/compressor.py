"""Any LangChain document compressor as a ranker."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import BaseDocumentCompressor, Document

from deepera_graph.bench.errors import RankingError
from deepera_graph.bench.rankers.ranker import Passage, Ranking

_PLACE = "bench_place"
_SCORE = "relevance_score"


class Compressor:
    """Ranks by the order in which a compressor returns documents; what it drops is a miss.

    Args:
        compressor: Keeps the metadata of the documents it returns, as LangChain's do.
        name: What the table calls it.
        fingerprint: Model, version and settings, as plain data; None if not known, then nothing is
            cached.
    """

    def __init__(
        self,
        compressor: BaseDocumentCompressor,
        *,
        name: str,
        fingerprint: Mapping[str, Any] | None = None,
    ) -> None:
        self.name, self.fingerprint = name, fingerprint
        self._compressor = compressor

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return what the compressor returned, with its `relevance_score`, else minus the rank.

        Raises:
            RankingError: A returned document has lost its metadata.
        """
        documents = [_document(passage) for passage in passages]
        returned = self._compressor.compress_documents(documents, question)
        return [self._read(document, rank) for rank, document in enumerate(returned, start=1)]

    def _read(self, document: Document, rank: int) -> tuple[str, float]:
        place = document.metadata.get(_PLACE)
        if not isinstance(place, str):
            raise RankingError(f"ranker {self.name!r} returned a document without its metadata")
        score = document.metadata.get(_SCORE)
        return place, -float(rank) if score is None else float(score)


def _document(passage: Passage) -> Document:
    told = {key: passage[key] for key in ("title", "section") if passage[key]}
    return Document(
        id=passage["id"], page_content=passage["text"], metadata={**told, _PLACE: passage["id"]}
    )
