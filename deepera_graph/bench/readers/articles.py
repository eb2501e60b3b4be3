"""Articles cut into passages: the candidates of a question are all passages of its article.

A folder holds ``passages.jsonl`` (id, article, section, text), ``questions.jsonl`` (id, article,
golden passage ids, and a question or intervention, comparator and outcome) and perhaps
``articles.jsonl`` (id, title). Evidence Inference and SciSumm are kept like this.
"""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

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
    pools = _pools(folder)
    path = folder / "questions.jsonl"
    for row in read_rows(path, _Question):
        if split is not None and row.split != split:
            continue
        if row.article not in pools:
            raise DatasetError(f"{path}: question {row.id!r}: unknown article {row.article!r}")
        try:
            yield Instance(
                id=row.id,
                dataset=dataset or folder.name,
                setting="in article",
                subject=subject,
                question=row.asked(),
                gold_answer=row.label,
                contexts=_labelled(pools[row.article], row.golden),
            )
        except (ValidationError, ValueError) as error:
            raise DatasetError(f"{path}: question {row.id!r}: {error}") from error


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
