"""A cross-encoder of sentence-transformers."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deepera_graph.backends.encoder.logits import logits_of
from deepera_graph.backends.encoder.packages import foreign, needed, versions
from deepera_graph.backends.encoder.pairs import Pair, Reading
from deepera_graph.backends.encoder.weights import weights
from deepera_graph.errors import SettingsError

BATCH_SIZE = 32
_EXTRA = "sentence-transformers"


class SentenceModel:
    """A cross-encoder of sentence-transformers, its own activation function put aside.

    Args:
        model: A folder, a package that brings a model, or a name on the Hugging Face hub.
        max_tokens: Most tokens of a pair; by default what the model says.

    Raises:
        SettingsError: The package is not installed, the weights cannot be loaded, or the model has
            more than two classes.
    """

    is_local = True
    mixes = False
    batch_size = BATCH_SIZE

    def __init__(self, model: str, *, max_tokens: int | None = None) -> None:
        folder = Path(model).expanduser()
        no_folder = f"{model!r} is no file or folder, and for a model of that name "
        package = needed(
            "sentence_transformers", extra=_EXTRA, before="" if folder.is_dir() else no_folder
        )
        if "transformers" in sys.modules:
            sys.modules["transformers"].utils.logging.disable_progress_bar()
        place, about = weights(model)
        stack = versions("sentence-transformers", "transformers", "torch")
        self.name = folder.resolve().name if folder.is_dir() else model
        self.version = about.get("sha256") or ", ".join(f"{k} {v}" for k, v in stack.items())
        self._model: Any = foreign(
            f"no weights of {model!r}",
            lambda: package.CrossEncoder(
                place, **({} if max_tokens is None else {"max_length": max_tokens})
            ),
        )
        n_labels = getattr(self._model, "num_labels", 1)
        if n_labels > 2:
            raise SettingsError(f"{model!r} must give one logit a pair, or two, gives {n_labels}")
        self._logits = logits_alone(self._model)
        self.max_tokens: int | None = getattr(self._model, "max_length", None)

    def read(self, pairs: Sequence[Pair]) -> list[Reading]:
        """Return the logit of each pair."""
        found = self._model.predict(
            list(pairs), batch_size=len(pairs), show_progress_bar=False, **self._logits
        )
        return [Reading(value) for value in logits_of(found, len(pairs))]

    def renew(self) -> None:
        """Do nothing: torch is not made to be used on both sides of a fork."""


def logits_alone(model: Any) -> dict[str, Any]:
    """Return the options with which a sentence-transformers model leaves logits as they are."""
    if type(model).__module__.partition(".")[0] != "sentence_transformers":
        return {}
    return {"activation_fn": needed("torch", extra=_EXTRA).nn.Identity()}
