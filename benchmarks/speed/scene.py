"""What is served: the speed of a model, the questions it knows, how long its answers are."""

import json
from dataclasses import asdict, dataclass

from latency import Speed


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is served: the speed of the model, its questions and its answers.

    Attributes:
        speed: The model.
        tokens: What counts as a token: see `tokens.splitter`.
        seed: Of the questions and the stragglers.
        questions: How many, beside the warm-up.
        passages: Of each.
        reason: Tokens of a reason.
        summary: Most tokens of a summary.
        cold: Whether the prefix cache is emptied whenever another question begins.
    """

    speed: Speed
    tokens: str
    seed: int
    questions: int
    passages: int
    reason: int = 25
    summary: int = 40
    cold: bool = False

    @classmethod
    def read(cls, text: str) -> "Scene":
        """Read what `write` wrote."""
        values = json.loads(text)
        return cls(**values | {"speed": Speed(**values["speed"])})

    def write(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))
