"""PubMedQA's own JSON: an object of PubMed id to question, contexts, labels and answer."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from deepera_graph.bench.build.document import Document, Section
from deepera_graph.bench.build.sections import SectionQuestion
from deepera_graph.bench.errors import DatasetError
from deepera_graph.bench.jsonl import first_problem
from deepera_graph.bench.readers.json_members import read_members

_EVIDENCE = ("RESULT", "FINDING")


class _Entry(BaseModel):
    """One abstract: sections without the conclusion, which is the long answer.

    Source:
        Jin et al. (2019), PubMedQA, section 3; https://github.com/pubmedqa/pubmedqa
    """

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    question: str = Field(alias="QUESTION", min_length=1)
    contexts: list[str] = Field(alias="CONTEXTS", min_length=1)
    labels: list[str] = Field(alias="LABELS", default=[])
    long_answer: str = Field(alias="LONG_ANSWER", default="")
    decision: str = Field(alias="final_decision", default="")
    year: str | None = Field(alias="YEAR", default=None)
    terms: list[str] = Field(alias="MESHES", default=[])

    @model_validator(mode="after")
    def _one_label_each(self) -> "_Entry":
        if self.labels and len(self.labels) != len(self.contexts):
            raise ValueError(f"{len(self.contexts)} CONTEXTS but {len(self.labels)} LABELS")
        return self

    def sections(self) -> list[Section]:
        """The sections that have text, under their labels."""
        labels = self.labels or [""] * len(self.contexts)
        return [
            Section(name=label, text=text)
            for label, text in zip(labels, self.contexts, strict=True)
            if text.strip()
        ]


def read_pubmedqa_documents(path: Path) -> Iterator[Document]:
    """Yield each abstract as a document with sections; its title is blank, as in the file.

    Raises:
        DatasetError: The file is not PubMedQA's JSON; an entry is named by its PubMed id.
    """
    for name, entry in _entries(path):
        facts = {"year": entry.year, "mesh": entry.terms or None}
        yield Document.of_sections(
            name,
            entry.sections(),
            subject="biomedicine",
            metadata={key: value for key, value in facts.items() if value is not None},
        )


def read_pubmedqa_questions(path: Path) -> Iterator[SectionQuestion]:
    """Yield the questions; golden are the sections of results or findings, perhaps none.

    Raises:
        DatasetError: As above.
    """
    for name, entry in _entries(path):
        yield SectionQuestion(
            id=name,
            document=name,
            question=entry.question,
            golden=tuple(
                number for number, section in enumerate(entry.sections()) if _is_evidence(section)
            ),
            gold_answer=entry.long_answer,
            decision=entry.decision,
            subject="biomedicine",
        )


def _is_evidence(section: Section) -> bool:
    return any(word in section.name.upper() for word in _EVIDENCE)


def _entries(path: Path) -> Iterator[tuple[str, _Entry]]:
    for name, value in read_members(path):
        try:
            yield name, _Entry.model_validate(value)
        except ValidationError as error:
            raise DatasetError(f"{path}, entry {name!r}: {first_problem(error)}") from error
