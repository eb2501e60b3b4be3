"""The record of what weights were trained on, without its texts."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from deepera_graph.errors import SettingsError
from deepera_graph.judge.head import Head
from deepera_graph.judge.train.folder import TRAINED_ON, head_of, write_text
from deepera_graph.judge.train.groups import question_key
from deepera_graph.judge.train.pool import Pool
from deepera_graph.version import __version__

_LIBRARIES = ("lightgbm", "scikit-learn", "numpy", "onnxruntime", "tokenizers")


def write_trained_on(folder: Path, pools: Sequence[Pool], *, seed: int) -> None:
    """Write sets, sizes, seed and libraries, and of each question a hash."""
    about = {
        "deepera_graph": __version__,
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "seed": seed,
        "sets": dict(Counter(pool.set for pool in pools)),
        "questions": sorted({question_key(pool.question) for pool in pools}),
    }
    write_text(folder, TRAINED_ON, json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def trained_questions(folder: Path) -> frozenset[str]:
    """Return the hashes of the questions that the weights of a folder were trained on.

    None are known if the folder has no record.

    Raises:
        SettingsError: The record cannot be read.
    """
    path = folder / TRAINED_ON
    if not path.exists():
        return frozenset()
    try:
        return frozenset(json.loads(path.read_text(encoding="utf-8"))["questions"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"{str(path)!r} is no record of what was trained on") from error


def seen(pools: Sequence[Pool], known: frozenset[str]) -> Mapping[str, int]:
    """Return, by set, how many questions are among the known ones."""
    return Counter(pool.set for pool in pools if question_key(pool.question) in known)


def unknowing(folder: Path, pools: Sequence[Pool]) -> Head | None:
    """Return the judge of a folder; None if there is none, or it was trained on one of the pools.

    Raises:
        SettingsError: A file is not what its checksum says, or of another version.
    """
    return None if seen(pools, trained_questions(folder)) else head_of(folder)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
