"""What the server adds to the reranker: requests a second, waiting times, memory.

    python benchmarks/serve/load.py                        # 30 passages, 1 and 16 clients
    python benchmarks/serve/load.py --memory 10000         # many small requests, and RSS

It starts `deepera serve` on loopback and asks it in rounds; each round first asks an
`EvidenceReranker` of this process for the same, so that what else the machine does hits both. All
passages are new to their judge: none is taken from memory. Prints one JSON object.
"""

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from threading import local
from time import perf_counter, process_time, sleep
from typing import Any

from deepera_graph import EvidenceReranker

SUBJECTS = ("apples", "pears", "plums", "quinces", "medlars", "cherries", "apricots", "peaches")
COATINGS = ("wax", "chitosan", "alginate", "shellac", "beeswax", "pectin", "zein", "gum arabic")
SENTENCES = (
    "{coating} kept {subject} firm: after {days} days in storage, firmness had fallen by {low}% in "
    "coated fruit and by {high}% in uncoated fruit (p < 0.00{p}).",
    "Whether {coating} keeps {subject} firm has been debated since 19{high}.",
    "{subject} were coated with {coating} and stored for {days} days at {low} degrees.",
    "Firmness was measured with a penetrometer on {high} {subject} of batch {batch}.",
    "The colour of {subject} changed little within {days} days, with {coating} or without it.",
    "Weight loss of {subject} was {low}% with {coating} and {high}% without it in trial {batch}.",
)
Clock = Callable[[], float]
_READY_SECONDS = 120.0
_PAUSE = 0.1


def make_jobs(n: int, n_passages: int, *, n_sentences: int, seed: int) -> list[dict[str, Any]]:
    """Return requests, no two of which have a passage in common."""
    chance = random.Random(seed)
    return [
        {
            "query": f"Does {chance.choice(COATINGS)} keep {chance.choice(SUBJECTS)} firm?",
            "documents": [_make_passage(chance, n_sentences) for _ in range(n_passages)],
            "return_documents": False,
        }
        for _ in range(n)
    ]


def _make_passage(chance: random.Random, n_sentences: int) -> str:
    subject, coating = chance.choice(SUBJECTS), chance.choice(COATINGS)
    return " ".join(
        one.format(
            subject=subject,
            coating=coating,
            days=chance.randint(10, 400),
            low=chance.randint(1, 40),
            high=chance.randint(41, 99),
            p=chance.randint(1, 9),
            batch=chance.randint(10_000, 99_999),
        )
        for one in chance.sample(SENTENCES, n_sentences)
    )


class Asker:
    """Asks a server, each thread over a connection of its own."""

    def __init__(self, port: int) -> None:
        self._port, self._own = port, local()

    def ask(self, body: bytes) -> float:
        """Return how many seconds an answer took; anything but 200 is an error."""
        if not hasattr(self._own, "connection"):
            self._own.connection = HTTPConnection("127.0.0.1", self._port, timeout=300)
        started = perf_counter()
        self._own.connection.request(
            "POST", "/v1/rerank", body, {"Content-Type": "application/json"}
        )
        response = self._own.connection.getresponse()
        said = response.read()
        if response.status != 200:
            raise RuntimeError(f"HTTP {response.status}: {said[:200]!r}")
        return perf_counter() - started

    def ask_all(self, bodies: Sequence[bytes], clients: int) -> tuple[float, list[float]]:
        """Return the seconds of all of it, and of each request, by so many clients at once."""
        started = perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            seconds = list(pool.map(self.ask, bodies))
        return perf_counter() - started, seconds


