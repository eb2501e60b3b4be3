"""What the caller can turn; checked when made."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypedDict, TypeVar, get_args

from deepera_graph.budget import Budget
from deepera_graph.errors import SettingsError
from deepera_graph.thresholds import (
    Gap,
    Quantile,
    Threshold,
    check_share,
    threshold_from_plain,
    threshold_to_plain,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
Order = Literal["score", "retrieval"]
Content = Literal["both", "summary", "passage"]
OnEmpty = Literal["empty", "top1", "topn", "original"]
OnError = Literal["keep_last", "drop", "raise"]
FEWEST_A_ROUND = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Settings of an agent: checked when made, read by name, written as plain data.

    A subclass is a dataclass, too. Its whole numbers are at least 1, or what `_LEAST` says;
    `_READ` names the fields that are dataclasses and may be given by name; `_check` checks the
    rest. None is left alone where it is the default.

    Raises:
        SettingsError: A name is unknown, or a value is out of range.
    """

    _LEAST: ClassVar[Mapping[str, int]] = {}
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
            if value is None and one.default is None:
                continue
            if name in self._LEAST or type(one.default) is int:
                check_at_least(name, value, self._LEAST.get(name, 1))
            if name in self._READ:
                object.__setattr__(self, name, read_fields(name, self._READ[name], value))
        self._check()

    def _check(self) -> None:
        """Check what is more than the least of a whole number."""

    @classmethod
    def of(cls, given: Self | Mapping[str, Any] | None = None) -> Self:
        """Return settings as they are, or read them by name; the defaults if None.

        Raises:
            SettingsError: A name is unknown or a value is out of range.
        """
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

    Attributes:
        threshold: Lowest score kept, in [0, 1], inclusive; or a rule of `deepera_graph.thresholds`;
            None is the judge's own, its `operating_point`: 0.8 for a chat model.
        top_n: Most passages kept, >= 1.
        order: Order of the kept passages: by score, or as they were retrieved.
        content: What a kept document holds. ``"both"``: the passage as `page_content`, its summary
            in the metadata. ``"summary"``: the summary as `page_content`, the passage in the
            metadata. ``"passage"``: the passage, and no summary is made, which saves calls.
        on_empty: What to keep when no passage passes: nothing, the best one, the best `top_n`,
            or the first `top_n` as they were retrieved.
        on_error: A passage that could not be judged stays in the ranking, last and never kept; is
            taken out of the ranking, and listed apart; or raises after the others are done. One
            that the budget left unjudged is no error: it always stays in the ranking.
        max_concurrency: Most role calls in flight at once, over all questions, >= 1.
        max_failed_share: Share of failed passages, in [0, 1], above which the outcome is
            ``degraded``.
        max_passage_chars: Longest text judged in one piece, >= 200 characters; a longer passage is
            read in overlapping windows of this size and its best window counts.
        answer: Whether to draw an answer from the kept evidence.
        budget: What one call of the front door may cost, all questions of a batch together; its
            fields by name, or None for no limit.
        require_evidence: Whether a passage only passes with a quote that occurs in it; None leaves
            it to the backend, of which none of ours asks for one: a passage that a language model
            scores high without naming a sentence is kept, and flagged.
        stop_after: Early stopping: once so many passages, >= 1, are clearly above the threshold,
            those that have not been judged yet are not; None judges all. Needs a threshold that is
            known before all scores are: neither `Gap` nor `Quantile`.
        stop_margin: How far above the threshold a score is clear, in [0, 1]; at most half the way
            from the threshold to 1 is asked for.
        round_size: Passages judged in one round, >= 1; between two rounds the run may stop. None is
            all at once, or with `stop_after` what `passages_a_round` says.

    Raises:
        SettingsError: A value is out of range.

    Source:
        Threshold 0.8 of chat models and 30 candidates: DeepEra, section 3; cut-off 10: its figure
        7. The margin, half the way from that threshold to 1, and the size of rounds are ours; what
        sizes save is in docs/language-models.md.
    """

    threshold: Threshold | None = None
    top_n: int = 10
    order: Order = "score"
    content: Content = "both"
    on_empty: OnEmpty = "empty"
    on_error: OnError = "keep_last"
    max_concurrency: int = 16
    max_failed_share: float = 0.2
    max_passage_chars: int = 12_000
    answer: bool = False
    budget: Budget | None = None
    require_evidence: bool | None = None
    stop_after: int | None = None
    stop_margin: float = 0.1
    round_size: int | None = None
    _LEAST = MappingProxyType({"max_passage_chars": 200, "stop_after": 1, "round_size": 1})

    def _check(self) -> None:
        object.__setattr__(self, "threshold", threshold_from_plain(self.threshold))
        check_share("max_failed_share", self.max_failed_share)
        _check_choice("order", self.order, get_args(Order))
        _check_choice("content", self.content, get_args(Content))
        _check_choice("on_empty", self.on_empty, get_args(OnEmpty))
        _check_choice("on_error", self.on_error, get_args(OnError))
        _check_choice("answer", self.answer, (True, False))
        _check_choice("require_evidence", self.require_evidence, (True, False, None))
        check_share("stop_margin", self.stop_margin)
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
                backend=MappingProxyType({"mode": "grouped"}),
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
    | ``cheap`` | ``content="passage"`` | ``mode="grouped"``, best 20 of the local judge |

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


def suggest_name(name: object, known: Iterable[str]) -> str:
    """Return ``did you mean 'threshold'?``, or nothing if no known name is near."""
    near = get_close_matches(str(name).lower().replace("-", "_"), list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def suggest_value(value: object, known: Iterable[object]) -> str:
    """Return the same behind a semicolon, for the end of a message; of texts alone."""
    near = suggest_name(value, [one for one in known if isinstance(one, str)])
    return f"; {near}" if near and isinstance(value, str) else ""


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


def check_at_least(name: str, value: object, least: int) -> None:
    """Raise `SettingsError` unless a value is a whole number, and not below *least*."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        what = f"the text {value!r}" if isinstance(value, str) else repr(value)
        raise SettingsError(f"{name} must be a whole number >= {least}, got {what}")


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if not any(value is choice or value == choice for choice in choices):
        known, hint = ", ".join(map(repr, choices)), suggest_value(value, choices)
        raise SettingsError(f"{name} must be one of {known}, got {value!r}{hint}")
