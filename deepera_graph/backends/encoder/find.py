"""From a name, a path or an object to the model it stands for."""

from pathlib import Path
from typing import Any, Literal

from deepera_graph.backends.encoder.given_model import GivenModel
from deepera_graph.backends.encoder.onnx_model import OnnxModel, find_file
from deepera_graph.backends.encoder.pairs import PairModel
from deepera_graph.backends.encoder.sentence_model import SentenceModel
from deepera_graph.errors import SettingsError

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
