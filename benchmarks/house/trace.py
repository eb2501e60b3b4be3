"""Counts the files and functions of this package that one rerank of one passage passes through.

Every kind runs in a process of its own: a few runs to warm up, then one that is recorded, in all
threads. Only named functions of `deepera_graph` count, so no lambda and no comprehension. Works
with any version that is installed.

`rules`, `local`: those backends. `llm`: a chat model without tools. `tools`: one that takes them.
`cli`: `deepera rerank` with the rules.

  python benchmarks/house/trace.py
  python benchmarks/house/trace.py --kind llm --list              # the files, with their calls
  python benchmarks/house/trace.py --python ../old/.venv/bin/python   # beside another checkout
"""

import argparse
import contextlib
import io
import json
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from chat import SchemaChat, ToolChat

_KINDS = ("rules", "llm", "tools", "local", "cli")
_CHATS = {"llm": SchemaChat, "tools": ToolChat}
_QUESTION = "Does green tea lower fasting glucose?"
_PASSAGE = "Green tea lowered fasting glucose by 12% in 40 adults. No one left the trial."
_WARM_UPS = 3
Once = Callable[[], object]


@dataclass(slots=True)
class Recorder:
    """A profile hook for all threads, which writes down calls while it is *on*.

    Attributes:
        folder: Only functions in files below it count.
        on: Whether calls are written down.
        calls: File and function of every call, in order, over all threads.
    """

    folder: str
    on: bool = False
    calls: list[tuple[str, str]] = field(default_factory=list)

    def hook(self, frame: FrameType, event: str, arg: object) -> None:
        """Note a call of a named function; a generator or a coroutine that goes on is one, too."""
        if self.on and event == "call":
            code = frame.f_code
            path, name = code.co_filename, code.co_qualname
            if path.startswith(self.folder) and not name.endswith(">"):  # lambda, comprehension
                self.calls.append((path.removeprefix(self.folder), name))

    def install(self) -> None:
        """Watch this thread, and every one that is started from now on."""
        threading.setprofile(self.hook)
        sys.setprofile(self.hook)

    def figures(self) -> dict[str, int]:
        """Return how many files, functions, calls, and changes of file from call to call."""
        files = [file for file, _ in self.calls]
        return {
            "files": len(set(files)),
            "functions": len(set(self.calls)),
            "calls": len(self.calls),
            "changes of file": sum(a != b for a, b in pairwise(files)),
        }


def record(kind: str) -> Recorder:
    """Warm up, then record one rerank."""
    spec = find_spec("deepera_graph")
    if spec is None or spec.origin is None:
        raise SystemExit("deepera_graph is not installed")
    recorder = Recorder(f"{Path(spec.origin).parent}/")
    recorder.install()
    with (_prepare_command if kind == "cli" else _prepare_reranker)(kind) as once:
        for _ in range(_WARM_UPS):
            once()
        recorder.on = True
        once()
        recorder.on = False
    sys.setprofile(None)
    return recorder


@contextlib.contextmanager
def _prepare_reranker(kind: str) -> Iterator[Once]:
    """Give a call of `EvidenceReranker.rerank`."""
    from deepera_graph import EvidenceReranker, llm_backend  # noqa: PLC0415 - after the hook

    reranker = EvidenceReranker(llm_backend(_CHATS[kind]()) if kind in _CHATS else kind)
    yield lambda: reranker.rerank(_QUESTION, [_PASSAGE])


@contextlib.contextmanager
def _prepare_command(kind: str) -> Iterator[Once]:
    """Give a run of `deepera rerank` with the rules, in this process."""
    (script,) = entry_points(group="console_scripts", name="deepera")
    run = script.load()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.jsonl")
        line = {"question": _QUESTION, "passages": [{"text": _PASSAGE}]}
        source.write_text(json.dumps(line) + "\n", encoding="utf-8")
        out = Path(folder, "out.jsonl")
        words = ["deepera", "rerank", str(source), "-o", str(out), "--backend", "rules"]

        def once() -> None:
            out.unlink(missing_ok=True)
            _call(run, [*words, "--quiet", "--overwrite"])
            if len(out.read_text(encoding="utf-8").splitlines()) != 1:
                raise SystemExit("deepera rerank wrote no line")

        yield once


def _call(run: Callable[[], object], words: list[str]) -> None:
    before, sys.argv = sys.argv, words
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            run()
    except SystemExit as end:
        if end.code:
            raise SystemExit(f"{' '.join(words)} ended with {end.code}: {said.getvalue()}") from end
    finally:
        sys.argv = before


def _record_apart(python: str, kind: str) -> dict[str, Any]:
    """Record one kind in a process of its own."""
    words = [python, str(Path(__file__).resolve()), "--one", kind]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _write_table(rows: Sequence[tuple[str, dict[str, int]]]) -> str:
    names = list(rows[0][1])
    lines = [f"| kind | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for kind, figures in rows:
        lines.append(f"| {kind} | {' | '.join(str(figures[name]) for name in names)} |")
    return "\n".join(lines)


def main() -> None:
    """Read the options, record, write."""
    options = _read_options()
    if options.one:
        recorder = record(options.one)
        per_file = Counter(file for file, _ in recorder.calls)
        found = {"figures": recorder.figures(), "per_file": dict(sorted(per_file.items()))}
        sys.stdout.write(json.dumps(found) + "\n")
        return
    kinds = [options.kind] if options.kind else _KINDS
    rows = []
    for python in options.python or [sys.executable]:
        for kind in kinds:
            found = _record_apart(python, kind)
            label = f"{kind} by {python}" if options.python else kind
            rows.append((label, found["figures"]))
            if options.list:
                lines = [f"{n:6} {file}" for file, n in found["per_file"].items()]
                sys.stdout.write("\n".join([label, *lines]) + "\n\n")
    sys.stdout.write(_write_table(rows) + "\n")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--kind", choices=_KINDS, help="only this one; default: all")
    add("--list", action="store_true", help="also name the files, with the calls in each")
    add(
        "--python",
        action="append",
        metavar="PATH",
        help="interpreter that runs it; as many as wanted",
    )
    add("--one", choices=_KINDS, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
