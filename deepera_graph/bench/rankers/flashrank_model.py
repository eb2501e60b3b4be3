"""The small ONNX rerankers of the `flashrank` package; no torch is needed."""

from collections.abc import Mapping, Sequence
from typing import Any

from deepera_graph.bench.rankers.optional import (
    foreign,
    imported,
    need,
    same_logging,
    versions,
)
from deepera_graph.bench.rankers.ranker import Passage, Ranking, by_score, texts_of

DEFAULT_MODEL = "ms-marco-TinyBERT-L-2-v2"


class FlashRank:
    """Ranks with a model of FlashRank, downloaded by it on first use.

    Args:
        model: A name that the package knows.

    Raises:
        UnavailableError: The package is not installed.
    """

    def __init__(self, model: str = DEFAULT_MODEL) -> None:
        need("flashrank", install="flashrank")
        self.name = f"FlashRank {model}"
        self._model_name = model
        stack = versions("flashrank", "onnxruntime")
        self.fingerprint: Mapping[str, Any] | None = {"kind": "flashrank", "model": model, **stack}
        self._model: Any = None

    def prepare(self) -> None:
        """Load the weights.

        Raises:
            UnavailableError: They cannot be loaded.
        """
        if self._model is None:
            self._model = foreign("no weights", self._loaded)

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return all passages by the model's score, in [0, 1].

        Raises:
            UnavailableError: The model cannot be loaded.
        """
        if not passages:
            return []
        self.prepare()
        scores = foreign("no scores", lambda: self._scores(question, texts_of(passages)))
        return by_score(passages, scores)

    def _loaded(self) -> Any:
        with same_logging():
            return imported("flashrank").Ranker(model_name=self._model_name, log_level="WARNING")

    def _scores(self, question: str, texts: Sequence[str]) -> list[float]:
        package = imported("flashrank")
        shown = [{"id": place, "text": text} for place, text in enumerate(texts)]
        found = self._model.rerank(package.RerankRequest(query=question, passages=shown))
        by_place = {one["id"]: float(one["score"]) for one in found}
        return [by_place[place] for place in range(len(texts))]
