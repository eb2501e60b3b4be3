"""A data set from a path, whatever kind of file or folder it is."""

import json
from functools import partial
from pathlib import Path

from deepera_graph.bench.dataset import Dataset
from deepera_graph.bench.errors import DatasetError
from deepera_graph.bench.jsonl import read_lines
from deepera_graph.bench.readers.articles import read_articles
from deepera_graph.bench.readers.beir import read_beir
from deepera_graph.bench.readers.instances import read_instances
from deepera_graph.bench.readers.natural import read_natural
from deepera_graph.bench.readers.plain import read_plain
from deepera_graph.bench.sample import NAMES, named_sample


def open_dataset(
    path: Path, *, name: str = "", split: str = "test", n_candidates: int = 100
) -> Dataset:
    """Return the data set at a path; it is read when it is iterated.

    A folder with ``corpus.jsonl`` is a BEIR folder, one with ``passages.jsonl`` a folder of
    articles; a file with the suffix ``.json`` is PubMedQA's, whose questions get natural
    look-alikes; another file holds instances, or plain lines with `passages`. The names of
    `deepera_graph.bench.sample` stand for the data sets that come with this package.

    Args:
        path: A file or a folder.
        name: Heads the table; the name of the file or folder when empty.
        split: Which judgements of a BEIR folder to use.
        n_candidates: How many documents BM25 finds for a query of a BEIR folder, >= 1.

    Raises:
        DatasetError: It is none of these.
    """
    title = name or path.stem
    if (path / "corpus.jsonl").exists():
        read = partial(read_beir, path, split=split, n_candidates=n_candidates)
        return Dataset(title, read, f"BM25 over the corpus, best {n_candidates}")
    if (path / "passages.jsonl").exists():
        return Dataset(title, partial(read_articles, path), "order in the article")
    if path.is_file() and path.suffix == ".json":
        return Dataset(title, partial(read_natural, path), "BM25 over all sections")
    if path.is_file():
        if "passages" in _first_row(path):
            return Dataset(title, partial(read_plain, path), "order in the file")
        return Dataset(title, partial(read_instances, path), "order in the file")
    if str(path) in NAMES:
        return named_sample(str(path))
    raise DatasetError(
        f"{path} is no data set: expected a JSON lines file, PubMedQA's JSON, a folder with "
        "corpus.jsonl, a folder with passages.jsonl, or one of " + ", ".join(NAMES)
    )


def _first_row(path: Path) -> dict[str, object]:
    number, line = next(read_lines(path), (0, b""))
    if not number:
        raise DatasetError(f"{path} is empty")
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DatasetError(f"{path}, line {number}: not JSON: {error}") from error
    return row if isinstance(row, dict) else {}
