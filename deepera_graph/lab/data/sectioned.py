"""Documents with sections, and their questions: folders of articles, and PubMedQA."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from deepera_graph.calibration.instance import (
    Context,
    DatasetError,
    Instance,
    LenientRow,
    first_problem,
    read_rows,
)
from deepera_graph.errors import InputError
from deepera_graph.lab.build.corpus import CorpusSection, Document
from deepera_graph.lab.build.natural import SectionQuestion
from deepera_graph.text.jsonl import BOM, parse_object

_EVIDENCE = ("RESULT", "FINDING")


class _Passage(LenientRow):
    id: str
    article: str
    section: str = ""
    text: str


class _Article(LenientRow):
    id: str
    title: str = ""


class _Question(LenientRow):
    id: str
    article: str
    question: str = ""
    intervention: str = ""
    comparator: str = ""
    outcome: str = ""
    label: str = ""
    golden: list[str] = Field(min_length=1)

    def text(self) -> str:
        """The question, or one made of intervention, comparator and outcome."""
        if self.question:
            return self.question
        return (
            f"Does {self.intervention.strip()} compared with {self.comparator.strip()} "
            f"affect {self.outcome.strip()}?"
        )


def read_articles(folder: Path) -> Iterator[Instance]:
    """Yield one instance a question; candidates are in article order, without scores."""
    for instance, _ in _read_article_rows(folder):
        yield instance.model_copy(update={"dataset": folder.name})


def _read_article_rows(folder: Path) -> Iterator[tuple[Instance, str]]:
    """Yield each question with all passages of its article, and the id of that article."""
    pools = _read_pools(folder)
    path = folder / "questions.jsonl"
    for row in read_rows(path, _Question):
        if row.article not in pools:
            raise DatasetError(f"{path}: question {row.id!r}: unknown article {row.article!r}")
        try:
            instance = Instance(
                id=row.id,
                setting="in article",
                question=row.text(),
                gold_answer=row.label,
                contexts=_label(pools[row.article], row.golden),
            )
        except (ValidationError, ValueError) as error:
            raise DatasetError(f"{path}: question {row.id!r}: {error}") from error
        yield instance, row.article


def read_article_documents(folder: Path) -> Iterator[Document]:
    """Yield each article, its passages as sections in order; all are held in memory."""
    for article, pool in _read_pools(folder).items():
        sections = [CorpusSection(name=one.section, text=one.text) for one in pool]
        yield Document.of_sections(article, sections, title=pool[0].title)


def read_article_questions(folder: Path) -> Iterator[SectionQuestion]:
    """Yield the questions, golden passages by their place in the article."""
    for instance, article in _read_article_rows(folder):
        yield SectionQuestion(
            id=instance.id,
            document=article,
            question=instance.question,
            golden=tuple(
                place for place, context in enumerate(instance.contexts) if context.is_golden
            ),
            gold_answer=instance.gold_answer,
        )


def _read_pools(folder: Path) -> dict[str, list[Context]]:
    path = folder / "articles.jsonl"
    titles = {one.id: one.title for one in read_rows(path, _Article)} if path.exists() else {}
    pools: dict[str, list[Context]] = {}
    for row in read_rows(folder / "passages.jsonl", _Passage):
        if row.text.strip():
            title = titles.get(row.article, "")
            context = Context(id=row.id, text=row.text, title=title, section=row.section)
            pools.setdefault(row.article, []).append(context)
    return pools


def _label(pool: list[Context], golden: list[str]) -> tuple[Context, ...]:
    missing = set(golden) - {context.id for context in pool}
    if missing:
        raise ValueError(f"golden names no passage of the article: {sorted(missing)}")
    return tuple(
        context.model_copy(update={"is_golden": True}) if context.id in golden else context
        for context in pool
    )


# Source: Jin et al. (2019), PubMedQA, section 3; https://github.com/pubmedqa/pubmedqa
class _Entry(BaseModel):
    """One abstract: sections without the conclusion, which is the long answer."""

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

    def sections(self) -> list[CorpusSection]:
        """The sections that have text, under their labels."""
        labels = self.labels or [""] * len(self.contexts)
        return [
            CorpusSection(name=label, text=text)
            for label, text in zip(labels, self.contexts, strict=True)
            if text.strip()
        ]


def read_pubmedqa_documents(path: Path) -> Iterator[Document]:
    """Yield each abstract as a document with sections; its title is blank, as in the file."""
    for name, entry in _read_entries(path):
        facts = {"year": entry.year, "mesh": entry.terms or None}
        yield Document.of_sections(
            name,
            entry.sections(),
            subject="biomedicine",
            metadata={key: value for key, value in facts.items() if value is not None},
        )


def read_pubmedqa_questions(path: Path) -> Iterator[SectionQuestion]:
    """Yield the questions; golden are the sections of results or findings, perhaps none."""
    for name, entry in _read_entries(path):
        yield SectionQuestion(
            id=name,
            document=name,
            question=entry.question,
            golden=tuple(
                number
                for number, section in enumerate(entry.sections())
                if any(word in section.name.upper() for word in _EVIDENCE)
            ),
            gold_answer=entry.long_answer,
            decision=entry.decision,
            subject="biomedicine",
        )


def _read_entries(path: Path) -> Iterator[tuple[str, _Entry]]:
    try:
        whole = parse_object(path.read_bytes().removeprefix(BOM))
    except (InputError, OSError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error
    for name, value in whole.items():
        try:
            yield name, _Entry.model_validate(value)
        except ValidationError as error:
            raise DatasetError(f"{path}, entry {name!r}: {first_problem(error)}") from error
