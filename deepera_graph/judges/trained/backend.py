"""`local_backend`, and the weights behind it: loaded at first use, one model a process."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from threading import RLock, Thread
from typing import TYPE_CHECKING, Any, Literal, get_args

from langchain_core.runnables import RunnableConfig

from deepera_graph.errors import CallError, DeepEraError, SettingsError
from deepera_graph.judges.base import CountedJudge, Judge, PlanRequest
from deepera_graph.judges.heuristic.analysis import find_missing
from deepera_graph.judges.heuristic.roles import find_question_problem, heuristic_backend
from deepera_graph.packages import threads_here
from deepera_graph.schema import Backend, Batch, Judgement, Window
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.settings.thresholds import OPERATING_POINT
from deepera_graph.usage import Usage

if TYPE_CHECKING:
    from deepera_graph.judges.trained.model import EvidenceModel

SUMS = "SHA256SUMS"
KEEP_MB = 256
_DIGITS = 16
_SHORT = 4  # letters of ``zinc`` and ``iron``
_MOST_COMPARED = 200  # windows whose vectors are still in memory when they were judged
_POINT = rb'"%s":\s*([0-9.]+)'

_Stamp = tuple[tuple[str, int, int], ...]  # name, bytes and last change of each file


@dataclass(frozen=True, slots=True)
class Weights:
    """Where the weights are, and how many threads may use them."""

    folder: str | None = None  # of the weights, absolute; None for those that come with the package
    # texts read at once, >= 1; if None, those of OMP_NUM_THREADS, else one a core
    threads: int | None = None
    keep_in: str | None = None  # folder where vectors are kept, absolute
    keep_mb: float = KEEP_MB  # the most that they may take there

    def version(self) -> str:
        """Return what tells these weights from others: 16 digits of a hash of their checksums."""
        place = self.place()
        sums = place / SUMS
        if not sums.is_file():
            raise SettingsError(f"no judge weights in {str(place)!r}: no {SUMS}")
        return sha256(sums.read_bytes()).hexdigest()[:_DIGITS]

    def place(self) -> Path:
        """Return the folder."""
        if self.folder is not None:
            return Path(self.folder)
        return Path(__file__).parent / "weights"

    def operating_point(self) -> float:
        """Return the score, in [0, 1], from which on a passage is evidence, as training found it.

        That of judges that name none if the weights do not say, or are damaged: judging says so.
        """
        point = self._read_point(b"operating_point")
        return OPERATING_POINT if point is None else point

    def evidence_point(self) -> float | None:
        """Return the score, in [0, 1], from which on what is kept is evidence; None if not told."""
        return self._read_point(b"evidence_point")

    def _read_point(self, name: bytes) -> float | None:
        with suppress(OSError, ValueError):
            head = self.place() / "head.json"
            now = head.stat()
            return _find_point(head, name, (now.st_size, now.st_mtime_ns))
        return None

    def model(self) -> "EvidenceModel":
        """Return the model, which all that have equal weights and threads share.

        Those that keep vectors in different folders share all of it but that.
        """
        return _SHARED.model(self)


@lru_cache(maxsize=16)
def _find_point(head: Path, name: bytes, stamp: tuple[int, int]) -> float | None:
    """Find a number among megabytes of trees; *stamp* is another one once the file has changed."""
    found = re.search(_POINT % name, head.read_bytes())
    return None if found is None else float(found[1])


def local_model(
    weights: str | Path | None = None,
    *,
    threads: int | None = None,
    keep_in: str | Path | None = None,
    keep_mb: float | None = None,
) -> "EvidenceModel":
    """Return the model behind `local_backend`, the same one in all of the process.

    Args:
        weights: Folder of weights; those that come with the package if None.
        threads: Texts read at once, >= 1; if None, those of OMP_NUM_THREADS, else one a core.
        keep_in: As for `local_backend`.
        keep_mb: As for `local_backend`.

    Raises:
        SettingsError: There are no weights, they are damaged, or a number is out of range.
    """
    return find_weights(weights, threads, keep_in=keep_in, keep_mb=keep_mb).model()


def find_weights(
    folder: str | Path | None,
    threads: int | None,
    *,
    keep_in: str | Path | None = None,
    keep_mb: float | None = None,
) -> Weights:
    """Check where weights are said to be, and where vectors are to be kept."""
    if threads is not None:
        check_at_least("threads", threads, 1)
    if keep_mb is not None and keep_in is None:
        raise SettingsError("keep_mb goes with keep_in, the folder where vectors are kept")
    if keep_mb is not None and not keep_mb > 0:
        raise SettingsError(f"keep_mb must be > 0, got {keep_mb!r}")
    if keep_in == "":
        raise SettingsError("keep_in must be a folder, got ''")
    how = Weights(
        threads=threads,
        keep_in=None if keep_in is None else str(_expand(keep_in).resolve()),
        keep_mb=KEEP_MB if keep_mb is None else keep_mb,
    )
    if folder is None:
        return how
    place = _expand(folder)
    if not place.is_dir():
        raise SettingsError(f"weights must be a folder, got {str(folder)!r}")
    return replace(how, folder=str(place.resolve()))


def _expand(folder: str | Path) -> Path:
    return Path(os.path.expanduser(folder))  # noqa: PTH111 - Path's own fails on a stranger's home


class _Shared:
    """The models of this process; a forked child keeps them, and has a lock of its own.

    Weights that could not be loaded are not tried again, which would read them for every passage,
    until a file of theirs has changed.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._models: dict[Weights, EvidenceModel] = {}
        self._failed: dict[Weights, tuple[_Stamp, Exception]] = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def model(self, weights: Weights) -> "EvidenceModel":
        with self._lock:
            if weights in self._models:
                return self._models[weights]
            if weights.keep_in is None:
                made = self._load(weights)
            else:
                bare = self.model(replace(weights, keep_in=None, keep_mb=KEEP_MB))
                folder = Path(weights.keep_in)
                made = bare.keeping(folder, max_mb=weights.keep_mb, weights=weights.place())
            self._models[weights] = made
            return made

    def _load(self, weights: Weights) -> "EvidenceModel":
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
        self._lock = RLock()


