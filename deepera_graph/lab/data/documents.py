"""Documents of many formats: BEIR, JSON lines, OpenAlex records and its works by subject."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue, model_validator

from deepera_graph.calibration.instance import (
    DatasetError,
    Instance,
    LenientRow,
    read_lines,
    read_rows,
)
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.lab.build.corpus import CorpusSection, Document
from deepera_graph.lab.build.natural import SectionQuestion, make_natural_instances
from deepera_graph.lab.data.beir import log_once
from deepera_graph.lab.data.sectioned import (
    read_article_documents,
    read_article_questions,
    read_pubmedqa_documents,
    read_pubmedqa_questions,
)
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.papers.sources.citing import OpenAlex
from deepera_graph.settings.ranges import check_at_least, suggest_value


class _Named(LenientRow):
    display_name: str | None = None


class _Topic(_Named):
    field: _Named | None = None


# Source: https://docs.openalex.org/api-entities/works/work-object
class OpenAlexWork(LenientRow):
    """A record as OpenAlex serves it; what a document needs of it."""

    id: str = Field(min_length=1)
    display_name: str | None = None
    title: str | None = None
    abstract_inverted_index: dict[str, list[int]] | None = None
    primary_topic: _Topic | None = None
    concepts: tuple[_Named, ...] = ()
    doi: str | None = None
    publication_year: int | None = None
    language: str | None = None
    is_retracted: bool | None = None
    cited_by_count: int | None = None

    def to_document(self) -> Document:
        """Return the work as a document; without an abstract its text is blank."""
        facts = {
            "doi": self.doi,
            "year": self.publication_year,
            "language": self.language,
            "is_retracted": self.is_retracted,
            "cited_by": self.cited_by_count,
        }
        # the field of the topic; in records of before 2024 the first concept
        field = self.primary_topic and self.primary_topic.field
        named = field or next(iter(self.concepts), None)
        return Document(
            id=self.id.rpartition("/")[2] or self.id,
            title=self.display_name or self.title or "",
            text=restore_abstract(self.abstract_inverted_index or {}),
            subject=(named and named.display_name) or "",
            metadata={name: value for name, value in facts.items() if value is not None},
        )


def restore_abstract(index: dict[str, list[int]]) -> str:
    """Return the text of an inverted index: word to its places, from 0; gaps are closed."""
    placed = sorted((place, word) for word, places in index.items() for place in places)
    return " ".join(word for _, word in placed)


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    id: str = Field(min_length=1, validation_alias=AliasChoices("id", "_id"))
    title: str = ""
    text: str | None = None
    subject: str = ""
    metadata: dict[str, JsonValue] = {}
    sections: tuple[CorpusSection, ...] = ()

    @model_validator(mode="after")
    def _has_text(self) -> Self:
        if self.text is None and not self.sections:
            raise ValueError("text must be there, or sections with their name and text")
        return self

    def to_document(self) -> Document:
        fields = {name: value for name, value in self if value is not None}
        return Document(**fields) if "text" in fields else Document.of_sections(**fields)


def read_documents(path: Path) -> Iterator[Document]:
    """Yield the documents of a corpus, one in memory at a time but of articles and PubMedQA.

    - A folder with ``corpus.jsonl``, or such a file: BEIR, lines of `_id`, `title` and `text`.
    - A folder with ``passages.jsonl``: articles cut into passages.
    - JSON lines of OpenAlex works: the abstract is put together from its inverted index.
    - PubMedQA's JSON, one object of PubMed id to abstract.
    - Any other JSON lines: `id`, `text` or `sections`, and perhaps `title`, `subject`, `metadata`.

    A document without an abstract is given with a blank text. That no id comes twice is for the
    caller to see to: a corpus may be too large to remember its ids.

    Raises:
        DatasetError: It is none of these, or a line cannot be read; it is named with its file.
    """
    if (path / "corpus.jsonl").exists():
        yield from _read_rows(path / "corpus.jsonl")
    elif (path / "passages.jsonl").exists():
        yield from read_article_documents(path)
    elif path.is_dir():
        raise DatasetError(
            f"{path} holds no documents: expected corpus.jsonl or passages.jsonl in the folder"
        )
    elif path.suffix == ".json":
        yield from read_pubmedqa_documents(path)
    elif _is_openalex(path):
        yield from (work.to_document() for work in read_rows(path, OpenAlexWork))
    else:
        yield from _read_rows(path)


def _read_rows(path: Path) -> Iterator[Document]:
    for row in read_rows(path, _Row):
        yield row.to_document()


def _is_openalex(path: Path) -> bool:
    _, line = next(read_lines(path), (1, b"{}"))
    try:
        row = json.loads(line)
    except ValueError:
        return False  # reading the rows says what is wrong with the line
    return isinstance(row, dict) and (
        "abstract_inverted_index" in row or "openalex.org/" in str(row.get("id"))
    )


class NaturalSource(NamedTuple):
    """Documents and questions about their sections; each call reads them anew."""

    name: str
    documents: Callable[[], Iterator[Document]]
    questions: Callable[[], Iterator[SectionQuestion]]


def open_natural(path: Path, *, questions: Path | None = None) -> NaturalSource:
    """Return what is at a path: PubMedQA's JSON, a folder of articles, or documents."""
    if questions is not None:
        read = partial(read_rows, questions, SectionQuestion)
        return NaturalSource(path.stem, partial(read_documents, path), read)
    if path.suffix == ".json" and path.is_file():
        return NaturalSource(
            path.stem,
            partial(read_pubmedqa_documents, path),
            partial(read_pubmedqa_questions, path),
        )
    if (path / "questions.jsonl").exists() and (path / "passages.jsonl").exists():
        return NaturalSource(
            path.stem, partial(read_article_documents, path), partial(read_article_questions, path)
        )
    if not path.exists():
        raise DatasetError(f"no such file or folder: {str(path)!r}")
    raise DatasetError(
        f"{path} holds no questions about its documents; expected PubMedQA's JSON, a folder with "
        "passages.jsonl and questions.jsonl, or --questions FILE, for documents with sections"
    )


