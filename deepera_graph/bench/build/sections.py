"""The sections of a corpus, by document and by place; which of them may be look-alikes."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.bench.build.document import Document
from deepera_graph.bench.build.overlap import containment
from deepera_graph.bench.errors import DatasetError

_COPIED = 0.4


class SectionQuestion(BaseModel):
    """A question that some sections of one document answer."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(min_length=1, description="Names the question.")
    document: str = Field(description="Id of the document that answers.")
    question: str = Field(description="What is asked.")
    golden: tuple[int | str, ...] = Field(
        description="The answering sections: places from 0, or names, in any case."
    )
    gold_answer: str = Field(default="", description="The answer.")
    decision: str = Field(default="", description="The answer in one word.")
    subject: str = Field(default="", description="Field of science.")


class Passage(NamedTuple):
    """One section; `id` says nothing about its place in the document."""

    id: str
    document: str
    title: str
    section: str
    text: str


class Sections:
    """All sections that have text, held in memory, each with an index from 0.

    Args:
        documents: Those without sections count as one section.

    Raises:
        DatasetError: An id comes twice, or there is no text at all.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        self.passages: list[Passage] = []
        self._own: dict[str, list[int | None]] = {}  # by place in the document; None if blank
        self._names: dict[str, list[str]] = {}
        for document in documents:
            self._add(document)
        if not self.passages:
            raise DatasetError("the documents hold no text")

    def own(self, document: str) -> list[int]:
        """Return the indices of a document's sections, in order."""
        return [index for index in self._own[document] if index is not None]

    def golden(self, question: SectionQuestion) -> list[int]:
        """Return the indices of the sections that answer."""
        own = self._own[question.document]
        places = (
            place for one in question.golden for place in self._places(question.document, one)
        )
        indices = (own[place] for place in dict.fromkeys(places))
        return [index for index in indices if index is not None]

    def lookalikes(self, question: SectionQuestion) -> list[int]:
        """Return the other sections of the document, without those that nearly repeat an answer."""
        golden = self.golden(question)
        answers = [self.passages[index].text for index in golden]
        return [
            index
            for index in self.own(question.document)
            if index not in golden and not _repeats(self.passages[index].text, answers)
        ]

    def unfit(self, question: SectionQuestion) -> str:
        """Return why a question cannot have natural look-alikes; empty if it can.

        Raises:
            DatasetError: It names an unknown document, or a section that is not there.
        """
        names = self._names.get(question.document)
        if names is None:
            raise DatasetError(f"question {question.id!r}: unknown document {question.document!r}")
        wrong = [one for one in question.golden if not self._places(question.document, one)]
        if wrong:
            raise DatasetError(
                f"question {question.id!r}: golden must name sections of document "
                f"{question.document!r}, which has {len(names)}, got {wrong}"
            )
        if not self.golden(question):
            return "no section is known to answer"
        return "" if self.lookalikes(question) else "the document has no other section"

    def _add(self, document: Document) -> None:
        if document.id in self._own:
            raise DatasetError(f"document id {document.id!r} is used twice")
        sections = [(one.name, one.text) for one in document.sections] or [("", document.text)]
        self._names[document.id] = [name.strip().casefold() for name, _ in sections]
        own = self._own[document.id] = []
        for place, (name, text) in enumerate(sections):
            own.append(len(self.passages) if text.strip() else None)
            if text.strip():
                id = _opaque(document.id, place)
                self.passages.append(Passage(id, document.id, document.title, name, text))

    def _places(self, document: str, golden: int | str) -> list[int]:
        """Which sections of a document are meant; several may have one name."""
        names = self._names[document]
        if isinstance(golden, int):
            return [golden] if 0 <= golden < len(names) else []
        return [place for place, name in enumerate(names) if name == golden.strip().casefold()]


def _repeats(text: str, answers: Sequence[str]) -> bool:
    return any(containment(text, one) >= _COPIED for one in answers)


def _opaque(document: str, place: int) -> str:
    return sha256(f"{document}\n{place}".encode()).hexdigest()[:16]
