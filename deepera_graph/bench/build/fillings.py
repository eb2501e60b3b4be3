"""What a language model fills in while a benchmark is built."""

from typing import Literal

from pydantic import Field

from deepera_graph.backends.llm.answers import Filled

DistractorType = Literal["misleading", "background", "irrelevant"]


class FilledNotes(Filled):
    """Notes on a document."""

    methods: str = Field(description="How the work was done; empty if the document is silent.")
    results: str = Field(description="What was found; empty if the document is silent.")
    significance: str = Field(description="What it means; empty if the document is silent.")


class FilledPair(Filled):
    """A question and its answer."""

    question: str = Field(description="A question that stands on its own.")
    answer: str = Field(description="A short span of the passage, character by character.")


class FilledPairs(Filled):
    """Questions with their answers."""

    pairs: list[FilledPair] = Field(description="The pairs, the best one first.")


class FilledGuide(Filled):
    """The plan of one passage."""

    type: DistractorType = Field(description="What kind of passage it is.")
    focus: str = Field(description="What it is about, in one sentence.")
    avoid: list[str] = Field(description="Phrases that must not occur in it.")
    length: int = Field(description="How many words it should have.")


class FilledGuidance(Filled):
    """The plans of all passages for a question."""

    guides: list[FilledGuide] = Field(description="One plan a passage, in the order asked for.")


class FilledPassage(Filled):
    """A written passage."""

    text: str = Field(description="The passage and nothing else.")
