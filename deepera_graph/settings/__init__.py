"""What the caller can turn, checked when made; ranges, thresholds, and the limits of a run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    Self,
    TypedDict,
    TypeVar,
    runtime_checkable,
)

from deepera_graph.errors import SettingsError
from deepera_graph.settings.budget import Budget
from deepera_graph.settings.ranges import (
    check_setting,
    setting,
    suggest_name,
    suggest_value,
)
from deepera_graph.settings.thresholds import (
    OPERATING_POINT,
    Gap,
    Quantile,
    Threshold,
    threshold_from_plain,
    threshold_to_plain,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from deepera_graph.schema import IntentKind

T = TypeVar("T", bound="DataclassInstance")
Order = Literal["score", "retrieval"]
Content = Literal["both", "summary", "passage"]
OnEmpty = Literal["empty", "top1", "topn", "original"]
OnError = Literal["keep_last", "drop", "raise"]
FEWEST_A_ROUND = 8


@runtime_checkable
class ThresholdRule(Protocol):
    """A rule that gives the lowest score kept, in [0, 1], for one question."""

    def cut(self, scores: Sequence[float], intent: "IntentKind") -> float:
        """Return the lowest score kept, given the scores of the judged passages in any order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Settings of an agent: checked when made, read by name, written as plain data.

    A subclass is a dataclass, too, whose fields may be declared by `setting`. Other whole numbers
    are at least 1; `_READ` names the fields that are dataclasses and may be given by name; `_check`
    checks the rest. None is left alone where it is the default.

    Raises:
        SettingsError: A name is unknown, or a value is out of range.
    """

    _READ: ClassVar[Mapping[str, type[Any]]] = {"budget": Budget}
    if TYPE_CHECKING:

        @property
        def max_concurrency(self) -> int:
            """Most calls in flight, >= 1."""

        @property
        def budget(self) -> Budget | None:
            """What a run may cost; None is no limit."""

    def __new__(cls, *args: Any, **values: Any) -> Self:
        """Name an unknown setting with the one that is near, where a dataclass names it alone."""
        cls.check_names(values)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for one in fields(self):
            name, value = one.name, getattr(self, one.name)
            check_setting(one, value)
            if name in self._READ and value is not None:
                object.__setattr__(self, name, read_fields(name, self._READ[name], value))
        self._check()

    def _check(self) -> None:
        """Check what is more than the least of a whole number."""

    @classmethod
    def of(cls, given: Self | Mapping[str, Any] | None = None) -> Self:
        """Return settings as they are, or read them by name; the defaults if None."""
        if isinstance(given, cls):
            return given
        values = {} if given is None else given
        if not isinstance(values, Mapping):
            raise SettingsError(
                f"settings must be a {cls.__name__} or its fields by name, got {given!r:.80}"
            )
        return cls(**values)

    @classmethod
    def check_names(cls, names: Iterable[str], *, also: Iterable[str] = ()) -> None:
        """Raise `SettingsError` for a name that is no setting; *also* are others that are known."""
        known = [*also, *(one.name for one in fields(cls))]
        for name in names:
            if name not in known:
                hint = suggest_name(name, known) or f"settings are {', '.join(known)}"
                raise SettingsError(f"unknown setting {name!r}; {hint}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `of` reads."""
        return {one.name: _to_plain(getattr(self, one.name)) for one in fields(self)}


def _to_plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [*value]
    return value.to_dict() if hasattr(value, "to_dict") else value