def read_natural(path: Path) -> Iterator[Instance]:
    """Yield one instance a question that has natural look-alikes; how many have none is logged."""
    source = open_natural(path)
    left_out: dict[str, str] = {}
    yield from make_natural_instances(
        source.documents(), source.questions(), dataset=source.name, left_out=left_out
    )
    if left_out:
        log_once(f"{path}: left out for want of natural look-alikes: {len(left_out)}")


SUBJECTS: Mapping[str, str] = {
    "biology": "C86803240",
    "chemistry": "C185592680",
    "computer science": "C41008148",
    "geography": "C205649164",
    "geology": "C127313418",
    "materials science": "C192562407",
    "mathematics": "C33923547",
    "medicine": "C71924100",
    "physics": "C121332964",
    "psychology": "C15744967",
}
"""Subject to the id of its concept at OpenAlex.

Source:
    DeepEra, section 6.1, has ten subjects and does not name them. These are ten of OpenAlex's
    concepts of level 0; biology, chemistry, geography, mathematics and physics are those of
    SciRerankBench.
"""


def pick_subjects(names: Collection[str]) -> dict[str, str]:
    """Return the subjects of these names; all of them if there are no names."""
    for name in names:
        if name not in SUBJECTS:
            raise SettingsError(
                f"a subject must be one of {', '.join(SUBJECTS)}, got {name!r}"
                f"{suggest_value(name, SUBJECTS)}"
            )
    return {name: SUBJECTS[name] for name in names or SUBJECTS}


def find_by_subject(
    n_each: int,  # most works of a subject, >= 1; fewer where some came with an earlier subject
    *,
    # name to the id of a concept, e.g. ``{"biology": "C86803240"}``
    subjects: Mapping[str, str] = SUBJECTS,
    seed: int = 0,  # another one draws other works
) -> Iterator[Document]:
    """Yield works of each subject in turn, under its name; a work of two counts for the first."""
    # They are from OpenAlex, with the key in ``OPENALEX_API_KEY``.
    # Raises `SettingsError` if *n_each* is below 1; `BackendError` if the service did not give what
    # was asked for; the message says why.
    check_at_least("n_each", n_each, 1)
    service, seen = OpenAlex(), set[str]()
    for subject, concept in subjects.items():
        answer = service.sample(concept, n_each, seed=seed)
        if not answer.is_complete:
            raise BackendError(f"no works on {subject}: {answer}")
        for record in answer.records:
            if record.paper.id not in seen:
                seen.add(record.paper.id)
                yield _to_document(record, subject)


def _to_document(record: PaperRecord, subject: str) -> Document:
    paper = record.paper
    facts = {"doi": paper.doi, "year": paper.year, "venue": paper.venue, "url": paper.url}
    return Document(
        id=paper.id,
        title=paper.title,
        text=paper.abstract,
        subject=subject,
        metadata={name: value for name, value in facts.items() if value},
    )
