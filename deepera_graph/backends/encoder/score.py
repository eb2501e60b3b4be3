"""From what a model makes of a pair to a judgement."""

import math
from dataclasses import dataclass
from typing import Literal

from deepera_graph.backends.encoder.pairs import Reading
from deepera_graph.curve import Curve
from deepera_graph.errors import AnswerError
from deepera_graph.schema import Judgement
from deepera_graph.usage import Usage

Scale = Literal["logit", "probability"]
DIGITS = 4  # what a pair gets in another batch differs by some 1e-6


@dataclass(frozen=True, slots=True)
class Scoring:
    """How the numbers of one model become scores.

    Attributes:
        name: Of the model.
        scale: What its numbers are.
        curve: From the score without it to a probability, or None.
        usage: What one pair costs.
    """

    name: str
    scale: Scale
    curve: Curve | None
    usage: Usage

    def judgement(self, reading: Reading, *, quote: str = "") -> Judgement:
        """Return the judgement of a passage.

        A logit is rounded to four digits, and becomes a score by the logistic function.

        Raises:
            AnswerError: The number is not finite, or a probability is not in [0, 1].
        """
        value = round(reading.value, DIGITS) if math.isfinite(reading.value) else reading.value
        if not math.isfinite(value) or (self.scale == "probability" and not 0 <= value <= 1):
            raise AnswerError(
                f"cross-encoder {self.name} gave {value}, which is no {self.scale}",
                usage=self.usage,
            )
        score = value if self.scale == "probability" else logistic(value)
        return Judgement(
            score=score if self.curve is None else self.curve.probability(score),
            reason="; ".join(filter(None, (self._reason(value), reading.note))),
            quote=quote,
            usage=self.usage,
        )

    def _reason(self, value: float) -> str:
        digits = 1 if self.scale == "logit" else 2
        return f"cross-encoder {self.name}, {self.scale} {value:.{digits}f}"


def logistic(logit: float) -> float:
    """Map a logit into [0, 1], with no overflow and no loss at either end."""
    if logit >= 0:
        return 1.0 / (1.0 + math.exp(-logit))
    power = math.exp(logit)
    return power / (1.0 + power)
