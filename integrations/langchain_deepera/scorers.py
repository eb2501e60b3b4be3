"""Rerankers of other packages as a LangChain compressor."""

from collections.abc import Mapping, Sequence
from inspect import signature
from math import isfinite
from typing import Any, Literal

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, Field, model_validator

from deepera_graph import InputError, SettingsError

_METHODS: tuple[Literal["predict", "rank", "get_scores"], ...] = ("predict", "rank", "get_scores")


class ScorerCompressor(BaseDocumentCompressor):
    """Orders documents by the scores of any object that scores texts for a query.

    ``ScorerCompressor(scorer=CrossEncoder("cross-encoder/ms-marco-MiniLM-L6-v2"), top_n=5)``

    The scorer has one of these methods, and the first that it has is called:

    - ``predict(pairs)`` with (query, text) pairs, one number each: cross-encoders of
      sentence-transformers;
    - ``rank(query, texts)`` with results that name a place and a score: the models of `rerankers`,
      or cross-encoders;
    - ``get_scores(query, texts)``, one number each.

    What comes back are new documents with their ids and metadata and `relevance_score`, on the
    scorer's own scale; equal scores keep the order they came in. A text that a `rank` leaves out is
    left out.

    Attributes:
        scorer: The object that scores.
        top_n: Most documents returned, >= 1; None is all.

    Raises:
        SettingsError: The scorer has none of the methods, or `top_n` is below 1.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    scorer: Any = Field(description="What scores texts for a query.")
    top_n: int | None = None

    @model_validator(mode="after")
    def _check(self) -> "ScorerCompressor":
        if self.top_n is not None and self.top_n < 1:
            raise SettingsError(f"top_n must be >= 1, got {self.top_n}")
        self._find_method()
        return self

    def _find_method(self) -> Literal["predict", "rank", "get_scores"]:
        found = next((one for one in _METHODS if callable(getattr(self.scorer, one, None))), None)
        if found is None:
            raise SettingsError(
                f"scorer must have predict, rank or get_scores, got {self.scorer!r:.80}"
            )
        if found == "get_scores" and len(signature(self.scorer.get_scores).parameters) < 2:
            raise SettingsError(
                "get_scores must take a query and texts; that of an index of its own, such as "
                f"BM25Okapi, cannot score documents, got {self.scorer!r:.80}"
            )
        return found

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> list[Document]:
        """Return the documents by falling score; none of those handed in is changed.

        Raises:
            InputError: The scorer gave no score a text, or one that is no number.
        """
        if not documents:
            return []
        texts = [one.page_content for one in documents]
        scores = self._score(query, texts)
        for place, score in scores.items():
            if place not in range(len(texts)) or not isfinite(score):
                raise InputError(
                    f"scorer gave the score {score} to text {place + 1} of {len(texts)}"
                )
        order = sorted(scores, key=lambda place: (-scores[place], place))
        return [_scored(documents[place], scores[place]) for place in order[: self.top_n]]

    def _score(self, query: str, texts: list[str]) -> dict[int, float]:
        """Return a score by the place of a text."""
        method = self._find_method()
        if method == "rank":
            return _read_ranked(self.scorer.rank(query, texts))
        if method == "predict":
            given = self.scorer.predict([(query, text) for text in texts])
        else:
            given = self.scorer.get_scores(query, texts)
        found = list(given)
        if len(found) != len(texts):
            raise InputError(f"scorer must give {len(texts)} scores, gave {len(found)}")
        return dict(enumerate(map(_to_number, found)))


def _read_ranked(given: Any) -> dict[int, float]:
    """Read results with a place and a score, as dicts or as objects."""
    results = given if isinstance(given, Sequence) else getattr(given, "results", given)
    found: dict[int, float] = {}
    for place, one in enumerate(results):
        fields = one if isinstance(one, Mapping) else vars(one)
        document = fields.get("document")
        named = fields.get("corpus_id", fields.get("doc_id", fields.get("index")))
        if named is None and document is not None:
            named = getattr(document, "doc_id", None)
        score = fields.get("score", fields.get("relevance_score"))
        if named is None:
            raise InputError(f"result {place + 1} of rank names no text: {one!r:.80}")
        # a ranking without scores still has an order
        found[int(named)] = -float(place) if score is None else _to_number(score)
    return found


def _to_number(score: Any) -> float:
    try:
        return float(score)
    except (TypeError, ValueError) as error:
        raise InputError(f"scorer must give one number a text, gave {score!r:.80}") from error


def _scored(document: Document, score: float) -> Document:
    return Document(
        id=document.id,
        page_content=document.page_content,
        metadata={**document.metadata, "relevance_score": score},
    )