@contextmanager
def serving(*options: str) -> Iterator[tuple[int, int]]:
    """Run a server; yield its port and its process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "deepera_graph", "serve", "--quiet", "--port", str(port)]
    process = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)
    try:
        _wait_until_ready(port)
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _wait_until_ready(port: int) -> None:
    end = perf_counter() + _READY_SECONDS
    while perf_counter() < end:
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        sleep(_PAUSE)
    raise TimeoutError("the server did not get ready")


def in_process(jobs: Sequence[dict[str, Any]], reranker: Any) -> tuple[float, list[float]]:
    """Return the seconds that the reranker takes for all jobs, as many at once as it likes."""
    pairs = [(one["query"], one["documents"]) for one in jobs]
    started = perf_counter()
    reranker.batch(pairs)
    return perf_counter() - started, []


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Return requests a second in process and of the server, round by round.

    The processor's time of a request is that of this process, or of the server's, and hardly
    depends on what else the machine does.
    """
    reranker = EvidenceReranker("local", content="passage")
    many = f"{given.clients} clients"
    rates: dict[str, list[float]] = {}
    waits: dict[str, list[float]] = {}
    work: dict[str, list[float]] = {}
    with serving(*given.server) as (port, process):
        asker = Asker(port)
        for number in range(given.rounds + 1):  # the first one is to get warm
            n = given.requests if number else given.clients
            jobs = make_jobs(n, given.passages, n_sentences=3, seed=number)
            other = make_jobs(max(4, n // 4), given.passages, n_sentences=3, seed=1000 + number)
            ways: dict[str, tuple[int, Callable[[], tuple[float, list[float]]], Clock]] = {
                "in process": (n, partial(in_process, jobs, reranker), process_time),
                many: (n, partial(asker.ask_all, _bodies(jobs), given.clients), _clock_of(process)),
                "1 client": (
                    len(other),
                    partial(asker.ask_all, _bodies(other), 1),
                    _clock_of(process),
                ),
            }
            for name, (count, ask, clock) in ways.items():
                before = clock()
                seconds, each = ask()
                if number:
                    rates.setdefault(name, []).append(count / seconds)
                    waits.setdefault(name, []).extend(each)
                    work.setdefault(name, []).append((clock() - before) / count)
    ratios = [a / b for a, b in zip(rates[many], rates["in process"], strict=True)]
    return {
        "passages": given.passages,
        "rounds": given.rounds,
        "requests_a_round": given.requests,
        "requests_a_second": {name: round(median(one), 2) for name, one in rates.items()},
        "processor_seconds_a_request": {name: round(median(one), 3) for name, one in work.items()},
        "seconds": {name: _describe(one) for name, one in waits.items() if one},
        "of_in_process": {
            "median": round(median(ratios), 3),
            "rounds": [round(one, 3) for one in ratios],
        },
    }


def _clock_of(process: int) -> Clock:
    """Return what tells how many seconds of the processor a process has used; of Linux alone."""

    def clock() -> float:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    return clock


def _bodies(jobs: Sequence[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(one).encode() for one in jobs]


def _describe(seconds: Sequence[float]) -> dict[str, float]:
    cuts = quantiles(seconds, n=20, method="inclusive")
    return {"p50": round(cuts[9], 3), "p95": round(cuts[18], 3)}


def watch_memory(given: argparse.Namespace) -> dict[str, Any]:
    """Return the memory of a server after tenths of many small requests."""
    with serving("--backend", given.judge, *given.server) as (port, process):
        asker, seen, done = Asker(port), {}, 0
        step = max(1, given.memory // 10)
        started = perf_counter()
        while done < given.memory:
            jobs = make_jobs(min(step, given.memory - done), 3, n_sentences=1, seed=done)
            asker.ask_all(_bodies(jobs), given.clients)
            done += len(jobs)
            seen[done] = _memory_of(process)
        seconds = perf_counter() - started
    return {"requests": done, "seconds": round(seconds, 1), "rss_mb": seen}


def _memory_of(process: int) -> float:
    """Return the resident set of a process in MB; of Linux alone."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--passages", type=int, default=30)
    parser.add_argument("--requests", type=int, default=48, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--memory", type=int, default=0, metavar="N", help="small requests")
    parser.add_argument("--judge", default="local", help="with --memory")
    parser.add_argument("server", nargs="*", help="options of deepera serve, after --")
    given = parser.parse_args()
    told = watch_memory(given) if given.memory else measure(given)
    sys.stdout.write(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