class SettingsKwargs(TypedDict, total=False):
    """The settings as keyword arguments, for type checkers and completion; see `Settings`."""

    threshold: Threshold | Mapping[str, Any] | None
    top_n: int
    order: Order
    content: Content
    on_empty: OnEmpty
    on_error: OnError
    max_concurrency: int
    max_failed_share: float
    max_passage_chars: int
    answer: bool
    budget: Budget | Mapping[str, Any] | None
    require_evidence: bool | None
    stop_after: int | None
    stop_margin: float
    round_size: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(AgentSettings):
    """How passages are filtered and returned.

    What each of them is and may be stands with it, and in docs/settings.md.

    Raises:
        SettingsError: A value is out of range.

    Source:
        Threshold 0.8 of chat models and 30 candidates: DeepEra, section 3; cut-off 10: its figure
        7. The margin, half the way from that threshold to 1, and the size of rounds are ours; what
        sizes save is in docs/language-models.md.
    """

    threshold: Threshold | None = setting(
        None,
        "Lowest score that is kept, from 0 to 1. Or a rule: [b]gap[/b] cuts at the widest gap "
        "between scores, [b]quantile:0.1[/b] keeps the best tenth (neither goes below 0.5, or "
        "below FLOOR: gap:FLOOR, quantile:SHARE:FLOOR), [b]mechanism=0.7,default=0.8[/b] depends "
        "on the kind of question.",
        brief="Lowest score that is kept, from 0 to 1, or a rule. \\[the judge's own]",
        metavar="T|RULE",
        shown=f"the judge's own: {OPERATING_POINT:g} for a chat model",
    )
    top_n: int = setting(
        10,
        "Upper bound of passages kept, 1 or more.",
        brief="Upper bound of passages kept. [10]",
        metavar="N",
    )
    order: Order = setting(
        "score",
        "Order of the kept passages: by [b]score[/b], or by [b]retrieval[/b], as they came.",
        choices=Order,
        metavar="HOW",
    )
    content: Content = setting(
        "both",
        "Whether kept passages are summarized; [b]passage[/b] is the same as --no-summaries, the "
        "other two differ for LangChain documents alone.",
        choices=Content,
        metavar="WHAT",
    )
    on_empty: OnEmpty = setting(
        "empty",
        "What to keep when no passage passes: nothing ([b]empty[/b]), the best one ([b]top1[/b]), "
        "the best N ([b]topn[/b]), or the first N as they were retrieved ([b]original[/b]).",
        choices=OnEmpty,
        metavar="WHAT",
    )
    on_error: OnError = setting(
        "keep_last",
        "A passage that could not be judged is never kept: it comes last in the ranking "
        "([b]keep_last[/b]), is listed apart under left_out ([b]drop[/b]), or fails its question "
        "([b]raise[/b]).",
        choices=OnError,
        metavar="WHAT",
    )
    max_concurrency: int = setting(
        16, "Upper bound of model calls in flight, over all questions.", metavar="N"
    )
    max_failed_share: float = setting(
        0.2,
        "Share of failed passages, from 0 to 1, above which the outcome is degraded.",
        is_share=True,
        metavar="S",
    )
    max_passage_chars: int = setting(
        12_000,
        "Longest text judged in one piece, 200 characters or more; a longer passage is read in "
        "overlapping windows, and its best window counts.",
        least=200,
        metavar="N",
    )
    answer: bool = setting(False, "Draw an answer from what is kept.", choices=(True, False))
    budget: Budget | None = setting(None, "What all calls together may cost.")
    require_evidence: bool | None = setting(
        None,
        "Whether a passage passes only with a quote that occurs in it.",
        choices=(True, False, None),
        metavar="yes|no",
        shown="no; what a chat model keeps without one is flagged",
    )
    stop_after: int | None = setting(
        None,
        "Stop early: judge the passages of a question in rounds, best of the first stage first, "
        "until N of them are clearly above the threshold, see --stop-margin. The others get no "
        "score, and the status not_needed.",
        least=1,
        metavar="N",
        shown="judge all",
    )
    stop_margin: float = setting(
        0.1,
        "How far above the threshold a score has to be to count for --stop-after, from 0 to 1; at "
        "most half the way from the threshold to 1.",
        is_share=True,
        metavar="M",
    )
    round_size: int | None = setting(
        None,
        "Passages of a question in one round. Smaller rounds waste fewer calls with --stop-after, "
        "but take longer.",
        least=1,
        metavar="N",
        shown=f"all; with --stop-after twice as many as that, {FEWEST_A_ROUND} or more",
    )

    def _check(self) -> None:
        object.__setattr__(self, "threshold", threshold_from_plain(self.threshold))
        if self.stop_after is not None and isinstance(self.threshold, Gap | Quantile):
            raise SettingsError(
                f"stop_after needs a threshold that is known before all scores are, got the rule "
                f"{self.threshold.kind!r}"
            )

    @property
    def passages_a_round(self) -> int | None:
        """Passages judged in one round, >= 1; None is all.

        With `stop_after` and no `round_size`: twice `stop_after`, and `FEWEST_A_ROUND` at least.
        It never depends on how much may be done at once, so that results do not either.
        """
        if self.round_size is not None or self.stop_after is None:
            return self.round_size
        return max(FEWEST_A_ROUND, 2 * self.stop_after)

    def needs_evidence(self, *, by_default: bool) -> bool:
        """Whether a passage needs a quote to pass, with a backend that says so *by_default*."""
        return by_default if self.require_evidence is None else self.require_evidence

    def without_early_stopping(self) -> Self:
        """Return these settings without early stopping, in the same rounds."""
        return replace(self, stop_after=None, round_size=self.passages_a_round)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `of` reads."""
        return {**AgentSettings.to_dict(self), "threshold": threshold_to_plain(self.threshold)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A few settings under one name; what is given beside it counts more.

    Attributes:
        name: ``fast``, ``careful`` or ``cheap``.
        about: One sentence on what it is for and what it costs.
        settings: Of `Settings`, by name.
        backend: Of `llm_backend`, by name; they count where a chat model is given by its name.
        cascade: How many passages such a model reads, >= 1: the best of the local judge; None is
            all of them.
    """

    name: str
    about: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    backend: Mapping[str, Any] = field(default_factory=dict)
    cascade: int | None = None


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        one.name: one
        for one in (
            Preset(
                name="fast",
                about="Fewest round trips: score and evidence in one short reply, for the best 30 "
                "of the local judge; passages come back as they are, without summaries.",
                settings=MappingProxyType({"content": "passage"}),
                backend=MappingProxyType({"mode": "fused"}),
                cascade=30,
            ),
            Preset(
                name="careful",
                about="Every passage is read in a call of its own, passes only with a quote that "
                "occurs in it, and one failure is enough to call the outcome degraded.",
                settings=MappingProxyType({"require_evidence": True, "max_failed_share": 0.0}),
                backend=MappingProxyType({"mode": "separate"}),
            ),
            Preset(
                name="cheap",
                about="Fewest tokens: ten passages in one call, for the best 20 of the local "
                "judge; passages come back as they are, without summaries.",
                settings=MappingProxyType({"content": "passage"}),
                backend=MappingProxyType({"mode": "grouped", "group_size": 10}),
                cascade=20,
            ),
        )
    }
)


