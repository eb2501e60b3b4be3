"""Small libraries: some ten abstracts with titles on one narrow subject, and what they answer.

A line each: ``field``, ``subject``, ``abstracts`` with ``id``, ``title`` and ``text``, and
``questions``, each with ``golden``, what every abstract that answers says, by its id.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from deepera_graph.calibration.instance import Context, Instance, NotBlank, read_rows
from deepera_graph.schema import Direction
from deepera_graph.text.jsonl import has_fields


class _Abstract(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str = Field(min_length=1)
    title: str = ""
    text: NotBlank


class _Asked(BaseModel):
    model_config = ConfigDict(extra="ignore")

    question: NotBlank
    golden: Mapping[str, Direction]  # empty if nothing answers


class SmallLibrary(BaseModel):
    """Abstracts on one subject, and the questions they are asked."""

    model_config = ConfigDict(extra="ignore")

    field: str = ""
    subject: str
    abstracts: list[_Abstract] = Field(min_length=2)
    questions: list[_Asked] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_its_own(self) -> Self:
        known = {one.id for one in self.abstracts}
        for asked in self.questions:
            if unknown := asked.golden.keys() - known:
                raise ValueError(f"{asked.question!r}: no abstract is named {min(unknown)!r}")
        return self


def is_libraries(path: Path) -> bool:
    """Tell whether a file holds small libraries: its first line has abstracts and questions."""
    return has_fields(path, "abstracts", "questions")


def read_libraries(path: Path) -> Iterator[Instance]:
    """Yield each question over all abstracts of its library; nothing answers some."""
    for library in read_rows(path, SmallLibrary):
        for asked in library.questions:
            yield Instance(
                id=f"{library.subject}: {asked.question}",
                dataset=path.stem,
                subject=library.field,
                question=asked.question,
                contexts=tuple(
                    Context(
                        id=one.id, title=one.title, text=one.text, is_golden=one.id in asked.golden
                    )
                    for one in library.abstracts
                ),
            )
