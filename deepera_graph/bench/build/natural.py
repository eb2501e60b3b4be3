"""The sections of a corpus, by document and by place; which of them may be look-alikes."""

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.bench.build.corpus import Document
from deepera_graph.bench.build.gates import containment
from deepera_graph.bench.data.instance import Context, DatasetError, Instance
from deepera_graph.bench.rankers.embedding import cosines, unit_rows
from deepera_graph.bench.rankers.lexical import BM25Index
from deepera_graph.errors import SettingsError

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
    """All sections that have text, held in memory, each with an index from 0."""

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
        """Return why a question cannot have natural look-alikes; empty if it can."""
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


N_CANDIDATES = 30
UNLABELLED = "unlabelled"
Scores = NDArray[np.float64]


def natural_instances(
    documents: Iterable[Document],
    questions: Iterable[SectionQuestion],
    *,
    n_candidates: int = N_CANDIDATES,
    embeddings: Embeddings | None = None,
    dataset: str = "",
    left_out: MutableMapping[str, str] | None = None,
) -> Iterator[Instance]:
    """Yield one instance a question, in order, without asking any model.

    All sections of the document are candidates, the best ones if it has more than *n_candidates*;
    golden ones come first, and those without a place are named in `golden_outside`. Sections that
    nearly repeat a golden one are left out, as nobody judged whether they answer. The other
    candidates are the best sections of other documents.

    Args:
        documents: Those without sections count as one section. Held in memory.
        questions: What to ask.
        n_candidates: Size of a pool, >= 2; fewer where the corpus has no more.
        embeddings: First stage, by cosine; BM25 over all sections when None.
        dataset: Put into every instance.
        left_out: Is given the id of each question that cannot be used, and why.

    Raises:
        SettingsError: *n_candidates* is below 2.
        DatasetError: An id comes twice, a question names what is not there, or there is no text.
    """
    if n_candidates < 2:
        raise SettingsError(f"n_candidates must be >= 2, got {n_candidates}")
    sections = Sections(documents)
    score = _first_stage([one.text for one in sections.passages], embeddings)
    for question in questions:
        reason = sections.unfit(question)
        if not reason:
            scores = score(question.question)
            contexts, outside = _pool(sections, question, scores, n_candidates)
            yield Instance(
                id=question.id,
                dataset=dataset,
                setting="natural",
                subject=question.subject,
                question=question.question,
                gold_answer=question.gold_answer,
                decision=question.decision,
                contexts=contexts,
                golden_outside=outside,
            )
        elif left_out is not None:
            left_out[question.id] = reason


def _first_stage(texts: Sequence[str], embeddings: Embeddings | None) -> Callable[[str], Scores]:
    """Return what scores all sections for a question; shape (n_sections,)."""
    if embeddings is None:
        return BM25Index(texts).scores
    units = unit_rows(embeddings.embed_documents(list(texts)))
    return lambda question: cosines(units, embeddings.embed_query(question))


def _pool(
    sections: Sections, question: SectionQuestion, scores: Scores, n_candidates: int
) -> tuple[tuple[Context, ...], dict[str, int]]:
    """Return the candidates in first-stage order, and the golden ones without a place."""
    golden = _best(scores, sections.golden(question))
    kept = golden[: n_candidates - 1]
    lookalikes = _best(scores, sections.lookalikes(question))[: n_candidates - len(kept)]
    room = n_candidates - len(kept) - len(lookalikes)
    parent = sections.passages[kept[0]].id
    contexts: list[Context] = []
    for index in _best(scores, [*kept, *lookalikes, *_fillers(sections, question, scores, room)]):
        passage = sections.passages[index]
        kind = passage.section.strip().lower() or UNLABELLED
        contexts.append(
            Context(
                id=passage.id,
                text=passage.text,
                title=passage.title,
                is_golden=index in kept,
                is_distractor=index in lookalikes,
                distractor_type=kind if index in lookalikes else None,
                parent_id=parent if index in lookalikes else None,
                first_stage_rank=len(contexts) + 1,
                first_stage_score=float(scores[index]),
            )
        )
    outside = {sections.passages[index].id: 1 for index in golden[n_candidates - 1 :]}
    return tuple(contexts), outside


def _fillers(sections: Sections, question: SectionQuestion, scores: Scores, n: int) -> list[int]:
    """Return the best sections of other documents whose texts are new."""
    seen = {sections.passages[index].text for index in sections.own(question.document)}
    found: list[int] = []
    for index in np.argsort(-scores, kind="stable"):
        if len(found) >= n:
            break
        passage = sections.passages[index]
        if passage.document != question.document and passage.text not in seen:
            seen.add(passage.text)
            found.append(int(index))
    return found


def _best(scores: Scores, indices: Sequence[int]) -> list[int]:
    return sorted(indices, key=lambda index: (-scores[index], index))
