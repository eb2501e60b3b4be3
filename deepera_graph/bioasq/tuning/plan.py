"""What is tried when a cross-encoder is tuned: models, pairs, epochs, and the parts of questions.

Source:
    The system of BioASQ 13b: one epoch to select among models, three for the final one, of which
    ms-marco-MiniLM-L12 was the best; variants with as many negatives as golden documents, and with
    questions of recent years alone.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from deepera_graph.errors import SettingsError
from deepera_graph.settings import check_at_least

PARTS = ("train", "validation", "test")
SHARES = (80.0, 10.0, 10.0)  # of questions, in per cent
DEFAULT_MODEL = "cross-encoder/ms-marco-MiniLM-L12-v2"


def check_shares(shares: Sequence[float] | None, *, has_test: bool) -> tuple[float, ...]:
    """Return the shares of the three parts; a `SettingsError` if they are none."""
    if shares is None:
        return (SHARES[0] + SHARES[2], SHARES[1], 0.0) if has_test else SHARES
    checked = tuple(map(float, shares))
    fits = len(checked) == len(PARTS) and all(math.isfinite(one) and one >= 0 for one in checked)
    if not fits or not checked[0] or not checked[1]:
        raise SettingsError(
            "shares must be three numbers >= 0, those of training and validation above 0, "
            f"got {shares!r}"
        )
    if has_test and checked[2]:
        raise SettingsError(
            f"with a test set of its own the last share must be 0, got {checked[2]:g}"
        )
    return checked


def read_ratio(text: str) -> float | None:
    """Return how many negatives there are for a golden document: ``1:4`` is 4, ``all`` None.

    Raises:
        SettingsError: It is neither ``all`` nor two numbers above 0.
    """
    plain = text.strip()
    if plain == "all":
        return None
    found = re.fullmatch(r"(\d{1,4}):(\d{1,4})", plain)
    if found is None or not int(found[1]) or not int(found[2]):
        raise SettingsError(
            f"a ratio must be golden documents to negatives, as 1:1 or 1:4, or all, got {text!r}"
        )
    return int(found[2]) / int(found[1])


class TuningVariant(NamedTuple):
    """A model to begin with, and the pairs it is tuned on."""

    model: str
    ratio: float | None
    since: int | None

    def __str__(self) -> str:
        """Name it in a line."""
        pairs = "all negatives" if self.ratio is None else f"1:{self.ratio:g}"
        return f"{self.model}, {pairs}{'' if self.since is None else f', since {self.since}'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningSettings:
    """How a cross-encoder is tuned.

    Attributes:
        models: Models to begin with, each a name or a folder; not empty.
        ratios: Negatives for each golden document, > 0, None for all; not empty.
        since: Years since which questions are trained on, None for all; not empty.
        epochs: How often the final model sees all pairs, >= 1.
        select_epochs: The same where several variants are tried, >= 1.
        batch_size: Pairs of a step, >= 1.
        learning_rate: The highest, > 0; it rises over a tenth of the steps, and falls to 0.
        max_tokens: Most tokens of question and passage together, >= 8.
        int8: Whether to write a model with weights of eight bits, too.
        seed: Of a new head, of the draw of negatives, and of the order of pairs.

    Raises:
        SettingsError: A value is out of range.
    """

    models: Sequence[str] = (DEFAULT_MODEL,)
    ratios: Sequence[float | None] = (None,)
    since: Sequence[int | None] = (None,)
    epochs: int = 3
    select_epochs: int = 1
    batch_size: int = 16
    learning_rate: float = 2e-5
    max_tokens: int = 512
    int8: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in {"epochs": 1, "select_epochs": 1, "batch_size": 1, "seed": 0}.items():
            check_at_least(name, getattr(self, name), least)
        check_at_least("max_tokens", self.max_tokens, 8)
        if not 0 < self.learning_rate < math.inf:
            raise SettingsError(f"learning_rate must be above 0, got {self.learning_rate!r}")
        for name in ("models", "ratios", "since"):
            if not getattr(self, name):
                raise SettingsError(f"{name} must not be empty")
        for model in self.models:
            if not model.strip():
                raise SettingsError(f"a model must be a name or a folder, got {model!r}")

    def variants(self) -> list[TuningVariant]:
        """Return what is tried, each once."""
        return [
            TuningVariant(*one)
            for one in dict.fromkeys(product(self.models, self.ratios, self.since))
        ]
