"""What the caller can turn; checked when made."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, get_args

from deepera_graph.budget import Budget
from deepera_graph.errors import SettingsError
from deepera_graph.thresholds import (
    Threshold,
    check_share,
    threshold_from_plain,
    threshold_to_plain,
)

Order = Literal["score", "retrieval"]
Content = Literal["summary", "passage"]
OnEmpty = Literal["empty", "top1", "topn", "original"]
OnError = Literal["keep_last", "drop", "raise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How passages are filtered and returned.

    Attributes:
        threshold: Lowest score kept, in [0, 1], inclusive; or a rule of `deepera_graph.thresholds`.
        top_n: Most passages kept, >= 1.
        order: Order of the kept passages: by score, or as they were retrieved.
        content: What a kept document holds: its summary, or the passage itself (no summary calls).
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
            it to the backend: yes for a language model, no for the local judges and your own roles.

    Raises:
        SettingsError: A value is out of range.

    Source:
        Threshold 0.8 and 30 candidates: DeepEra, section 3; cut-off 10: its figure 7.
    """

    threshold: Threshold = 0.8
    top_n: int = 10
    order: Order = "score"
    content: Content = "summary"
    on_empty: OnEmpty = "empty"
    on_error: OnError = "keep_last"
    max_concurrency: int = 16
    max_failed_share: float = 0.2
    max_passage_chars: int = 12_000
    answer: bool = False
    budget: Budget | None = None
    require_evidence: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.budget, Mapping):
            object.__setattr__(self, "budget", _budget(self.budget))
        object.__setattr__(self, "threshold", threshold_from_plain(self.threshold))
        check_share("max_failed_share", self.max_failed_share)
        _check_at_least("top_n", self.top_n, 1)
        _check_at_least("max_concurrency", self.max_concurrency, 1)
        _check_at_least("max_passage_chars", self.max_passage_chars, 200)
        _check_choice("order", self.order, get_args(Order))
        _check_choice("content", self.content, get_args(Content))
        _check_choice("on_empty", self.on_empty, get_args(OnEmpty))
        _check_choice("on_error", self.on_error, get_args(OnError))
        _check_choice("answer", self.answer, (True, False))
        _check_choice("require_evidence", self.require_evidence, (True, False, None))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Read settings by name.

        Raises:
            SettingsError: A name is unknown or a value is out of range.
        """
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise SettingsError(f"unknown setting {name!r}; settings are {', '.join(known)}")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `of` reads."""
        plain = asdict(self)
        plain["threshold"] = threshold_to_plain(self.threshold)
        plain["budget"] = self.budget and self.budget.to_dict()
        return plain


def _budget(values: Mapping[str, Any]) -> Budget:
    try:
        return Budget(**values)
    except TypeError as error:
        raise SettingsError(f"budget: {error}") from error


def _check_at_least(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SettingsError(f"{name} must be a whole number >= {least}, got {value!r}")


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if not any(value is choice or value == choice for choice in choices):
        raise SettingsError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
