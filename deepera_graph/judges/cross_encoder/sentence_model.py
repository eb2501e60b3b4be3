"""A cross-encoder of sentence-transformers."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deepera_graph.errors import SettingsError
from deepera_graph.judges.cross_encoder.pairs import Pair, PairModel, PairReading, logits_of
from deepera_graph.packages import call_foreign, import_extra
from deepera_graph.stores.weights import package_versions, weights

_EXTRA = "sentence-transformers"
_STACK = ("sentence-transformers", "transformers", "torch")


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
