"""The settings of a build, the records of its logs, and what its chat model fills in."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.chat.parsing import ReplyModel
from deepera_graph.errors import SettingsError
from deepera_graph.lab.build.writing.gates import Gates
from deepera_graph.ranges import check_choice
from deepera_graph.settings import AgentSettings

Setting = Literal["base", "ssli"]
Golden = Literal["insert", "record"]
PACKAGE = "deepera_graph.lab.build.prompts"
DistractorType = Literal["misleading", "background", "irrelevant"]
Relation = Literal["agrees", "partly", "differs", "silent"]


# Source: DeepEra, section 6.2: two settings, 30 passages a question. The paper does not say how
# many distractors a pool has: 3 is one of each kind.
@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan(AgentSettings):
    """The settings of a build; equal plans over equal documents and answers give equal bytes."""

    n_questions: int = 100  # wanted of each generator, >= 1
    # ``base`` as retrieved, ``ssli`` with distractors
    settings: tuple[Setting, ...] = ("base", "ssli")
    seed: int = 0  # of documents, passages and the distractors' places, >= 0
    n_contexts: int = 30  # passages in a pool, >= 2
    n_distractors: int = 3  # in an SSLI pool, >= 1, below `n_contexts`
    per_document: int = 1  # most questions of one document and generator, >= 1
    max_tokens: int = 200  # of a chunk, >= 1
    # one that was missed replaces the last passage, or goes to `golden_outside`
    golden: Golden = "insert"
    attempts: int = 3  # most tries at writing one distractor, >= 1
    # Least cosine that connects two documents, in [-1, 1]; None takes `find_fence` of the corpus,
    # as what is near differs from embedder to embedder.
    min_similarity: float | None = None
    min_group: int = 2  # connected documents that are kept together, >= 1; 1 keeps all
    gates: Gates = field(default_factory=Gates)
    verify: bool = True  # whether the model checks each distractor against the answer

    _LEAST: ClassVar[Mapping[str, int]] = {"seed": 0}
    _READ: ClassVar[Mapping[str, type[Any]]] = {"gates": Gates}

    def _check(self) -> None:
        if self.n_contexts <= self.n_distractors:
            raise SettingsError(
                f"n_contexts must be above n_distractors ({self.n_distractors}), "
                f"got {self.n_contexts}"
            )
        check_choice("golden", self.golden, get_args(Golden))
        if self.min_similarity is not None and not -1 <= self.min_similarity <= 1:
            raise SettingsError(f"min_similarity must be in [-1, 1], got {self.min_similarity}")
        known, chosen = get_args(Setting), tuple(self.settings)
        if not chosen or not {*chosen} <= {*known} or len({*chosen}) < len(chosen):
            raise SettingsError(
                f"settings must be some of {', '.join(known)}, got {','.join(chosen)!r}"
            )
        object.__setattr__(self, "settings", chosen)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in plain data, as JSON gives it back."""
        return {**AgentSettings.to_dict(self), "gates": asdict(self.gates)}


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


# The model is shown the names and docstrings of the classes below.


class FilledNotes(ReplyModel):
    """Notes on a document."""

    methods: str = Field(description="How the work was done; empty if the document is silent.")
    results: str = Field(description="What was found; empty if the document is silent.")
    significance: str = Field(description="What it means; empty if the document is silent.")


class FilledPair(ReplyModel):
    """A question and its answer."""

    question: str = Field(description="A question that stands on its own.")
    answer: str = Field(description="A short span of the passage, character by character.")


class FilledPairs(ReplyModel):
    """Questions with their answers."""

    pairs: list[FilledPair] = Field(description="The pairs, the best one first.")


class FilledGuide(ReplyModel):
    """The plan of one passage."""

    type: DistractorType = Field(description="What kind of passage it is.")
    focus: str = Field(description="What it is about, in one sentence.")
    avoid: list[str] = Field(description="Phrases that must not occur in it.")
    length: int = Field(description="How many words it should have.")


class FilledGuidance(ReplyModel):
    """The plans of all passages for a question."""

    guides: list[FilledGuide] = Field(description="One plan a passage, in the order asked for.")


class FilledPassage(ReplyModel):
    """A written passage."""

    text: str = Field(description="The passage and nothing else.")


class FilledCheck(ReplyModel):
    """How a passage stands to an answer."""

    quote: str = Field(description="The sentence that decides; empty if there is none.")
    relation: Relation = Field(description="How the passage stands to the correct answer.")