def _stamp(folder: Path) -> _Stamp:
    """Return what changes whenever a file of the folder does."""
    try:
        found = [(one.name, one.stat()) for one in folder.iterdir()]
    except OSError:
        return ()
    return tuple(sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in found))


def _load(weights: Weights) -> "EvidenceModel":
    from deepera_graph.judges.trained.model import (  # noqa: PLC0415 - numpy and more, at first use
        EvidenceModel,
    )

    folder = None if weights.folder is None else Path(weights.folder)
    return EvidenceModel.load(folder, threads=threads_here(weights.threads) or None)


_SHARED = _Shared()


class TrainedJudge(Judge):
    """Scores passages on this machine: how probable it is that each is evidence."""

    asks_model = False

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    @property
    def model(self) -> "EvidenceModel":
        """The model behind it, loaded when it is first asked for."""
        return self._weights.model()

    @cached_property
    def operating_point(self) -> float:  # type: ignore[override]  # read when it is asked for
        """Where the weights say that evidence begins."""
        return self._weights.operating_point()

    @cached_property
    def evidence_point(self) -> float | None:  # type: ignore[override]  # as above
        """Where the weights say that possible evidence ends."""
        return self._weights.evidence_point()

    def plan(self, request: PlanRequest) -> list[Batch]:
        """Judge all windows of the question together: each is judged beside the others."""
        every = range(len(request.windows))
        return [request.batch(every, is_joint=True)] if request.next else []

    def judge(self, batch: Batch, config: RunnableConfig | None = None) -> list[Judgement]:
        """Judge a batch; a `CallError` if the weights cannot be loaded."""
        try:
            model = self._weights.model()
        except (DeepEraError, ImportError, OSError) as error:
            raise CallError(f"the local judge cannot be loaded: {error}", unusable=True) from error
        return model.judge(batch["question"], batch["intent"], batch["windows"])

    def question_problem(self, question: str, windows: Sequence[Window]) -> str:
        """Say whether a model of English can read the question, and finds its words."""
        return find_question_problem(question, windows)

    def missing_words(self, question: str, windows: Sequence[Window]) -> list[str]:
        """Return the words of a question that no window names, nor anything like them."""
        if len(windows) > _MOST_COMPARED or find_question_problem(question, windows):
            return []
        texts = [f"{one['title']} {one['text']}" for one in windows]
        if not (missing := find_missing(question, texts)):
            return []
        # A short word alone is not taken for missing; beside another it may be the subject.
        every = {**find_missing(question, texts, shortest=_SHORT), **missing}
        with suppress(DeepEraError, ImportError, OSError):  # nothing was judged then
            unlike = self._weights.model().find_unlike(question, windows, every)
            return [] if missing.keys().isdisjoint(unlike) else unlike
        return []

    def prepare(self, windows: Sequence[Window]) -> None:
        """Begin to read windows while the intent is not known.

        A process that ends waits for it: one that ends while onnxruntime loads is aborted.
        """
        Thread(target=self._begin, args=(list(windows),), daemon=False).start()

    def _begin(self, windows: Sequence[Window]) -> None:
        # if it cannot be loaded, `judge` says so; a RuntimeError says that the process is ending
        with suppress(DeepEraError, ImportError, OSError, RuntimeError):
            self._weights.model().read_ahead(windows)

    def counting(self) -> CountedJudge:
        """Return a judge that costs as much, nothing, and does nothing."""
        return CountedJudge(self, Usage())


