"""Ten thousand questions through `deepera rerank`: memory all the way, with a kill in the middle.

``python benchmarks/scale/long_file.py``; ``--questions 10000 --passages 30`` are the defaults.
"""

import argparse
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from processes import resident
from questions import lines

_HERE = Path(__file__).parent
_PAUSE = 0.2  # seconds between two looks at the process
_MIB = 2**20


@dataclass
class Watched:
    """What was seen of a run: seconds, and MiB of memory at each look."""

    seconds: float = 0.0
    memory: list[float] = field(default_factory=list)

    @property
    def quarters(self) -> list[float]:
        """Most memory in each quarter of the time, in MiB."""
        step = max(1, len(self.memory) // 4)
        return [max(self.memory[start : start + step]) for start in range(0, 4 * step, step)]


def main() -> None:
    """Run once through, then with a kill and a resume, and compare."""
    options = _options()
    with TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "questions.jsonl"
        with source.open("wb") as file:
            file.writelines(lines(options.questions, options.passages))
        whole = _watch(_start(source, folder / "whole.jsonl"))
        torn = folder / "torn.jsonl"
        killed = _start(source, torn)
        _wait_for(torn, options.questions // 2)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        n_before = _n_lines(torn)
        rest = _watch(_start(source, torn, "--resume"))
        equal = _digest(torn) == _digest(folder / "whole.jsonl")
        size = source.stat().st_size / _MIB
    sys.stdout.write(
        f"{options.questions} questions x {options.passages} passages, {size:.0f} MiB\n"
        f"whole: {whole.seconds:.0f} s, {1000 * whole.seconds / options.questions:.2f} ms a "
        f"question, most memory a quarter of the time {_shown(whole)} MiB\n"
        f"killed after {n_before} lines, resumed: {rest.seconds:.0f} s, {_shown(rest)} MiB\n"
        f"output equal, byte for byte: {equal}\n"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--passages", type=int, default=30)
    return parser.parse_args()


def _start(source: Path, out: Path, *more: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "deepera_graph", "rerank", str(source), "-o", str(out)]
    return subprocess.Popen([*command, "--backend", "instant:build", "--quiet", *more], cwd=_HERE)


def _watch(process: "subprocess.Popen[bytes]") -> Watched:
    seen, start = Watched(), time.perf_counter()
    while process.poll() is None:
        seen.memory.append(resident(process.pid) / _MIB)
        time.sleep(_PAUSE)
    seen.seconds = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"the run ended with {process.returncode}")
    return seen


def _wait_for(out: Path, n_lines: int) -> None:
    while _n_lines(out) < n_lines:
        time.sleep(_PAUSE)


def _n_lines(out: Path) -> int:
    if not out.exists():
        return 0
    with out.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(_MIB), b""))


def _digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(_MIB), b""):
            digest.update(block)
    return digest.hexdigest()


def _shown(watched: Watched) -> str:
    return " / ".join(f"{one:.0f}" for one in watched.quarters)


if __name__ == "__main__":
    main()
