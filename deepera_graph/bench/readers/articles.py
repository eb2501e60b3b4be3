"""Articles cut into passages: the candidates of a question are all passages of its article.

A folder holds ``passages.jsonl`` (id, article, section, text), ``questions.jsonl`` (id, article,
golden passage ids, and a question or intervention, comparator and outcome) and perhaps
``articles.jsonl`` (id, title). Evidence Inference and SciSumm are kept like this.
"""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from deepera_graph.bench.build.document import Document, Section
from deepera_graph.bench.build.sections import SectionQuestion
from deepera_graph.bench.errors import DatasetError
from deepera_graph.bench.instance import Context, Instance
from deepera_graph.bench.jsonl import read_rows


class _Passage(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    article: str
    section: str = ""
    text: str


class _Article(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    title: str = ""


class _Question(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    article: str
    split: str = ""
    question: str = ""
    intervention: str = ""
    comparator: str = ""
    outcome: str = ""
    label: str = ""
    golden: list[str] = Field(min_length=1)

    def asked(self) -> str:
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

    Args:
        folder: See the module.
        dataset: Name put into every instance; the folder's name when empty.
        subject: Field of science put into every instance.
        split: Only questions of this split; None takes all.

    Raises:
        DatasetError: A line cannot be read, or a question names an unknown article or passage.
    """
    for instance, _ in _asked(folder, split):
        yield instance.model_copy(update={"dataset": dataset or folder.name, "subject": subject})


def _asked(folder: Path, split: str | None) -> Iterator[tuple[Instance, str]]:
    """Yield each question with all passages of its article, and the id of that article."""
    pools = _pools(folder)
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
                question=row.asked(),
                gold_answer=row.label,
                contexts=_labelled(pools[row.article], row.golden),
            )
        except (ValidationError, ValueError) as error:
            raise DatasetError(f"{path}: question {row.id!r}: {error}") from error
        yield instance, row.article


def read_article_documents(folder: Path) -> Iterator[Document]:
    """Yield each article, its passages as sections in order; all are held in memory.

    Raises:
        DatasetError: A line cannot be read.
    """
    for article, pool in _pools(folder).items():
        sections = [Section(name=one.section, text=one.text) for one in pool]
        yield Document.of_sections(article, sections, title=pool[0].title)


def read_article_questions(folder: Path, *, split: str | None = None) -> Iterator[SectionQuestion]:
    """Yield the questions, golden passages by their place in the article.

    Args:
        folder: See the module.
        split: Only questions of this split; None takes all.

    Raises:
        DatasetError: A line cannot be read, or a question names an unknown article or passage.
    """
    for instance, article in _asked(folder, split):
        yield SectionQuestion(
            id=instance.id,
            document=article,
            question=instance.question,
            golden=tuple(
                place for place, context in enumerate(instance.contexts) if context.is_golden
            ),
            gold_answer=instance.gold_answer,
        )


def _pools(folder: Path) -> dict[str, list[Context]]:
    titles = _titles(folder / "articles.jsonl")
    pools: dict[str, list[Context]] = {}
    for row in read_rows(folder / "passages.jsonl", _Passage):
        if row.text.strip():
            title = titles.get(row.article, "")
            context = Context(id=row.id, text=row.text, title=title, section=row.section)
            pools.setdefault(row.article, []).append(context)
    return pools


def _titles(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    return {article.id: article.title for article in read_rows(path, _Article)}


def _labelled(pool: list[Context], golden: list[str]) -> tuple[Context, ...]:
    missing = set(golden) - {context.id for context in pool}
    if missing:
        raise ValueError(f"golden names no passage of the article: {sorted(missing)}")
    return tuple(
        context.model_copy(update={"is_golden": True}) if context.id in golden else context
        for context in pool
    )
