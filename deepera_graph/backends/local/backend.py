"""The local backend: judges on this machine alone, with no download and no key."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from deepera_graph.backends.local.roles import (
    ExtractiveSummarizer,
    QuotingAnswerer,
    RulesIntent,
    RulesJudge,
)
from deepera_graph.backends.local.trained import TrainedJudge, TrainedSurveyor
from deepera_graph.backends.local.weights import Weights, find_weights
from deepera_graph.errors import SettingsError
from deepera_graph.roles import Backend

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
