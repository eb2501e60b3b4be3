"""The settings of a build, and the records of its logs: what was dropped, what was rejected."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.bench.build.gates import Gates
from deepera_graph.errors import SettingsError

Setting = Literal["base", "ssli"]
Golden = Literal["insert", "record"]
_COUNTS = ("n_questions", "n_distractors", "per_document", "max_tokens", "attempts", "min_group")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan:
    """The settings of a build; equal plans over equal documents and answers give equal bytes.

    Attributes:
        n_questions: Questions wanted of each generator, >= 1.
        settings: Which pools to write: ``base`` as retrieved, ``ssli`` with distractors.
        seed: Of the choice of documents and passages and of the distractors' places, >= 0.
        n_contexts: Passages in a pool, >= 2.
        n_distractors: Distractors in an SSLI pool, >= 1, below `n_contexts`.
        per_document: Most questions of one document and generator, >= 1.
        max_tokens: Most tokens of a chunk, >= 1.
        golden: What happens to a golden passage that retrieval missed: ``insert`` puts it in the
            place of the last passage found, ``record`` names it in `golden_outside`.
        attempts: Most tries at writing one distractor, >= 1.
        min_similarity: Least cosine that connects two documents, in [-1, 1]. What is near differs
            from embedder to embedder, so None takes the cosine that 19 of 20 documents reach with
            their nearest neighbour.
        min_group: Connected documents that are kept together, >= 1; 1 keeps all.
        gates: What a distractor must pass.

    Source:
        DeepEra, section 6.2: two settings, 30 passages a question. The paper does not say how many
        distractors a pool has: 3 is one of each kind.
    """

    n_questions: int = 100
    settings: tuple[Setting, ...] = ("base", "ssli")
    seed: int = 0
    n_contexts: int = 30
    n_distractors: int = 3
    per_document: int = 1
    max_tokens: int = 200
    golden: Golden = "insert"
    attempts: int = 3
    min_similarity: float | None = None
    min_group: int = 2
    gates: Gates = field(default_factory=Gates)

    def __post_init__(self) -> None:
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be >= 1, got {getattr(self, name)}")
        if self.seed < 0:
            raise SettingsError(f"seed must be >= 0, got {self.seed}")
        if self.n_contexts <= self.n_distractors:
            raise SettingsError(
                f"n_contexts must be above n_distractors ({self.n_distractors}), "
                f"got {self.n_contexts}"
            )
        if self.golden not in get_args(Golden):
            raise SettingsError(f"golden must be 'insert' or 'record', got {self.golden!r}")
        if self.min_similarity is not None and not -1 <= self.min_similarity <= 1:
            raise SettingsError(f"min_similarity must be in [-1, 1], got {self.min_similarity}")
        self._check_settings()

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read a plan from plain data, e.g. from the `plan` of a manifest."""
        fields = dict(plain)
        try:
            if isinstance(fields.get("gates"), Mapping):
                fields["gates"] = Gates(**fields["gates"])
            return cls(**{**fields, "settings": tuple(fields.get("settings", cls().settings))})
        except TypeError as error:
            raise SettingsError(f"plan: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in plain data, as JSON gives it back."""
        return {**asdict(self), "settings": list(self.settings)}

    def _check_settings(self) -> None:
        known = get_args(Setting)
        wrong = [one for one in self.settings if one not in known]
        if wrong or not self.settings or len(set(self.settings)) < len(self.settings):
            raise SettingsError(
                f"settings must be some of {', '.join(known)}, got {','.join(self.settings)!r}"
            )


class DropRecord(BaseModel):
    """A line of the drop log: a document or a question that went no further."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str = Field(description="Where it was dropped, e.g. 'documents' or 'lmqg'.")
    document: str = Field(description="Id of the document.")
    reason: str = Field(description="A short, stable name.")
    detail: str = Field(default="", description="What exactly was wrong.")


class RejectedDistractor(BaseModel):
    """A distractor that did not pass the gates."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str = Field(description="Id of the question.")
    slot: int = Field(ge=1, description="Which of its distractors.")
    attempt: int = Field(ge=1, description="Which try at it.")
    type: str = Field(description="What kind it was meant to be.")
    reasons: tuple[str, ...] = Field(description="Gates it failed, or why there is no text.")
    text: str = Field(default="", description="What was written.")


def count_drops(drops: Sequence[DropRecord]) -> dict[str, dict[str, int]]:
    """Return how many were dropped, by stage and reason, both in order of the alphabet."""
    stages = sorted({one.stage for one in drops})
    return {
        stage: dict(sorted(Counter(one.reason for one in drops if one.stage == stage).items()))
        for stage in stages
    }
