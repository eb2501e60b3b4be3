"""The weights of the trained judge: found at once, loaded at first use, one model a process."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from deepera_graph.backends.threads import threads_here
from deepera_graph.errors import DeepEraError, SettingsError
from deepera_graph.roles import PassageTask, SurveyTask
from deepera_graph.schema import Judgement

SUMS = "SHA256SUMS"
_MODEL = "deepera_graph.judge.model"
_DIGITS = 16

_Stamp = tuple[tuple[str, int, int], ...]  # name, bytes and last change of each file


class PoolModel(Protocol):
    """A trained judge. Calls may come from several threads at once.

    Attributes:
        version: What tells its weights from others.
    """

    version: str

    def survey(self, task: SurveyTask) -> list[dict[str, float]]:
        """Return notes on each passage, in order: what shows only beside the others."""
        ...

    def judge(self, task: PassageTask) -> Judgement:
        """Return the judgement of one passage; less well without notes."""
        ...

    def embed(self, texts: Sequence[str]) -> Any:
        """Return vectors of length 1, shape (n_texts, n_dimensions)."""
        ...


@dataclass(frozen=True, slots=True)
class Weights:
    """Where the weights are, and how many threads may use them.

    Attributes:
        folder: Of the weights, absolute; None for those that come with the package.
        threads: Texts read at once, >= 1; if None, those of OMP_NUM_THREADS, else one a core.
    """

    folder: str | None = None
    threads: int | None = None

    def version(self) -> str:
        """Return what tells these weights from others: 16 digits of a hash of their checksums.

        Raises:
            SettingsError: There are none.
        """
        place = self.place()
        sums = place / SUMS
        if not sums.is_file():
            raise SettingsError(f"there are no weights of a judge in {str(place)!r}: no {SUMS}")
        return sha256(sums.read_bytes()).hexdigest()[:_DIGITS]

    def place(self) -> Path:
        """Return the folder."""
        if self.folder is not None:
            return Path(self.folder)
        return Path(str(files("deepera_graph.judge"))) / "weights"

    def model(self) -> PoolModel:
        """Return the model, which all that have equal weights and threads share.

        Raises:
            SettingsError: The weights are damaged.
        """
        return _SHARED.model(self)


def local_model(weights: str | Path | None = None, *, threads: int | None = None) -> PoolModel:
    """Return the model behind `local_backend`, the same one in all of the process.

    Args:
        weights: Folder of weights; those that come with the package if None.
        threads: Texts read at once, >= 1; if None, those of OMP_NUM_THREADS, else one a core.

    Raises:
        SettingsError: There are no weights, they are damaged, or *threads* is out of range.
    """
    return find_weights(weights, threads).model()


def find_weights(folder: str | Path | None, threads: int | None) -> Weights:
    """Check where weights are said to be.

    Raises:
        SettingsError: *folder* is no folder, or *threads* is out of range.
    """
    given: object = threads
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
        raise SettingsError(f"threads must be a whole number >= 1, got {threads!r}")
    if folder is None:
        return Weights(threads=threads)
    place = Path(os.path.expanduser(folder))  # noqa: PTH111 - Path's own fails on a stranger's home
    if not place.is_dir():
        raise SettingsError(f"weights must be a folder, got {str(folder)!r}")
    return Weights(str(place.resolve()), threads)


class _Shared:
    """The models of this process; a forked child keeps them, and has a lock of its own.

    Weights that could not be loaded are not tried again, which would read them for every passage,
    until a file of theirs has changed.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._models: dict[Weights, PoolModel] = {}
        self._failed: dict[Weights, tuple[_Stamp, Exception]] = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def model(self, weights: Weights) -> PoolModel:
        with self._lock:
            if weights not in self._models:
                self._models[weights] = self._load(weights)
            return self._models[weights]

    def _load(self, weights: Weights) -> PoolModel:
        stamp = _stamp(weights.place())
        found, error = self._failed.get(weights, (None, None))
        if error is not None and found == stamp:
            raise error.with_traceback(None)
        try:
            return _load(weights)
        except (DeepEraError, ImportError, OSError) as failure:
            self._failed[weights] = stamp, failure
            raise

    def _renew(self) -> None:
        self._lock = Lock()


def _stamp(folder: Path) -> _Stamp:
    """Return what changes whenever a file of the folder does."""
    try:
        found = [(one.name, one.stat()) for one in folder.iterdir()]
    except OSError:
        return ()
    return tuple(sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in found))


def _load(weights: Weights) -> PoolModel:
    kind = import_module(_MODEL).EvidenceModel
    folder = None if weights.folder is None else Path(weights.folder)
    model: PoolModel = kind.load(folder, threads=threads_here(weights.threads) or None)
    return model


_SHARED = _Shared()
