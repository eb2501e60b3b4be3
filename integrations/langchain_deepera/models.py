"""A judge where LangChain takes a cross-encoder."""

from typing import Unpack

from langchain_core.cross_encoders import BaseCrossEncoder

from deepera_graph import Backend, DeepEraError, EvidenceReranker, RerankResult
from deepera_graph.settings import SettingsKwargs


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
