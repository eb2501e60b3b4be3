"""Which way a passage points: the linear model that weighs its features."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Self, get_args

from deepera_graph.errors import SettingsError
from deepera_graph.judges.trained.direction.features import describe
from deepera_graph.schema import Direction
from deepera_graph.text.questions import asks_yes_or_no

WEIGHTS: Final = Path(__file__).parents[1] / "weights" / "direction.json"
UNCLEAR: Final[Direction] = "unclear"
DIRECTIONS: Final[tuple[Direction, ...]] = tuple(
    one for one in get_args(Direction) if one != UNCLEAR
)
READER_WEIGHT: Final = 0.4  # of what the reader says of a direction beside the wording
# the least probability of both: of each direction four in five above it are right
WITH_READER: Final[Mapping[Direction, float]] = {
    "supports": 0.65,
    "contradicts": 0.6,
    "no_difference": 0.5,
    "mixed": 0.65,
}


@dataclass(frozen=True, slots=True)
class DirectionModel:
    """Weights of features by direction, in the order of `DIRECTIONS`, and the least probability."""

    bias: tuple[float, ...]
    weights: Mapping[str, Sequence[float]]
    threshold: float

    @classmethod
    def load(cls, path: Path = WEIGHTS) -> Self:
        """Read the weights; a `SettingsError` if they are none."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return cls(tuple(found["bias"]), found["weights"], float(found["threshold"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SettingsError(f"{str(path)!r} holds no weights of directions: {error}") from error

    def probabilities(self, question: str, text: str, quote: str = "") -> dict[Direction, float]:
        """Return how likely each direction is; they add up to 1."""
        return self.weigh(describe(question, text, quote))

    def weigh(self, described: Mapping[str, float]) -> dict[Direction, float]:
        """Return how likely each direction is by features as `describe` names them."""
        sums = list(self.bias)
        for name, value in described.items():
            for place, weight in enumerate(self.weights.get(name, ())):
                sums[place] += weight * value
        most = max(sums)
        parts = [math.exp(one - most) for one in sums]
        return {name: part / sum(parts) for name, part in zip(DIRECTIONS, parts, strict=True)}

    def read(
        self, question: str, text: str, quote: str = "", reader: Sequence[float] | None = None
    ) -> Direction:
        """Return the likeliest direction, or ``unclear`` if it is not likely enough.

        *reader* are the log odds, but for a constant, that the reader gives each of `DIRECTIONS`;
        it makes a direction surer or less sure, and names no other one than the wording does.
        """
        found, threshold = self.probabilities(question, text, quote), self.threshold
        best = max(found, key=lambda name: found[name])
        if reader is not None:
            found, threshold = weigh_reader(found, reader), WITH_READER[best]
        is_likely = found[best] == max(found.values()) and found[best] >= threshold
        return best if is_likely else UNCLEAR


def weigh_reader(
    likely: Mapping[Direction, float], reader: Sequence[float]
) -> dict[Direction, float]:
    """Return how likely each direction is by wording and reader together; they add up to 1."""
    most = max(reader)
    total = sum(math.exp(one - most) for one in reader)
    both = {
        name: likely[name] ** (1 - READER_WEIGHT) * (math.exp(one - most) / total) ** READER_WEIGHT
        for name, one in zip(DIRECTIONS, reader, strict=True)
    }
    return {name: one / sum(both.values()) for name, one in both.items()}


@lru_cache(maxsize=1)
def _load_shipped() -> DirectionModel:
    return DirectionModel.load()


def find_likeliest(question: str, text: str) -> tuple[Direction, float]:
    """Return the direction that the wording of a text makes likeliest, and how likely it is."""
    found = _load_shipped().probabilities(question, text)
    return max(found.items(), key=lambda item: item[1])


def read_direction(
    question: str, text: str, quote: str = "", reader: Sequence[float] | None = None
) -> Direction | None:
    """Say which way a passage points; None if yes or no does not answer the question."""
    return _load_shipped().read(question, text, quote, reader) if asks_yes_or_no(question) else None
