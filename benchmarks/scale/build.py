"""`deepera-lab bench build` with a scripted model: CPU time and memory as questions are made.

``python benchmarks/scale/build.py --documents 5000 --questions 5000``. The documents are those of
`corpus.py`, and the model answers at once, in this process; ``--settings base`` leaves out
look-alikes, which are three quarters of the work.
"""

import argparse
import os
import re
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from corpus import make_documents
from langchain_core.messages import BaseMessage
from processes import busy, resident

from deepera_graph.lab.build.builder import build
from deepera_graph.lab.construction import Progress
from deepera_graph.lab.settings import BuildPlan
from deepera_graph.testing import ScriptedChat

_MIB = 2**20
_N_ROWS = 10
_BLOCK = re.compile(r"=====\w+-([0-9a-f]{8})=====\n(.*?)\n=====\w+-\1=====", re.DOTALL)
_FORMS = (
    "In trial {n} the {0} was kept apart from the {1}, while {2} and {3} were counted every week.",
    "At the second site {0} and {1} were weighed in {n} nets, and {2} was left out with {3}.",
    "Of the {n} samples with {0}, most came from {1}, but the {2} of {3} was not known.",
    "We added {0} to {1} at a depth of {n} metres and counted {2} in the enclosures with {3}.",
)


class ScriptedWriter(ScriptedChat):
    """Plays all parts of the builder from the words of its prompts."""

    def reply(self, messages: list[BaseMessage]) -> dict[str, Any]:
        """Answer the first question of a conversation."""
        asked = next(one.text for one in messages if one.type == "human")
        return _reply(asked, n_tries=len(messages) // 2)


def _reply(asked: str, *, n_tries: int) -> dict[str, Any]:
    if asked.startswith("Make up to"):
        sentence = max(_block(asked).split(". "), key=len).rstrip(".").split()
        question = f"Which words end the statement that begins with {' '.join(sentence[:-3])}?"
        return {"pairs": [{"question": question, "answer": " ".join(sentence[-3:])}]}
    if asked.startswith("Plan "):
        types = re.findall(r"order of types: (.*)\.", asked)[0].split(", ")
        lengths = _line(asked, "Lengths in words, in the same order").split(", ")
        pairs = zip(types, lengths, strict=True)
        return {
            "guides": [
                {"type": kind, "focus": f"{kind} of {n}", "avoid": [], "length": int(n)}
                for kind, n in pairs
            ]
        }
    if asked.startswith("Write the passage"):
        return {"text": _write(asked, n_tries)}
    return {"quote": "", "relation": "silent"}


def _block(asked: str) -> str:
    found = _BLOCK.search(asked)
    assert found is not None
    return found[2]


def _line(asked: str, name: str) -> str:
    return re.findall(rf"^{name}: (.*)$", asked, re.MULTILINE)[0]


def _write(asked: str, n_tries: int) -> str:
    """Return sentences of the question's words, as long as is asked for."""
    chance = Random(f"{asked} {n_tries}")
    question = _line(asked, "Question").removeprefix("Which words end the statement that")
    words: list[str] = re.findall(r"\w{4,}", question)
    lines: list[str] = []
    while len(" ".join(lines).split()) < 0.9 * int(_line(asked, "Words").split()[-1]):
        chosen = chance.choices(words, k=4)
        lines.append(chance.choice(_FORMS).format(*chosen, n=chance.randrange(1000, 9999)))
    return " ".join(lines)


def main() -> None:
    """Build, and say now and then what it took so far."""
    options = _options()
    plan = BuildPlan(
        n_questions=options.questions,
        n_contexts=options.contexts,
        settings=tuple(options.settings.split(",")),
    )
    with TemporaryDirectory() as name:
        for overwrite in (False, *(options.again * [True])):
            watch = _Watch(options.questions)
            made = build(
                make_documents(options.documents),
                Path(name),
                model=ScriptedWriter(),
                plan=plan,
                generators=("lmqg",),
                overwrite=overwrite,
                on_progress=watch,
            )
            watch.tell("made again from what was kept" if overwrite else "written")
        for file in sorted((*Path(name).glob("*.json*"), *Path(name, "work").iterdir())):
            _say(f"{file.name}: {file.stat().st_size / _MIB:.0f} MiB")
        _say(f"{made.manifest['datasets']['lmqg']}")
        _say(f"dropped {made.manifest['dropped']}; {Counter(made.manifest['answers'])}")


class _Watch:
    """Says how CPU time and memory grow with the questions that are made."""

    def __init__(self, n: int) -> None:
        self._step, self._next = max(1, n // _N_ROWS), 0
        self._since, self._spent, self._n = time.perf_counter(), _busy(), 0

    def __call__(self, progress: Progress) -> None:
        if progress.n_counted and progress.n_done >= self._next:
            self.tell(f"{progress.n_done} questions", progress.n_done)
            self._next = progress.n_done + self._step

    def tell(self, what: str, n_done: int = 0) -> None:
        seconds, spent = time.perf_counter() - self._since, _busy() - self._spent
        n_new = n_done - self._n
        each = f", {1000 * spent / n_new:.1f} ms of CPU time each" if n_new > 0 else ""
        memory = resident(os.getpid()) / _MIB
        _say(f"{what}: {seconds:.1f} s, CPU {spent:.1f} s{each}, {memory:.0f} MiB")
        self._since, self._spent, self._n = time.perf_counter(), _busy(), n_done


def _busy() -> float:
    return sum(busy([os.getpid()]))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=5_000)
    parser.add_argument("--questions", type=int, default=5_000)
    parser.add_argument("--contexts", type=int, default=30)
    parser.add_argument("--settings", default="base,ssli")
    parser.add_argument("--again", action="store_true", help="also build from what was kept")
    return parser.parse_args()


if __name__ == "__main__":
    main()
