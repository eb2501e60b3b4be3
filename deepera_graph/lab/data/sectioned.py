"""Documents with sections, and their questions: folders of articles, and PubMedQA."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from deepera_graph.calibration.instance import (
    Context,
    DatasetError,
    Instance,
    LenientRow,
    first_problem,
    read_rows,
)
from deepera_graph.lab.build.corpus import CorpusSection, Document
from deepera_graph.lab.build.natural import SectionQuestion

_AT_ONCE = 1 << 16  # characters
_MAY_GO_ON = ("", *"0123456789.eE+-")
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
    split: str = ""
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


def read_articles(
    folder: Path, *, dataset: str = "", subject: str = "", split: str | None = None
) -> Iterator[Instance]:
    """Yield one instance a question; candidates are in article order, without scores."""
    for instance, _ in _read_article_rows(folder, split):
        yield instance.model_copy(update={"dataset": dataset or folder.name, "subject": subject})


def _read_article_rows(folder: Path, split: str | None) -> Iterator[tuple[Instance, str]]:
    """Yield each question with all passages of its article, and the id of that article."""
    pools = _read_pools(folder)
    path = folder / "questions.jsonl"
    for row in read_rows(path, _Question):
        if split is not None and row.split != split:
            continue
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


def read_article_questions(folder: Path, *, split: str | None = None) -> Iterator[SectionQuestion]:
    """Yield the questions, golden passages by their place in the article."""
    for instance, article in _read_article_rows(folder, split):
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


def read_members(path: Path, *, block: int = _AT_ONCE) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of an object's members in file order, one value in memory at a time."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from _Reader(path, iter(lambda: file.read(block), "")).members()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not UTF-8: {error.reason}") from error


class _Reader:
    """A window on the file that grows until the next value fits and is cut after it."""

    def __init__(self, path: Path, blocks: Iterator[str]) -> None:
        self._path, self._blocks = path, blocks
        self._text, self._place = "", 0
        self._decoder = json.JSONDecoder()
        self._last = ""

    def members(self) -> Iterator[tuple[str, Any]]:
        self._expect("{")
        closing = self._next() == "}"
        while not closing:
            name = self._value()
            if not isinstance(name, str):
                raise self._bad(f"a name must be a string, got {name!r}")
            self._last = name
            self._expect(":")
            yield name, self._value()
            closing = self._next() == "}"
            if not closing:
                self._expect(",")
        self._expect("}")
        if self._next():
            raise self._bad("something follows the object")

    def _next(self) -> str:
        """The next character that is no white space, without taking it; empty at the end."""
        while True:
            while self._place < len(self._text):
                if not self._text[self._place].isspace():
                    return self._text[self._place]
                self._place += 1
            if not self._grow():
                return ""

    def _expect(self, mark: str) -> None:
        found = self._next()
        if found != mark:
            raise self._bad(f"expected {mark!r}, got {found or 'the end'!r}")
        self._place += 1

    def _value(self) -> Any:
        self._next()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._place)
            except json.JSONDecodeError as error:
                if not self._grow():
                    raise self._bad(error.msg) from error
                continue
            if self._text[end : end + 1] in _MAY_GO_ON and self._grow():
                continue  # the block may end in the middle of a number
            self._place = end
            return value

    def _grow(self) -> bool:
        block = next(self._blocks, "")
        self._text = self._text[self._place :] + block
        self._place = 0
        return bool(block)

    def _bad(self, what: str) -> DatasetError:
        after = f" after {self._last!r}" if self._last else ""
        return DatasetError(f"{self._path} is not one JSON object{after}: {what}")


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
    for name, value in read_members(path):
        try:
            yield name, _Entry.model_validate(value)
        except ValidationError as error:
            raise DatasetError(f"{path}, entry {name!r}: {first_problem(error)}") from error
