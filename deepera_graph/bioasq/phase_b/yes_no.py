"""Yes or no from the snippets: a logistic regression over what each says against what is asked.

The features are those by which the local judge reads a direction (`judges/trained/direction/`),
as a mean over the snippets, and what its head makes of them. ``benchmarks/bioasq/extractive.py``
fits the weights on questions that people answered, and measures them.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Self

from deepera_graph.judges.trained.direction.model import DirectionModel
from deepera_graph.judges.trained.direction.model import describe as describe_direction

WEIGHTS: Final = Path(__file__).parent / "weights.json"
_LEAST: Final = 0.02  # of a probability, before the logarithm
_ODDS: Final = 5.0  # log odds that weigh as much as a probability of 1


def describe(
    question: str, snippets: Sequence[str], directions: DirectionModel
) -> dict[str, float]:
    """Return the named features of a question with its snippets, at least one."""
    found: defaultdict[str, float] = defaultdict(float)
    share = 1 / len(snippets)
    for snippet in snippets:
        told = describe_direction(question, snippet)
        for name, value in told.items():
            found[name] += share * value
        likely = directions.weigh(told)
        for way, value in likely.items():
            found[f"mean: {way}"] += share * value
            found[f"most: {way}"] = max(found[f"most: {way}"], value)
        yes = likely["supports"]
        found["mean: log odds"] += share * math.log((yes + _LEAST) / (1 - yes + _LEAST)) / _ODDS
        found["share that supports"] += share * (2 * yes >= 1)
    return dict(found)


@dataclass(frozen=True, slots=True)
class YesNoModel:
    """A logistic regression: how likely yes is.

    Attributes:
        bias: Log odds of yes without any feature.
        weights: Log odds by feature.
    """

    bias: float
    weights: Mapping[str, float]

    @classmethod
    def load(cls, path: Path = WEIGHTS) -> Self:
        """Read the weights that were shipped."""
        return cls.of(json.loads(path.read_text(encoding="utf-8"))["yes_no"])

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return the model of plain data."""
        return cls(float(plain["bias"]), dict(plain["weights"]))

    def weigh(self, described: Mapping[str, float]) -> float:
        """Return how likely yes is, in (0, 1)."""
        known = ((self.weights.get(name, 0.0), value) for name, value in described.items())
        odds = self.bias + sum(weight * value for weight, value in known)
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, odds))))


@lru_cache(maxsize=1)
def _shipped() -> tuple[YesNoModel, DirectionModel]:
    return YesNoModel.load(), DirectionModel.load()


def probability_of_yes(question: str, snippets: Sequence[str]) -> float:
    """Return how likely yes is by the shipped weights, in (0, 1); at least one snippet."""
    model, directions = _shipped()
    return model.weigh(describe(question, snippets, directions))
