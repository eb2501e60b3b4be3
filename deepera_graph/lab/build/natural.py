"""Natural data sets: the distractors are the other sections of the document that answers."""

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.calibration.instance import Context, DatasetError, Instance
from deepera_graph.errors import SettingsError
from deepera_graph.lab.build.corpus import Document
from deepera_graph.lab.build.writing.answers import containment
from deepera_graph.lab.rankers.retrieval import BM25Index
from deepera_graph.stores.embeddings import cosines, unit_rows

N_CANDIDATES = 30
UNLABELLED = "unlabelled"
Scores = NDArray[np.float64]
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


class SectionPassage(NamedTuple):
    """One section; `id` says nothing about its place in the document."""

    id: str
    document: str
    title: str
    section: str
    text: str


def make_natural_instances(
    documents: Iterable[Document],
    questions: Iterable[SectionQuestion],
    *,
    n_candidates: int = N_CANDIDATES,  # size of a pool, >= 2
    embeddings: Embeddings | None = None,  # BM25 over all sections if None
    dataset: str = "",
    left_out: MutableMapping[str, str] | None = None,  # is given ids and reasons
) -> Iterator[Instance]:
    """Yield one instance a question, in order, without asking any model."""
    # Golden sections come first, those without a place go to `golden_outside`; sections that nearly
    # repeat one are left out, as nobody judged them; the best of other documents fill up the pool.
    if n_candidates < 2:
        raise SettingsError(f"n_candidates must be >= 2, got {n_candidates}")
    sections = Sections(documents)
    score = _first_stage([one.text for one in sections.passages], embeddings)
    for question in questions:
        reason = sections.find_problem(question)
        if not reason:
            scores = score(question.question)
            contexts, outside = _make_pool(sections, question, scores, n_candidates)
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


class Sections:
    """All sections that have text, held in memory, each with an index from 0."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.passages: list[SectionPassage] = []
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
        own, document = self._own[question.document], question.document
        places = (place for one in question.golden for place in self._places(document, one))
        indices = (own[place] for place in dict.fromkeys(places))
        return [index for index in indices if index is not None]

    def distractors(self, question: SectionQuestion) -> list[int]:
        """Return the other sections of the document, without those that nearly repeat an answer."""
        golden = self.golden(question)
        others = (index for index in self.own(question.document) if index not in golden)
        answers = [self.passages[index].text for index in golden]
        return [
            index
            for index in others
            if all(containment(self.passages[index].text, one) < _COPIED for one in answers)
        ]

    def find_problem(self, question: SectionQuestion) -> str:
        """Return why a question cannot have natural distractors; empty if it can."""
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
        return "" if self.distractors(question) else "the document has no other section"

    def _add(self, document: Document) -> None:
        if document.id in self._own:
            raise DatasetError(f"document id {document.id!r} is used twice")
        sections = [(one.name, one.text) for one in document.sections] or [("", document.text)]
        self._names[document.id] = [name.strip().casefold() for name, _ in sections]
        own = self._own[document.id] = []
        for place, (name, text) in enumerate(sections):
            own.append(len(self.passages) if text.strip() else None)
            if text.strip():
                id = sha256(f"{document.id}\n{place}".encode()).hexdigest()[:16]
                self.passages.append(SectionPassage(id, document.id, document.title, name, text))

    def _places(self, document: str, golden: int | str) -> list[int]:
        """Return which sections of a document are meant; several may have one name."""
        names = self._names[document]
        if isinstance(golden, int):
            return [golden] if 0 <= golden < len(names) else []
        return [place for place, name in enumerate(names) if name == golden.strip().casefold()]


def _first_stage(texts: Sequence[str], embeddings: Embeddings | None) -> Callable[[str], Scores]:
    """Return what scores all sections for a question; shape (n_sections,)."""
    if embeddings is None:
        return BM25Index(texts).scores
    units = unit_rows(embeddings.embed_documents(list(texts)))
    return lambda question: cosines(units, embeddings.embed_query(question))


def _make_pool(
    sections: Sections, question: SectionQuestion, scores: Scores, n: int
) -> tuple[tuple[Context, ...], dict[str, int]]:
    """Return *n* candidates in first-stage order, and the golden ones without a place."""
    golden = _sort(scores, sections.golden(question))
    kept = golden[: n - 1]
    distractors = _sort(scores, sections.distractors(question))[: n - len(kept)]
    fillers = _find_fillers(sections, question, scores, n - len(kept) - len(distractors))
    parent = sections.passages[kept[0]].id
    contexts: list[Context] = []
    for index in _sort(scores, [*kept, *distractors, *fillers]):
        passage, is_distractor = sections.passages[index], index in distractors
        kind = passage.section.strip().lower() or UNLABELLED
        contexts.append(
            Context(
                id=passage.id,
                text=passage.text,
                title=passage.title,
                is_golden=index in kept,
                is_distractor=is_distractor,
                distractor_type=kind if is_distractor else None,
                parent_id=parent if is_distractor else None,
                first_stage_rank=len(contexts) + 1,
                first_stage_score=float(scores[index]),
            )
        )
    return tuple(contexts), {sections.passages[index].id: 1 for index in golden[n - 1 :]}


def _find_fillers(
    sections: Sections, question: SectionQuestion, scores: Scores, n: int
) -> list[int]:
    """Return the best sections of other documents whose texts are new."""
    seen = {sections.passages[index].text for index in sections.own(question.document)}
    found: list[int] = []
    for index in map(int, np.argsort(-scores, kind="stable")):
        if len(found) >= n:
            break
        passage = sections.passages[index]
        if passage.document != question.document and passage.text not in seen:
            seen.add(passage.text)
            found.append(index)
    return found


def _sort(scores: Scores, indices: Sequence[int]) -> list[int]:
    return sorted(indices, key=lambda index: (-scores[index], index))
