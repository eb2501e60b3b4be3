"""What a base of papers takes: building it, searching it, matching titles, and clients at once.

    python benchmarks/papers/measure.py papers.jsonl.gz --to 108894 --queries queries.jsonl

The papers are made more by invented ones, halves of two abstracts each. Times are of CPU, as the
machine may be busy; those of clients at once are of a clock.
"""

import argparse
import gzip
import json
import os
import random
import resource
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from deepera_graph.judges.embeddings import EvidenceEmbeddings
from deepera_graph.papers import PaperBase, Scope
from deepera_graph.papers.library.vectors import (
    append_rows,
    unit_rows,
    vectors_path,
)
from deepera_graph.papers.library.vectors_kept import prepare_vectors
from deepera_graph.papers.library.writing import Writer
from deepera_graph.papers.rest import create_app


def main() -> None:
    """Measure, and print a JSON object a measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("papers", type=Path)
    parser.add_argument("--queries", type=Path, required=True, help="JSON lines with a query each")
    parser.add_argument("--to", type=int, default=108_894, help="papers in all")
    parser.add_argument("--n", type=int, default=150, help="queries asked")
    parser.add_argument("--folder", type=Path, default=Path("papers-bench"))
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    with gzip.open(given.papers) as lines:
        papers = [json.loads(line) for line in lines]
    texts = [json.loads(line)["query"] for line in given.queries.open()]
    file = given.folder / "bench.papers"
    measure_building(file, papers, given.to, given.folder)
    with PaperBase.open(file) as base:
        measure_searches(base, texts, given.n, "sparse")
        measure_lookups(base, papers)
        measure_titles(base, papers)
        measure_clients(base, texts)
    with PaperBase.open(add_vectors(file)) as base:
        measure_searches(base, texts, given.n, "hybrid")


def tell(name: str, **figures: Any) -> None:
    """Print a measure."""
    print(json.dumps({"measure": name, **figures}), flush=True)  # noqa: T201


def invent(papers: list[dict[str, Any]], n: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Yield papers made of halves of two others."""
    chance = random.Random(seed)
    whole = [one for one in papers if one["abstract"]]
    for number in range(n):
        one, other = chance.choice(whole), chance.choice(whole)
        first, second = one["title"].split(), other["title"].split()
        parts = one["abstract"].split(". ")[::2] + other["abstract"].split(". ")[1::2]
        yield {
            **one,
            "id": f"invented-{seed}-{number}",
            "title": " ".join(second[len(second) // 2 :] + first[: len(first) // 2 + 1]),
            "abstract": ". ".join(parts),
            "doi": "",
            "references": [chance.choice(papers)["id"] for _ in range(3)],
        }


def measure_building(file: Path, papers: list[dict[str, Any]], n: int, folder: Path) -> None:
    """Build a base, and add 1 000 papers to it."""
    more = invent(papers, max(0, n - len(papers)))
    source, added = folder / "all.jsonl", folder / "more.jsonl"
    with source.open("w") as out:
        out.writelines(json.dumps(one) + "\n" for one in (*papers, *more))
    added.write_text("".join(json.dumps(one) + "\n" for one in invent(papers, 1000, seed=2)))
    for name, given, overwrite in (("build", source, True), ("add 1000", added, False)):
        cpu, wall = time.process_time(), time.monotonic()
        with PaperBase.build(file, given, overwrite=overwrite) as base:
            report = base.report
        tell(
            name,
            papers=report.papers,
            cpu_s=round(time.process_time() - cpu, 1),
            wall_s=round(time.monotonic() - wall, 1),
            file_mb=round(file.stat().st_size / 1e6),
            peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        )


def add_vectors(file: Path) -> Path:
    """Give every paper a random vector: how long a search takes does not depend on them."""
    chance = np.random.default_rng(0)
    with Writer(file) as writer:
        writer.forget_vectors()
        vectors_path(file).unlink(missing_ok=True)
        info = prepare_vectors(writer, EvidenceEmbeddings())
        numbers = [n for (n,) in writer.db.execute("SELECT n FROM papers ORDER BY n")]
        rows = chance.standard_normal((len(numbers), info.dimensions))
        info = append_rows(vectors_path(file), info, unit_rows(rows, [""] * len(numbers)))
        writer.place_vectors(((n, at) for at, n in enumerate(numbers)), info.to_json())
    return file


def time_each(work: Callable[[Any], Any], given: list[Any]) -> dict[str, float]:
    """Return percentiles of CPU milliseconds."""
    times = []
    for one in given:
        begun = time.process_time()
        work(one)
        times.append(1000 * (time.process_time() - begun))
    p50, p95 = np.percentile(times, [50, 95])
    return {"n": len(times), "p50_ms": round(float(p50), 1), "p95_ms": round(float(p95), 1)}


def measure_searches(base: PaperBase, texts: list[str], n: int, mode: Any) -> None:
    """Search by sentences and by a few words, with and without limits."""
    chance = random.Random(0)
    long = [one for one in texts if 10 <= len(one.split()) <= 40]
    long = chance.sample(long, min(n, len(long)))
    short = [" ".join(one.split()[-chance.randint(2, 6) :]) for one in long]
    base.search("warm", mode=mode)
    for name, asked in (("sentences", long), ("2-6 words", short)):
        for limit, scope in (("", None), (", to 2019", Scope(year_to=2019))):
            figures = time_each(partial(base.search, mode=mode, k=100, scope=scope), asked)
            tell(f"{mode}, {name}{limit}", **figures)


def measure_lookups(base: PaperBase, papers: list[dict[str, Any]]) -> None:
    """Look papers up, and follow their citations."""
    ids = [one["id"] for one in random.Random(0).sample(papers, 500)]
    tell("get", **time_each(base.get, ids))
    tell("references", **time_each(base.references, ids))
    tell("citations", **time_each(base.citations, ids))


def measure_titles(base: PaperBase, papers: list[dict[str, Any]]) -> None:
    """Match titles that were changed, and titles that the base does not have."""
    chance = random.Random(0)
    chosen = chance.sample(papers, 500)
    asked = [(one, _change(one["title"], chance, at % 5)) for at, one in enumerate(chosen)]
    found = {one["id"]: base.title(text) for one, text in asked}
    titles = {one["id"]: one["title"].lower() for one in papers}
    right = sum(
        match.paper is not None and titles.get(match.paper.id) == titles[id]
        for id, match in found.items()
    )
    mixed = list(invent(papers, 500, seed=3))
    wrong = sum(base.title(one["title"]).paper is not None for one in mixed)
    tell(
        "titles",
        right=right / 500,
        matched_that_are_not_there=wrong / 500,
        **time_each(base.title, [text for _, text in asked]),
    )


def _change(title: str, chance: random.Random, how: int) -> str:
    if how == 0:
        return title.upper()
    if how == 1:
        return title.replace(":", " -").replace("-", " ") + "."
    if how == 2:
        words = title.split()
        words[0] = f"\\emph{{{words[0]}}}"
        return " ".join(words)
    if how == 3 and ": " in title and len(title.partition(": ")[0].split()) >= 2:
        return title.partition(": ")[0]
    for _ in range(chance.randint(1, 2)):
        at = chance.choice([at for at, letter in enumerate(title) if letter.isalpha()])
        title = title[:at] + chance.choice("abcdefghijklmnopqrstuvwxyz") + title[at + 1 :]
    return title


def measure_clients(base: PaperBase, texts: list[str]) -> None:
    """Ask over HTTP, one client and then eight at once."""
    import uvicorn  # noqa: PLC0415 - of an extra

    server = uvicorn.Server(uvicorn.Config(create_app(base), port=0, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    asked = [one for one in texts if len(one.split()) >= 10][:160]

    def ask(text: str) -> float:
        begun = time.monotonic()
        remote.search(text, k=20)
        return 1000 * (time.monotonic() - begun)

    with PaperBase.connect(f"http://127.0.0.1:{port}") as remote:
        for n in (1, 8):
            with ThreadPoolExecutor(n) as threads:
                p50, p95 = np.percentile(list(threads.map(ask, asked)), [50, 95])
            load = round(os.getloadavg()[0], 1)
            tell(f"{n} clients", p50_ms=round(p50, 1), p95_ms=round(p95, 1), load=load)
    server.should_exit = True


if __name__ == "__main__":
    main()
