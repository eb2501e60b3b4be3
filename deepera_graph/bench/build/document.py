"""One document of a corpus, with its sections where they are known."""

from collections.abc import Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A part of a document under one heading, e.g. the methods of a structured abstract."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(default="", description="Heading as printed; empty where there is none.")
    text: str = Field(description="Its text, without the heading.")


class Document(BaseModel):
    """What a corpus holds under one id; `text` is blank where the source has none."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(min_length=1, description="Names the document within its corpus.")
    title: str = Field(default="", description="Its title.")
    text: str = Field(description="Abstract or full text.")
    subject: str = Field(default="", description="Field of science.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="What else is known.")
    sections: tuple[Section, ...] = Field(
        default=(), description="The text cut by its headings, in order; empty if not known."
    )

    @classmethod
    def of_sections(cls, id: str, sections: Sequence[Section], **fields: Any) -> Self:
        """Make a document whose text is its sections, an empty line between two."""
        text = "\n\n".join(section.text for section in sections)
        return cls(id=id, text=text, sections=tuple(sections), **fields)
