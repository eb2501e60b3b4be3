"""Articles cut into passages: the candidates of a question are all passages of its article.

A folder holds ``passages.jsonl`` (id, article, section, text), ``questions.jsonl`` (id, article,
golden passage ids, and a question or intervention, comparator and outcome) and perhaps
``articles.jsonl`` (id, title). Evidence Inference and SciSumm are kept like this.
"""

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field, ValidationError

from deepera_graph.bench.build.corpus import Document, Section
from deepera_graph.bench.build.natural import SectionQuestion
from deepera_graph.bench.data.instance import (
    Context,
    DatasetError,
    Instance,
    LenientRow,
    read_rows,
)


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
    """Yield one instance a question; candidates are in article order, without first-stage scores.

    The passages of all articles are held in memory, the instances are not.
    """
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
        sections = [Section(name=one.section, text=one.text) for one in pool]
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
