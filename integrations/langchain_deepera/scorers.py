"""A judge where LangChain takes a cross-encoder, and other rerankers as a compressor."""

from collections.abc import Mapping, Sequence
from inspect import signature
from math import isfinite
from typing import Any, Literal, Unpack

from langchain_core.callbacks import Callbacks
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, Field, model_validator

from deepera_graph import (
    Backend,
    DeepEraError,
    EvidenceReranker,
    InputError,
    RerankResult,
    SettingsError,
)
from deepera_graph.settings import SettingsKwargs

_METHODS: tuple[Literal["predict", "rank", "get_scores"], ...] = ("predict", "rank", "get_scores")


class EvidenceCrossEncoder(BaseCrossEncoder):
    """Scores pairs of question and text as evidence, wherever LangChain takes a cross-encoder.

    ``CrossEncoderReranker(model=EvidenceCrossEncoder(), top_n=5)``

    The scores are those of `EvidenceReranker` on the same texts. A judge that looks at all passages
    of a question together, as the trained local one does, sees all texts of a call that have the
    same question: give it those of a question in one call, as LangChain does.

    Args:
        backend: Who judges: a `Backend`, or its name.
        settings: See `deepera_graph.Settings`; nothing is filtered or summarized here, and every
            text gets a score, whatever is `stop_after`.

    Raises:
        SettingsError: The backend cannot be built, or a setting is out of range.
    """

    def __init__(
        self, backend: Backend | str = "local", **settings: Unpack[SettingsKwargs]
    ) -> None:
        asked: SettingsKwargs = {"content": "passage", **settings, "stop_after": None}
        self._reranker = EvidenceReranker(backend, **asked)

    @property
    def backend(self) -> Backend:
        """Who judges."""
        return self._reranker.backend

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        """Return the score of each (question, text), in [0, 1], in the same order.

        Raises:
            InputError: A question or a text is blank.
            BackendError: Nothing of a question could be judged.
            DeepEraError: A pair could not be judged: this interface has no place for that.
        """
        places: dict[str, list[int]] = {}
        for place, (question, _) in enumerate(text_pairs):
            places.setdefault(question, []).append(place)
        scores: dict[int, float] = {}
        for question, own in places.items():
            texts = [text_pairs[place][1] for place in own]
            found = _scores_in_order(self._reranker.rerank(question, texts), len(own))
            scores.update(zip(own, found, strict=True))
        return [scores[place] for place in range(len(text_pairs))]


def _scores_in_order(result: RerankResult, n: int) -> list[float]:
    """Return the scores in the order of the texts."""
    by_rank: dict[int, float] = {}
    for one in (*result.passages, *result.left_out):
        if one.score is None:
            raise DeepEraError(
                f"no score for the question {result.question!r:.80} and the text {one.text!r:.80}: "
                f"{one.reason}"
            )
        by_rank[one.retrieval_rank] = one.score
    return [by_rank[rank] for rank in range(1, n + 1)]


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