LocalJudge = Literal["trained", "rules"]
DEFAULT: LocalJudge = "trained"
_TRAINED = {
    "judge": "trained",
    "note": (
        "a small trained model that sees all passages of a question together; its score is a "
        "calibrated probability"
    ),
}


def local_backend(
    judge: LocalJudge = DEFAULT,
    *,
    weights: str | Path | None = None,
    threads: int | None = None,
    keep_in: str | Path | None = None,
    keep_mb: float | None = None,
) -> Backend:
    """Return a backend that judges on this machine alone; intent, summary and answer go by rules.

    Args:
        judge: ``"trained"``, a small model that comes with the package and whose score is a
            calibrated probability; or ``"rules"``, hand-written ones that load nothing.
        weights: Folder of other weights of the trained judge, made by ``deepera-lab judge train``.
        threads: Texts that the trained judge reads at once, >= 1; by default those of
            OMP_NUM_THREADS, else one a core. It changes no score.
        keep_in: Folder where the trained judge keeps what it needs of a passage whatever the
            question, so that no process encodes it twice, about 100 KB a passage of 128 tokens;
            made if missing. None keeps it in memory alone, for the latest passages, some hundred.
            It changes no score.
        keep_mb: The most that may take there, in 10^6 bytes, > 0; what was used longest ago gives
            way. 256 if None.

    Raises:
        SettingsError: There is no such judge, there are no weights, or a number is out of range.
    """
    if judge not in get_args(LocalJudge):
        raise SettingsError(f"judge must be one of {list(get_args(LocalJudge))}, got {judge!r}")
    if judge == "trained":
        return _trained(find_weights(weights, threads, keep_in=keep_in, keep_mb=keep_mb))
    given = {"weights": weights, "threads": threads, "keep_in": keep_in, "keep_mb": keep_mb}
    for name, value in given.items():
        if value is not None:
            raise SettingsError(f"{name} goes with the trained judge, not with {judge!r}")
    return heuristic_backend()


def local_backend_from_spec(spec: Mapping[str, Any]) -> Backend:
    """Build the backend that a spec describes."""
    try:
        return local_backend(**spec)
    except TypeError as error:
        raise SettingsError(f"not the spec of a local backend: {error}") from error


def _trained(weights: Weights) -> Backend:
    options = {
        "weights": weights.folder,
        "threads": weights.threads,
        "keep_in": weights.keep_in,
        "keep_mb": None if weights.keep_mb == KEEP_MB else weights.keep_mb,
    }
    return replace(
        heuristic_backend(),
        name="local",
        judge=TrainedJudge(weights),
        about={**_TRAINED, "judge_version": weights.version()},
        spec={
            "kind": "local",
            "judge": "trained",
            **{name: value for name, value in options.items() if value is not None},
        },
    )
