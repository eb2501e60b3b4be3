"""Which cross-encoder a name means: ONNX, sentence-transformers, or an object that scores pairs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from deepera_graph.errors import AnswerError, SettingsError
from deepera_graph.judges.cross_encoder.onnx import OnnxModel
from deepera_graph.judges.cross_encoder.pairs import Pair, PairModel, PairReading, logits_of
from deepera_graph.packages import call_foreign, import_extra
from deepera_graph.stores.embeddings import package_versions, weights
from deepera_graph.usage import Usage

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


Kind = Literal["onnx", "sentence-transformers"]
_PATH_LIKE = ("/", "./", "../", "~", ".\\", "..\\")
_ONNX_FILES = ("model.onnx", "onnx/model.onnx")
_SIGNS: tuple[tuple[str, Kind], ...] = (  # what tells the kind of a folder, the first first
    (_ONNX_FILES[0], "onnx"),
    ("config.json", "sentence-transformers"),
    (_ONNX_FILES[1], "onnx"),
)


def find_encoder(
    model: Any, *, kind: Kind | None, max_tokens: int | None, threads: int | None
) -> PairModel:
    """Return the model that a name or a path stands for, or wrap an object."""
    if not isinstance(model, str):
        _refuse("a live object", kind=kind, max_tokens=max_tokens, threads=threads)
        return GivenModel(model)
    if (kind or _find_kind(model)) == "onnx":
        file = _find_file(Path(model).expanduser())
        return OnnxModel(file, max_tokens=max_tokens, threads=threads)
    _refuse("a model of sentence-transformers", threads=threads)
    return SentenceModel(model, max_tokens=max_tokens)


def _find_kind(model: str) -> Kind:
    """Tell an ONNX file, or a folder with one, from a folder or a name of sentence-transformers."""
    if not model.strip():
        raise SettingsError(f"model must be a name, a file or a folder, got {model!r}")
    place = Path(model).expanduser()
    if place.is_dir():
        return _find_kind_of_folder(place)
    if place.suffix.lower() == ".onnx":
        return "onnx"
    if place.is_file():
        raise SettingsError(f"model must be an ONNX file or a folder, got the file {model!r}")
    if model.startswith(_PATH_LIKE):
        raise SettingsError(f"model must be a name, a file or a folder; {model!r} does not exist")
    return "sentence-transformers"


def _find_kind_of_folder(folder: Path) -> Kind:
    for name, kind in _SIGNS:
        if (folder / name).is_file():
            return kind
    raise SettingsError(
        f"the folder {str(folder)!r} holds no model: neither model.onnx with tokenizer.json, nor "
        "config.json with weights"
    )


def _find_file(place: Path) -> Path:
    if not place.exists():
        raise SettingsError(f"{str(place)!r} does not exist")
    for one in (place, *(place / name for name in _ONNX_FILES)):
        if one.is_file():
            return one.resolve()
    raise SettingsError(f"{place} holds no model.onnx")


def _refuse(what: str, **options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise SettingsError(f"{name} does not go with {what}")
