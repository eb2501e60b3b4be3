"""Folders in the layout of BEIR: a corpus, queries, and judgements of documents."""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from pydantic import Field

from deepera_graph.calibration.instance import (
    Context,
    DatasetError,
    Instance,
    LenientRow,
    read_lines,
    read_rows,
)
from deepera_graph.lab.rankers.retrieval import CorpusBM25, IndexHit
from deepera_graph.text.plain import name_some

_log = logging.getLogger(__name__)
_N_TREC = 4  # columns of TREC's judgements
Search = Callable[[str, int], Sequence[IndexHit]]


class BeirDocument(LenientRow):
    """A document of a BEIR corpus."""

    id: str = Field(alias="_id")
    title: str = ""
    text: str = ""

    def whole(self) -> str:
        """Title and text, as BEIR searches them."""
        return f"{self.title} {self.text}".strip()


class _Query(LenientRow):
    id: str = Field(alias="_id")
    text: str


def read_beir(
    folder: Path, *, split: str = "test", n_candidates: int = 100, search: Search | None = None
) -> Iterator[Instance]:
    """Yield one instance a judged query; judged documents not found go to `golden_outside`."""
    corpus = {row.id: row for row in read_rows(folder / "corpus.jsonl", BeirDocument)}
    queries = {row.id: row.text for row in read_rows(folder / "queries.jsonl", _Query)}
    find = search or CorpusBM25({id: row.whole() for id, row in corpus.items()}).search
    path = folder / "qrels" / f"{split}.tsv"
    judged = read_judgements(path)
    unknown = [query for query in judged if query not in queries]
    if unknown and len(unknown) == len(judged):
        raise DatasetError(f"{path}: none of its queries is in queries.jsonl: {name_some(unknown)}")
    if unknown:
        log_once(f"{path}: left out, as queries.jsonl does not have them: {name_some(unknown)}")
    lost = {id for query in judged if query in queries for id in judged[query] if id not in corpus}
    if lost:
        names = name_some(sorted(lost))
        log_once(f"{path}: count as not found, as corpus.jsonl does not have them: {names}")
    for query, grades in judged.items():
        if query not in queries:
            continue
        found = [one for one in find(queries[query], n_candidates) if corpus[one.id].whole()]
        ids = {one.id for one in found}
        yield Instance(
            id=query,
            dataset=folder.name,
            setting=split,
            question=queries[query],
            contexts=tuple(
                _beir_context(corpus[one.id], rank, one.score, grades.get(one.id, 0))
                for rank, one in enumerate(found, start=1)
            ),
            golden_outside={id: grade for id, grade in grades.items() if id not in ids},
        )


@cache
def log_once(text: str) -> None:
    """Log what is wrong with a set, once a process: it is read several times."""
    _log.warning("%s", text)


def _beir_context(document: BeirDocument, rank: int, score: float, grade: int) -> Context:
    return Context(
        id=document.id,
        text=document.text if document.text.strip() else document.title,
        title=document.title,
        is_golden=grade > 0,
        grade=max(grade, 1),
        first_stage_rank=rank,
        first_stage_score=score,
    )


def read_judgements(path: Path) -> dict[str, dict[str, int]]:
    """Return query id to {document id: grade >= 1}, in file order; empty where all grades are 0."""
    # Columns are those of BEIR, with tabs between them, or the four of TREC, of which the second
    # says nothing of the document.
    judged: dict[str, dict[str, int]] = {}
    is_trec = True  # unless the head of BEIR's columns is there
    for number, line in read_lines(path):
        text = line.decode("utf-8", "replace").strip("\r\n")
        cells = text.split("\t") if "\t" in text else text.split()
        if number == 1 and cells[-1] == "score":
            is_trec = False
            continue
        if is_trec and len(cells) == _N_TREC:
            del cells[1]
        try:
            query, document, grade = cells[0], cells[1], int(cells[2])
        except (IndexError, ValueError) as error:
            raise DatasetError(
                f"{path}, line {number}: must be query, document and whole grade, or the four "
                f"columns of TREC's qrels (query, 0, document, grade), got {cells!r}"
            ) from error
        golden = judged.setdefault(query, {})
        if grade > 0:
            golden[document] = grade
    return judged
