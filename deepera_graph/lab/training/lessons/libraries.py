"""Small libraries: some ten abstracts with titles on one narrow subject, and what they answer.

A line each: ``field``, ``subject``, ``abstracts`` with ``id``, ``title`` and ``text``, and
``questions``, each with ``golden``, what every abstract that answers says, by its id, and
``proof``, the sentences of each that state it.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from deepera_graph.calibration.instance import Context, Instance, NotBlank, read_rows
from deepera_graph.schema import Direction
from deepera_graph.text.jsonl import has_fields
from deepera_graph.text.words import split_sentences


class _Abstract(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str = Field(min_length=1)
    title: str = ""
    text: NotBlank


class _Asked(BaseModel):
    model_config = ConfigDict(extra="ignore")

    question: NotBlank
    golden: Mapping[str, Direction]  # empty if nothing answers
    proof: Mapping[str, Sequence[NotBlank]] = {}  # sentences of the abstracts that answer


class SmallLibrary(BaseModel):
    """Abstracts on one subject, and the questions they are asked."""

    model_config = ConfigDict(extra="ignore")

    field: str = ""
    subject: str
    abstracts: list[_Abstract] = Field(min_length=2)
    questions: list[_Asked] = Field(min_length=1)

    @model_validator(mode="after")
    def _fits_its_abstracts(self) -> Self:
        texts = {one.id: one.text for one in self.abstracts}
        for asked in self.questions:
            if unknown := asked.golden.keys() - texts.keys():
                raise ValueError(f"{asked.question!r}: no abstract is named {min(unknown)!r}")
            if unknown := asked.proof.keys() - asked.golden.keys():
                raise ValueError(f"{asked.question!r}: {min(unknown)!r} proves, but is not golden")
            for id, sentences in asked.proof.items():
                for one in sentences:
                    if one not in texts[id]:
                        raise ValueError(f"{asked.question!r}: {id!r} does not say {one!r}")
        return self


def is_libraries(path: Path) -> bool:
    """Tell whether a file holds small libraries: its first line has abstracts and questions."""
    return has_fields(path, "abstracts", "questions")


def read_libraries(path: Path) -> Iterator[Instance]:
    """Yield each question over all abstracts of its library; nothing answers some."""
    for library, asked in _read_asked(path):
        yield Instance(
            id=f"{library.subject}: {asked.question}",
            dataset=path.stem,
            subject=library.field,
            question=asked.question,
            contexts=tuple(
                Context(id=one.id, title=one.title, text=one.text, is_golden=one.id in asked.golden)
                for one in library.abstracts
            ),
        )


def read_library_proofs(path: Path) -> Iterator[tuple[str, tuple[str, ...], frozenset[int]]]:
    """Yield question, sentences and the places of those that prove, of each abstract that does."""
    for library, asked in _read_asked(path):
        for one in library.abstracts:
            if proof := asked.proof.get(one.id):
                sentences = tuple(its.text for its in split_sentences(one.text))
                proving = (
                    place
                    for place, its in enumerate(sentences)
                    if any(its in said or said in its for said in proof)
                )
                yield asked.question, sentences, frozenset(proving)


class SaidByAbstract(NamedTuple):
    """What an abstract says of a question of its library."""

    subject: str  # of the library
    question: str
    text: str
    said: Direction
    proof: str  # the first sentence that proves; empty if none is marked


def read_library_directions(path: Path) -> Iterator[SaidByAbstract]:
    """Yield what each abstract that answers says."""
    for library, asked in _read_asked(path):
        for one in library.abstracts:
            if one.id in asked.golden:
                proof = next(iter(asked.proof.get(one.id, ())), "")
                said = asked.golden[one.id]
                yield SaidByAbstract(library.subject, asked.question, one.text, said, proof)


def _read_asked(path: Path) -> Iterator[tuple[SmallLibrary, _Asked]]:
    for library in read_rows(path, SmallLibrary):
        for asked in library.questions:
            yield library, asked
