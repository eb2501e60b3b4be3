"""Embeddings of the judge's weights as a first stage: beside BM25, and fused with it.

    pip install -e '.[bench]'
    python benchmarks/judge/first_stage.py scifact/

The folder is in the layout of BEIR. Passages are held in Qdrant's embedded store, by their words
and by `EvidenceEmbeddings`; both rankings are fused by reciprocal rank, as the store's hybrid mode
fuses them.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from langchain_core.documents import Document
from pydantic import BaseModel, Field

from deepera_graph.calibration.instance import read_rows
from deepera_graph.calibration.statistics import Values, bootstrap
from deepera_graph.lab.data.beir import Search, read_beir
from deepera_graph.lab.metrics.ranking import JudgedRanking, compute
from deepera_graph.lab.rankers.retrieval import CorpusBM25, IndexHit
from deepera_graph.retrieval.collections.passage_store import PassageStore
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.retrieval.search import fuse
from langchain_deepera import EvidenceEmbeddings

METRICS = ("nDCG@10", "Recall@100")
DEPTH = 100
FUSED = 4 * DEPTH  # of each ranking, as the store's hybrid mode takes for DEPTH results
BM25 = "BM25 (bm25s, stems)"


class Row(BaseModel):
    """One document of the corpus."""

    id: str = Field(alias="_id")
    title: str = ""
    text: str = ""


def first_stages(
    rows: Sequence[Row], words: PassageStore, dense: PassageStore
) -> dict[str, Search]:
    """Return the ways to search, by name; both stores get the documents."""
    for store in (words, dense):
        store.add(documents(rows), on_progress=lambda n: sys.stderr.write(f"{n} indexed\n"))
    by_words, by_vectors = searching(words), searching(dense)

    def fused(query: str, n: int) -> list[IndexHit]:
        rankings = [[one.id for one in way(query, FUSED)] for way in (by_words, by_vectors)]
        best = sorted(fuse(rankings).items(), key=lambda found: (-found[1], found[0]))
        return [IndexHit(id, score) for id, score in best[:n]]

    stems = CorpusBM25({row.id: f"{row.title} {row.text}".strip() for row in rows}).search
    return {
        BM25: stems,
        "words, as the store counts them": by_words,
        "EvidenceEmbeddings": by_vectors,
        "words and EvidenceEmbeddings, fused": fused,
    }


def documents(rows: Sequence[Row]) -> Iterator[Document]:
    """Yield passages as a user would index them."""
    for row in rows:
        if (row.text or row.title).strip():
            yield Document(
                id=row.id, page_content=row.text or row.title, metadata={"title": row.title}
            )


def searching(store: PassageStore) -> Search:
    """Return a search that finds the same again without searching."""

    @cache
    def deepest(query: str) -> list[IndexHit]:
        found = store.search(query, FUSED)
        return [IndexHit(str(one.id), one.metadata["retrieval_score"]) for one in found]

    return lambda query, n: deepest(query)[:n]


def judged(folder: Path, split: str, search: Search) -> list[JudgedRanking]:
    """Return the ranking of each question, with its labels."""
    instances = read_beir(folder, split=split, n_candidates=DEPTH, search=search)
    return [JudgedRanking.of(one, [context.id for context in one.contexts]) for one in instances]


def table(found: Mapping[str, Sequence[JudgedRanking]]) -> list[str]:
    """Return the lines of a Markdown table: means, intervals, and differences from BM25."""
    columns = [name for metric in METRICS for name in (metric, "minus BM25's")]
    lines = [f"| first stage | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for name, its in found.items():
        cells = []
        for metric in METRICS:
            values, base = compute(metric, its), compute(metric, found[BM25])
            cells.append(shown(values, "{:.1f}"))
            less = Values.of(values.values - base.values)
            cells.append("" if name == BM25 else shown(less, "{:+.1f}"))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def shown(values: Values, form: str) -> str:
    """Return mean and interval of 95 % over questions, times 100."""
    mean, low, high = (form.format(100 * one) for one in bootstrap(values))
    return f"{mean} [{low}, {high}]"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="in the layout of BEIR")
    parser.add_argument("--split", default="test", help="judgements (default: test)")
    chosen = parser.parse_args()
    if not (chosen.folder / "corpus.jsonl").is_file():
        parser.error(f"{chosen.folder} is no folder in the layout of BEIR: no corpus.jsonl")
    rows = list(read_rows(chosen.folder / "corpus.jsonl", Row))
    with (
        open_store("words", mode="sparse") as words,
        open_store("dense", mode="dense", embeddings=EvidenceEmbeddings()) as dense,
    ):
        ways = first_stages(rows, words, dense)
        found = {name: judged(chosen.folder, chosen.split, way) for name, way in ways.items()}
    n_questions = len(found[BM25])
    lines = [f"{len(rows)} documents, {n_questions} questions", "", *table(found), ""]
    sys.stdout.write("\n".join(lines))


if __name__ == "__main__":
    main()