def preset(name: str) -> Preset:
    """Return the preset of this name.

    | name | settings | a chat model that is given by name |
    |---|---|---|
    | ``fast`` | ``content="passage"`` | ``mode="fused"``, best 30 of the local judge |
    | ``careful`` | ``require_evidence=True, max_failed_share=0.0`` | ``mode="separate"``, all |
    | ``cheap`` | ``content="passage"`` | ``mode="grouped"`` by 10, best 20 of the local judge |

    Raises:
        SettingsError: There is no such preset.

    Source:
        The modes and cascades follow the measurements in docs/language-models.md, "What one call
        does".
    """
    found = next((one for one in PRESETS.values() if one.name == name), None)
    if found is None:
        hint = suggest_value(name, PRESETS)
        raise SettingsError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}{hint}")
    return found


def read_fields(name: str, kind: type[T], value: object) -> T:
    """Return a *kind*, a dataclass, of its fields by name; or raise `SettingsError`."""
    if isinstance(value, kind):
        return value
    known = [field.name for field in fields(kind)]
    if not isinstance(value, Mapping):
        raise SettingsError(
            f"{name} must be a {kind.__name__} or its fields by name ({', '.join(known)}), "
            f"got {value!r:.80}"
        )
    for key in value:
        if key not in signature(kind).parameters:  # which also takes names of before
            hint = suggest_name(key, known) or f"fields are {', '.join(known)}"
            raise SettingsError(f"{name}: unknown field {key!r}; {hint}")
    return kind(**value)
