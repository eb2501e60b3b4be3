"""What a cross-encoder is; those of sentence-transformers, and any object that scores pairs."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deepera_graph.errors import AnswerError, SettingsError
from deepera_graph.packages import call_foreign, import_extra
from deepera_graph.stores.embeddings import package_versions, weights
from deepera_graph.usage import Usage

Pair = tuple[str, str]  # question, and title and text of a passage
_EXTRA = "sentence-transformers"
_STACK = ("sentence-transformers", "transformers", "torch")


class PairReading(NamedTuple):
    """What a model made of one pair."""

    value: float  # a logit, or a probability if the model is said to give these; may be NaN
    note: str = ""  # what a reader of the judgement should know, e.g. that the passage was cut


class PairModel(ABC):
    """A cross-encoder; it is called from one thread at a time."""

    name: str  # what people call it
    version: str  # tells its weights from others
    max_tokens: int | None = None  # of a pair, as far as that is known
    mixes: bool = False  # whether the value of a pair depends on the others of its batch
    batch_size: int = 32  # most pairs a call that are worth it, >= 1
    is_local: bool = True  # whether a call costs nothing

    @abstractmethod
    def read(self, pairs: Sequence[Pair]) -> list[PairReading]:
        """Return one reading a pair, in the same order; *pairs* is not empty."""

    def renew(self) -> None:  # noqa: B027 - most have nothing to give up
        """Give up what does not survive a fork; called in the child, before `read`."""


def with_title(title: str, text: str) -> str:
    """Return a passage as cross-encoders read it: its title as a sentence, then its text."""
    plain = title.strip()
    end = " " if plain.endswith((".", "?", "!")) else ". "
    return f"{plain}{end}{text}" if plain else text


def logits_of(found: Any, n: int) -> list[float]:
    """Return one logit a pair, of *found* in shape (n,), (n, 1) or (n, 2)."""
    # Of two classes it is the second's minus the first's, whose logistic function is the softmax.
    try:
        values = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise AnswerError(f"the model gave no numbers: {error}", usage=Usage()) from error
    if values.shape == (n, 2):
        values = values[:, 1] - values[:, 0]
    if values.shape not in ((n,), (n, 1)):
        raise AnswerError(
            f"the model must give one number a pair, or two; for {n} it gave {values.shape}",
            usage=Usage(),
        )
    return [float(value) for value in values.reshape(n)]


class SentenceModel(PairModel):
    """A cross-encoder of sentence-transformers, its own activation function put aside."""

    def __init__(self, model: str, *, max_tokens: int | None = None) -> None:
        folder = Path(model).expanduser()
        what = (
            "" if folder.is_dir() else f"{model!r} is no file or folder, and a model by that name"
        )
        package = import_extra("sentence_transformers", extra=_EXTRA, what=what)
        if "transformers" in sys.modules:
            sys.modules["transformers"].utils.logging.disable_progress_bar()
        place, about = weights(model)
        stack = ", ".join(f"{name} {one}" for name, one in package_versions(*_STACK).items())
        self.name = folder.resolve().name if folder.is_dir() else model
        self.version = about.get("sha256") or stack
        options = {} if max_tokens is None else {"max_length": max_tokens}
        self._model: Any = call_foreign(
            f"no weights of {model!r}", lambda: package.CrossEncoder(place, **options)
        )
        n_labels = getattr(self._model, "num_labels", 1)
        if n_labels > 2:
            raise SettingsError(f"{model!r} must give one logit a pair, or two, gives {n_labels}")
        self._logits = leave_logits(self._model)
        self.max_tokens = getattr(self._model, "max_length", None)

    def read(self, pairs: Sequence[Pair]) -> list[PairReading]:
        """Return the logit of each pair."""
        found = self._model.predict(
            list(pairs), batch_size=len(pairs), show_progress_bar=False, **self._logits
        )
        return [PairReading(value) for value in logits_of(found, len(pairs))]


def leave_logits(model: Any) -> dict[str, Any]:
    """Return the options with which a sentence-transformers model leaves logits as they are."""
    if type(model).__module__.partition(".")[0] != "sentence_transformers":
        return {}
    return {"activation_fn": import_extra("torch", extra=_EXTRA).nn.Identity()}


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
