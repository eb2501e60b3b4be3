"""BEIR folders: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv``."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.bench.candidates import CorpusBM25, Found
from deepera_graph.bench.errors import DatasetError
from deepera_graph.bench.instance import Context, Instance
from deepera_graph.bench.jsonl import read_lines, read_rows

Search = Callable[[str, int], Sequence[Found]]


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str = Field(alias="_id")
    title: str = ""
    text: str = ""

    def whole(self) -> str:
        """Title and text, as BEIR searches them."""
        return f"{self.title} {self.text}".strip()


class _Query(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str = Field(alias="_id")
    text: str


def read_beir(
    folder: Path, *, split: str = "test", n_candidates: int = 100, search: Search | None = None
) -> Iterator[Instance]:
    """Yield one instance a judged query; candidates are the best documents of a first stage.

    Judged documents that the first stage missed go to `golden_outside`, so nDCG and Recall count
    them.

    Args:
        folder: The corpus is held in memory.
        split: Which judgements to use.
        n_candidates: How many documents a query keeps, >= 1.
        search: First stage: (query, n) to (document id, score), best first; BM25 over the corpus
            when None.

    Raises:
        DatasetError: A line cannot be read, or a judged query is unknown.
    """
    corpus = {row.id: row for row in read_rows(folder / "corpus.jsonl", _Document)}
    queries = {row.id: row.text for row in read_rows(folder / "queries.jsonl", _Query)}
    find = search or CorpusBM25({id: row.whole() for id, row in corpus.items()}).search
    path = folder / "qrels" / f"{split}.tsv"
    for query, grades in _judgements(path).items():
        if query not in queries:
            raise DatasetError(f"{path}: query {query!r} is not in queries.jsonl")
        found = [one for one in find(queries[query], n_candidates) if corpus[one.id].whole()]
        ids = {one.id for one in found}
        yield Instance(
            id=query,
            dataset=folder.name,
            setting=split,
            question=queries[query],
            contexts=tuple(
                _context(corpus[one.id], rank, one.score, grades.get(one.id, 0))
                for rank, one in enumerate(found, start=1)
            ),
            golden_outside={id: grade for id, grade in grades.items() if id not in ids},
        )


def _context(document: _Document, rank: int, score: float, grade: int) -> Context:
    return Context(
        id=document.id,
        text=document.text if document.text.strip() else document.title,
        title=document.title,
        is_golden=grade > 0,
        grade=max(grade, 1),
        first_stage_rank=rank,
        first_stage_score=score,
    )


def _judgements(path: Path) -> dict[str, dict[str, int]]:
    """Return query id to {document id: grade >= 1}, in file order; grade 0 is left out."""
    judged: dict[str, dict[str, int]] = {}
    for number, line in read_lines(path):
        cells = line.decode("utf-8", "replace").rstrip("\r\n").split("\t")
        if number == 1 and cells[-1] == "score":
            continue
        try:
            query, document, grade = cells[0], cells[1], int(cells[2])
        except (IndexError, ValueError) as error:
            raise DatasetError(
                f"{path}, line {number}: must be query, document and whole grade, got {cells!r}"
            ) from error
        if grade > 0:
            judged.setdefault(query, {})[document] = grade
    return judged
