"""The settings of a build, the records of its logs, and what its chat model fills in."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.chat.parsing import ReplyModel
from deepera_graph.lab.build.settings import BuildSettings
from deepera_graph.lab.build.writing.gates import Gates

PACKAGE = "deepera_graph.lab.build.prompts"
DistractorType = Literal["misleading", "background", "irrelevant"]
Relation = Literal["agrees", "partly", "differs", "silent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan(BuildSettings):
    """The settings of a build; equal plans over equal documents and answers give equal bytes."""

    gates: Gates = field(default_factory=Gates)

    _READ: ClassVar[Mapping[str, type[Any]]] = {"gates": Gates}

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in plain data, as JSON gives it back."""
        plain = BuildSettings.to_dict(self)
        verify = plain.pop("verify")  # the last, in manifests
        return {**plain, "gates": asdict(self.gates), "verify": verify}


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
