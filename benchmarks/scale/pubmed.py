"""PubMed as a corpus: megabytes a second, memory, passages a second, and 34 million on paper.

``python benchmarks/scale/pubmed.py``; ``--records 90000 --passages 400`` are the defaults, and
``--pubmed FOLDER`` takes files that are there. Times are CPU times, so that other programs on the
same cores matter less; wall times on an idle core are about the same.
"""

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from processes import busy, resident

from deepera_graph.retrieval.collections.collection import HashedTermEmbeddings
from langchain_deepera import EvidenceEmbeddings

_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<PubmedArticleSet>\n'
_WORDS = ["moss", "wall", "roof", "stone", "rain", "shade", "spore", "light", "water", "growth"]
_RECORDS = 34_000_000  # of PubMed with an abstract, in 2025
_READ = 39_000_000  # of them all
_PAUSE = 0.05  # seconds between two looks at the process
_MB, _GB = 1e6, 1e9
_LINKS = 2 * 16 * 4  # bytes of a vector's links in HNSW at m = 16: 2 m in the lowest layer
_KINDS = {"EvidenceEmbeddings": 384, "bge-large-en": 1024}


def main() -> None:
    """Measure, and say what it means for all of PubMed."""
    options = _options()
    with TemporaryDirectory() as name:
        folder = Path(name)
        source = options.pubmed or _write_file(folder / "pubmed25n0001.xml.gz", options.records)
        corpus = folder / "corpus.jsonl"
        read_rate = _measure_reading(source, corpus)
        with corpus.open(encoding="utf-8") as file:
            lines = [json.loads(line) for line in islice(file, options.passages)]
    words = options.words
    texts = [" ".join(f"{one['title']} {one['text']}".split()[:words]) for one in lines]
    embed_rate = _measure(f"embedded (local judge's, {words} words)", texts, _embed(texts))
    sparse_rate = _measure(f"words counted ({words} words)", texts, _count(texts))
    _tell_hours(read_rate, embed_rate, sparse_rate, options.core_hour)
    _tell_sizes()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=90_000)
    parser.add_argument("--pubmed", type=Path, help="a folder of PubMed's files, instead")
    parser.add_argument("--passages", type=int, default=400, help="embedded")
    parser.add_argument("--words", type=int, default=200, help="of a passage, at most")
    parser.add_argument("--core-hour", type=float, default=0.04, help="price of a core's hour")
    return parser.parse_args()


def _write_file(path: Path, n: int) -> Path:
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as file:
        file.write(_HEAD)
        file.writelines(_records(n))
        file.write("</PubmedArticleSet>\n")
    return path


def _records(n: int) -> Iterator[str]:
    """Yield citations of about 5.6 KB, as those of PubMed are with authors and references."""
    draw = random.Random(1)
    for number in range(1, n + 1):
        text = " ".join(draw.choices(_WORDS, k=800))
        yield (
            f'<PubmedArticle><MedlineCitation><PMID Version="1">{number}</PMID><Article>'
            "<Journal><JournalIssue><PubDate><Year>2020</Year></PubDate></JournalIssue>"
            f"<Title>Annals</Title></Journal><ArticleTitle>Moss {number}.</ArticleTitle>"
            f"<Abstract><AbstractText>{text}.</AbstractText></Abstract><Language>eng</Language>"
            "</Article></MedlineCitation></PubmedArticle>\n"
        )


def _measure_reading(source: Path, out: Path) -> float:
    """Read into a corpus in a process of its own; return records a second of CPU time."""
    command = [sys.executable, "-m", "deepera_graph.lab", "bioasq", "read"]
    command += [str(source), "-o", str(out)]
    start, peak, seconds = time.perf_counter(), 0, 0.0
    with out.with_suffix(".told").open("w+b") as told:
        process = subprocess.Popen([*command, "--json"], stdout=told)
        while process.poll() is None:
            peak, [now] = max(peak, resident(process.pid)), busy([process.pid]) or [0.0]
            seconds = max(seconds, now)
            time.sleep(_PAUSE)
        told.seek(0)
        report = json.load(told)
    n_bytes = sum(map(_size, sorted(source.glob("*.xml.gz")) if source.is_dir() else [source]))
    sys.stdout.write(
        f"{report['read']} records, {n_bytes / _MB:.0f} MB of XML, {report['kept']} kept: "
        f"{seconds:.1f} s of CPU ({time.perf_counter() - start:.0f} s wall), "
        f"{n_bytes / _MB / seconds:.0f} MB/s, {report['read'] / seconds:.0f} records/s, "
        f"most memory {peak / _MB:.0f} MB\n"
    )
    return float(report["read"]) / seconds


def _size(path: Path) -> int:
    with gzip.open(path) as file:
        return sum(map(len, iter(lambda: file.read(1 << 20), b"")))


def _embed(texts: list[str]) -> Iterable[object]:
    embeddings = EvidenceEmbeddings()
    embeddings.embed_query("the weights are loaded at first use")
    return (embeddings.embed_documents(texts) for _ in range(1))


def _count(texts: list[str]) -> Iterable[object]:
    words = HashedTermEmbeddings()
    return (words.embed_documents(texts) for _ in range(1))


def _measure(what: str, texts: list[str], work: Iterable[object]) -> float:
    start = time.process_time()
    for _ in work:
        pass
    rate = len(texts) / (time.process_time() - start)
    sys.stdout.write(f"{what}: {rate:.0f} passages a second of CPU time\n")
    return rate


def _tell_hours(reading: float, embedding: float, counting: float, price: float) -> None:
    rows = {
        "read": _READ / reading / 3600,
        "embed, local judge's": _RECORDS / embedding / 3600,
        "count words": _RECORDS / counting / 3600,
    }
    sys.stdout.write(f"\n{_RECORDS / 1e6:.0f} million: | core hours | on 64 cores | money\n")
    for what, hours in rows.items():
        sys.stdout.write(f"  {what} | {hours:.1f} | {hours / 64:.2f} h | {hours * price:.2f}\n")


def _tell_sizes() -> None:
    sys.stdout.write("\nGB: | float32 | int8 | binary | links\n")
    for name, size in _KINDS.items():
        floats = _RECORDS * size / _GB
        row = (4 * floats, floats, floats / 8, _RECORDS * _LINKS / _GB)
        sys.stdout.write(f"  {name} ({size}) | " + " | ".join(f"{one:.1f}" for one in row) + "\n")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
