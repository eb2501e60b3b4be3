"""Which cross-encoder a name, a path or an object stands for."""

from pathlib import Path
from typing import Any, Literal

from deepera_graph.errors import SettingsError
from deepera_graph.judges.cross_encoder.given_model import GivenModel
from deepera_graph.judges.cross_encoder.onnx_model import OnnxModel
from deepera_graph.judges.cross_encoder.pairs import PairModel
from deepera_graph.judges.cross_encoder.sentence_model import SentenceModel

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
