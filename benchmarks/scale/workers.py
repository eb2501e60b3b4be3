"""The engine on Ray against the local one: equal bytes, throughput by workers, a worker killed.

Where other programs use the cores too, look at the CPU time a question beside the wall time: the
throughput that idle cores would give is one over that of the busiest process, or the number of
cores over that of all of them, whichever is less.

``python benchmarks/scale/workers.py``; ``--repeats 3 --questions 400`` are the defaults.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import processes
from questions import lines

_HERE = Path(__file__).parent
_WARM = 0.1  # share of the lines that are done before the clock starts
_LOCAL = "local"


def main() -> None:
    """Take turns, so that other work on the machine strikes all alike, and print medians."""
    options = _options()
    engines = {_LOCAL: ["--engine", "local"]}
    for n in options.workers:
        engines[f"ray, {n}"] = ["--engine", "ray", "--workers", str(n)]
    runs: dict[str, list[Timed]] = {name: [] for name in engines}
    with TemporaryDirectory() as name:
        source = Path(name, "questions.jsonl")
        with source.open("wb") as file:
            file.writelines(lines(options.questions, options.passages))
        for _ in range(options.repeats):
            for engine, given in engines.items():
                timed = _run(source, options.questions, [*given, *options.more])
                runs[engine].append(timed)
                sys.stderr.write(f"{engine}: {timed.rate:.1f} questions/s\n")
        most = ["--engine", "ray", "--workers", str(max(options.workers)), *options.more]
        killed = _run(source, options.questions, most, kill=True)
    for engine, found in runs.items():
        each = ", ".join(f"{one.rate:.1f}" for one in found)
        sys.stdout.write(
            f"{engine}: {median(one.rate for one in found):.1f} questions/s ({each}); CPU ms a "
            f"question: {median(one.at_home for one in found):.1f} in the command, "
            f"{median(one.in_worker for one in found):.1f} in the busiest worker, "
            f"{median(one.in_all for one in found):.1f} in all\n"
        )
    digests = {one.digest for found in [*runs.values(), [killed]] for one in found}
    sys.stdout.write(f"all outputs equal, one with a killed worker: {len(digests) == 1}\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--passages", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("more", nargs="*", help="more options of `deepera rerank`, after --")
    return parser.parse_args()


@dataclass(frozen=True)
class Timed:
    """A run after its first tenth: questions a second, CPU ms a question, and the output's hash."""

    rate: float
    at_home: float
    in_worker: float
    in_all: float
    digest: str


def _run(source: Path, n_questions: int, given: list[str], *, kill: bool = False) -> Timed:
    command = [sys.executable, "-m", "deepera_graph", "rerank", str(source), "--quiet", *given]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, cwd=_HERE, stdout=subprocess.PIPE, env=environment) as process:
        n_warm, digest, started = int(_WARM * n_questions), sha256(), 0.0
        numbers, before, after = [process.pid], [0.0], [0.0]
        for number, line in enumerate(process.stdout or (), start=1):
            digest.update(line)
            if number == n_warm:
                started = time.perf_counter()
                numbers = [process.pid, *processes.workers(process.pid)]
                before = processes.busy(numbers)
            if number == n_questions and not kill:
                after = processes.busy(numbers)
            if kill and number == n_questions // 2:
                os.kill(processes.workers(process.pid)[0], signal.SIGKILL)
        seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"the run ended with {process.returncode}")
    n_timed = n_questions - n_warm
    used = [1000 * (last - first) / n_timed for first, last in zip(before, after, strict=False)]
    return Timed(
        rate=n_timed / seconds,
        at_home=used[0],
        in_worker=max(used[1:], default=0.0),
        in_all=sum(used),
        digest=digest.hexdigest(),
    )


if __name__ == "__main__":
    main()
