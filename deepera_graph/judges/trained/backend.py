"""The weights of the trained judge: found at once, loaded at first use, one model a process."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Literal, Protocol, get_args

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.errors import CallError, DeepEraError, SettingsError
from deepera_graph.judges.base import Unasked
from deepera_graph.judges.heuristic.roles import (
    ExtractiveSummarizer,
    QuotingAnswerer,
    RulesIntent,
    RulesJudge,
)
from deepera_graph.judges.onnx import threads_here
from deepera_graph.schema import (
    Backend,
    Judgement,
    PassageTask,
    PassageText,
    ReadsAhead,
    Survey,
    SurveyTask,
)
from deepera_graph.usage import Usage

SUMS = "SHA256SUMS"
_MODEL = "deepera_graph.judges.trained.model"
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
        return Path(__file__).parent / "weights"

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

_FREE = Usage()


class TrainedSurveyor(Runnable[SurveyTask, Survey]):
    """Reads all passages of a question together, on this machine."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    def counting(self) -> Unasked:
        """Return a surveyor that costs as much, nothing, and does nothing."""
        return Unasked(Survey(notes=[]), usage=_FREE)

    def invoke(
        self, input: SurveyTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Survey:
        """Survey the passages.

        Raises:
            CallError: The weights cannot be loaded.
        """
        return Survey(notes=_loaded(self._weights).survey(input), usage=_FREE)

    def read_ahead(self, passages: Sequence[PassageText]) -> None:
        """Begin to read passages while the intent is not known.

        A process that ends waits for it: one that ends while onnxruntime loads is aborted.
        """
        Thread(target=self._begin, args=(list(passages),), daemon=False).start()

    def _begin(self, passages: Sequence[PassageText]) -> None:
        with suppress(CallError, RuntimeError):  # the survey says so; or the process is ending
            model = _loaded(self._weights)
            if isinstance(model, ReadsAhead):
                model.read_ahead(passages)

    async def ainvoke(
        self, input: SurveyTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Survey:
        """Survey the passages in a thread."""
        return await asyncio.to_thread(self.invoke, input)


class TrainedJudge(Runnable[PassageTask, Judgement]):
    """Scores a passage on this machine: how probable it is that it is evidence."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    def counting(self) -> Unasked:
        """Return a judge that costs as much, nothing, and does nothing."""
        return Unasked(Judgement(score=1.0), usage=_FREE)

    def invoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Judgement:
        """Judge the passage.

        Raises:
            CallError: The weights cannot be loaded.
        """
        judgement = _loaded(self._weights).judge(input)
        return judgement.model_copy(update={"usage": _FREE})

    async def ainvoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Judgement:
        """Judge the passage in a thread."""
        return await asyncio.to_thread(self.invoke, input)


def _loaded(weights: Weights) -> PoolModel:
    """Return the model; without it, no passage can be judged."""
    try:
        return weights.model()
    except (DeepEraError, ImportError, OSError) as error:
        raise CallError(f"the local judge cannot be loaded: {error}", unusable=True) from error


JudgeKind = Literal["trained", "rules"]
DEFAULT: JudgeKind = "trained"
JUDGE_VERSION = "1"
_RULES = {
    "judge": "rules",
    "judge_version": JUDGE_VERSION,
    "note": (
        "hand-written rules over words and numbers; it does not understand text, and its score is "
        "a rough probability"
    ),
}
_TRAINED = {
    "judge": "trained",
    "note": (
        "a small trained model that sees all passages of a question together; its score is a "
        "calibrated probability"
    ),
}


def local_backend(
    judge: JudgeKind = DEFAULT,
    *,
    weights: str | Path | None = None,
    threads: int | None = None,
) -> Backend:
    """Return a backend that judges on this machine alone; intent, summary and answer go by rules.

    Args:
        judge: ``"trained"``, a small model that comes with the package and whose score is a
            calibrated probability; or ``"rules"``, hand-written ones that load nothing.
        weights: Folder of other weights for the trained judge, as ``deepera judge train`` writes.
        threads: Texts that the trained judge reads at once, >= 1; by default those of
            OMP_NUM_THREADS, else one a core. It changes no score.

    Raises:
        SettingsError: There is no such judge, there are no weights, or a number is out of range.
    """
    if judge not in get_args(JudgeKind):
        raise SettingsError(f"judge must be one of {list(get_args(JudgeKind))}, got {judge!r}")
    if judge == "trained":
        return _trained(find_weights(weights, threads))
    for name, value in {"weights": weights, "threads": threads}.items():
        if value is not None:
            raise SettingsError(f"{name} goes with the trained judge, not with {judge!r}")
    return Backend(
        name="local",
        intent=RulesIntent(),
        judge=RulesJudge(),
        summarizer=ExtractiveSummarizer(),
        answerer=QuotingAnswerer(),
        about=dict(_RULES),
        spec={"kind": "local", "judge": "rules"},
    )


def local_backend_from_spec(spec: Mapping[str, Any]) -> Backend:
    """Build the backend that a spec describes.

    Raises:
        SettingsError: The spec is of something else, or its weights are gone.
    """
    try:
        return local_backend(**spec)
    except TypeError as error:
        raise SettingsError(f"not the spec of a local backend: {error}") from error


def _trained(weights: Weights) -> Backend:
    options = {"weights": weights.folder, "threads": weights.threads}
    return Backend(
        name="local",
        intent=RulesIntent(),
        judge=TrainedJudge(weights),
        summarizer=ExtractiveSummarizer(),
        answerer=QuotingAnswerer(),
        surveyor=TrainedSurveyor(weights),
        about={**_TRAINED, "judge_version": weights.version()},
        spec={
            "kind": "local",
            "judge": "trained",
            **{name: value for name, value in options.items() if value is not None},
        },
    )
