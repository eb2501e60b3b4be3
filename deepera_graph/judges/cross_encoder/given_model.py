"""An object of the user's that scores pairs."""

from collections.abc import Sequence
from typing import Any

from deepera_graph.errors import AnswerError, SettingsError
from deepera_graph.judges.cross_encoder.pairs import Pair, PairModel, PairReading, logits_of
from deepera_graph.judges.cross_encoder.sentence_model import leave_logits
from deepera_graph.usage import Usage

_METHODS = ("predict", "rank", "score")


class GivenModel(PairModel):
    """A live object, asked by the first of these methods that it has; a pair counts as one call.

    | method | object |
    |---|---|
    | ``predict(pairs)`` | a `CrossEncoder` of sentence-transformers, or like it |
    | ``rank(query=, docs=, doc_ids=)`` | a model of the `rerankers` package (Clavié 2024) |
    | ``score(pairs)`` | a `BaseCrossEncoder` of LangChain |
    """

    is_local = False
    version = "a live object"

    def __init__(self, model: Any) -> None:
        method = next((one for one in _METHODS if callable(getattr(model, one, None))), None)
        if method is None:
            raise SettingsError(
                "model must be a name, a path, or an object with predict(pairs), score(pairs) or "
                f"rank(query, docs, doc_ids), got {model!r:.80}"
            )
        self._model, self._method = model, method
        self._options = leave_logits(model) if method == "predict" else {}
        self.name = str(getattr(model, "model_name", None) or type(model).__name__)

    def read(self, pairs: Sequence[Pair]) -> list[PairReading]:
        """Return the number that the object gives to each pair."""
        if self._method == "rank":
            return [PairReading(value) for value in self._rank(pairs)]
        found = getattr(self._model, self._method)(list(pairs), **self._options)
        return [PairReading(value) for value in logits_of(found, len(pairs))]

    def _rank(self, pairs: Sequence[Pair]) -> list[float]:
        places: dict[str, list[int]] = {}
        for place, (question, _) in enumerate(pairs):
            places.setdefault(question, []).append(place)
        values: dict[int, float] = {}
        for question, own in places.items():
            docs = [pairs[place][1] for place in own]
            found = self._model.rank(query=question, docs=docs, doc_ids=own)
            for one in found.results:
                if one.score is None:
                    raise AnswerError("the model ranks, but gives no scores", usage=Usage())
                values[one.document.doc_id] = float(one.score)
        if missing := len(pairs) - len(values):
            raise AnswerError(f"the model left out {missing} of {len(pairs)}", usage=Usage())
        return [values[place] for place in range(len(pairs))]
