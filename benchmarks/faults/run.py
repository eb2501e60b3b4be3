"""Runs every reranker through every fault, and prints one Markdown table.

python benchmarks/faults/run.py [--questions N] [--passages N] [--only RIVAL] [--faults A,B]
"""

import argparse
import logging
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Thread

from loopback import ChatServer
from model import ScriptedModel
from outcomes import OUTCOMES, Ranking, classify, counts, summary
from questions import Question, make_question, plain_id
from rivals import RIVALS, Rival

from faults import FAULTS

QUESTION_SECONDS = 60.0
_AT_ONCE = 16
_NO_FAULT = "no fault"
MIXED = "20 % mixed"
_MIXED_QUESTIONS = 20
_HIT_EVERY = 5


@dataclass(slots=True)
class Attempt:
    """One question put to one rival: its ranking, or why there is none."""

    question: Question
    ranking: Ranking | None = None
    error: Exception | None = None

    def run(self, rival: Rival, url: str) -> None:
        """Ask, and keep whatever comes back."""
        try:
            found = rival.rank(url, self.question.text, self.question.passages)
            self.ranking = [(plain_id(code), score) for code, score in found]
        except Exception as error:  # noqa: BLE001 -- whatever a rival raises is its outcome
            self.error = error

    def outcome(self, expected: Ranking) -> str:
        """Name what happened; without ranking and error it has not come back."""
        if self.error is not None:
            return "raised"
        if self.ranking is None:
            return "hung"
        return classify(expected, self.ranking, plain_id(self.question.victim))


def measure(
    rival: Rival, faults: Sequence[str], n_questions: int, n_passages: int
) -> dict[str, list[str]]:
    """Return the outcomes by fault, one a question; ``–`` where a fault does not apply.

    Raises:
        RuntimeError: The rival does not rank as the scripted model says, with no fault at all.
    """
    places = {name: place for place, name in enumerate([*FAULTS, MIXED], start=1)}
    plan = [_NO_FAULT, *(name for name in faults if _applies(rival, name))]
    n_asked = dict.fromkeys(plan, n_questions)
    if MIXED in faults:
        n_asked |= {MIXED: _MIXED_QUESTIONS, _NO_FAULT: max(n_questions, _MIXED_QUESTIONS)}
    attempts = {
        name: [
            Attempt(_question(places.get(name, 0), number, n_passages, _hit(rival, name, number)))
            for number in range(n_asked[name])
        ]
        for name in plan
    }
    everything = [attempt for column in attempts.values() for attempt in column]
    with ChatServer(ScriptedModel(rival.form, (one.question for one in everything))) as server:
        expected = attempts.pop(_NO_FAULT)
        _ask_all(rival, expected, server.base_url)
        _check(expected)
        _ask_all(rival, (one for column in attempts.values() for one in column), server.base_url)
        return {
            name: [
                one.outcome(first.ranking or [])
                for one, first in zip(attempts[name], expected, strict=False)
            ]
            if name in attempts
            else ["–"]
            for name in faults
        }


def table(rows: dict[str, dict[str, list[str]] | str], faults: Sequence[str]) -> str:
    """Write the outcomes, a line a rival, and below how often each outcome occurred."""
    lines = [_line(["", *faults]), _line(["---"] * (len(faults) + 1))]
    totals = [_line(["outcomes", *reversed(OUTCOMES)]), _line(["---"] * (len(OUTCOMES) + 1))]
    for name, row in rows.items():
        if isinstance(row, str):
            lines.append(_line([name, row, *[""] * (len(faults) - 1)]))
            continue
        lines.append(_line([name, *(summary(row[fault]) for fault in faults)]))
        found = counts(one for column in row.values() for one in column)
        totals.append(_line([name, *(str(found[one]) for one in reversed(OUTCOMES))]))
    return "\n".join([*lines, "", *totals])


def main() -> None:
    """Read the options, measure, print."""
    options = _options()
    chosen = [rival for rival in RIVALS if options.only.lower() in rival.name.lower()]
    faults = options.faults.split(",") if options.faults else [*FAULTS, MIXED]
    logging.disable()
    rows: dict[str, dict[str, list[str]] | str] = {}
    versions: list[str] = []
    for rival in chosen:
        if rival.missing():
            rows[rival.name] = f"not installed: {rival.missing()}"
            continue
        rows[rival.name] = _quietly(rival, faults, options)
        versions += rival.versions
    out = f"{table(rows, faults)}\n\nMeasured: {', '.join(dict.fromkeys(versions)) or 'nothing'}.\n"
    sys.stdout.write(out)
    sys.stdout.flush()
    os._exit(0)  # a call that hangs keeps its thread, and may keep the interpreter


def _quietly(
    rival: Rival, faults: Sequence[str], options: argparse.Namespace
) -> dict[str, list[str]] | str:
    with Path(os.devnull).open("w") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with redirect_stdout(nowhere), redirect_stderr(nowhere):  # some rivals print
            try:
                return measure(rival, faults, options.questions, options.passages)
            except RuntimeError as error:
                return f"not measured: {error}"


def _hit(rival: Rival, column: str, number: int) -> str:
    """Return the fault of a question; of those of the mixed column one in five has one, drawn."""
    if column != MIXED:
        return column
    usual = [name for name in FAULTS if _applies(rival, name)]
    return Random(number).choice(usual) if number % _HIT_EVERY == 0 else _NO_FAULT


def _question(place: int, number: int, n_passages: int, fault: str) -> Question:
    order = FAULTS[fault].text if fault in FAULTS else ""
    return make_question(place, number, n_passages, fault, order)


def _applies(rival: Rival, fault: str) -> bool:
    needs = {
        "score 7/10": rival.form.grades,
        "duplicate ids": rival.form.labels,
        "invented quote": rival.form.quotes,
    }
    return needs.get(fault, True)


def _ask_all(rival: Rival, attempts: Iterable[Attempt], url: str) -> None:
    def ask(attempt: Attempt) -> None:
        asking = Thread(target=attempt.run, args=(rival, url), daemon=True)
        asking.start()
        asking.join(QUESTION_SECONDS)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(ask, attempts))


def _check(attempts: Iterable[Attempt]) -> None:
    """Make sure that scores rise only with grades, and that what is missing is worth less."""
    for attempt in attempts:
        if attempt.ranking is None:
            raise RuntimeError(f"fails without a fault: {attempt.error!r:.200}")
        given = dict(attempt.ranking)
        grades = {plain_id(code): grade for code, grade in attempt.question.grades.items()}
        scores = {code: given.get(code) or 0.0 for code in grades}
        above = [(a, b) for a in scores for b in scores if scores[a] > scores[b]]
        if not above or any(grades[a] < grades[b] for a, b in above):
            raise RuntimeError("does not rank as the model says, without any fault")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=4, help="questions a fault; default 4")
    parser.add_argument("--passages", type=int, default=10, help="passages a question; default 10")
    parser.add_argument("--only", default="", metavar="RIVAL", help="part of a rival's name")
    parser.add_argument("--faults", default="", metavar="A,B", help="only these; default all")
    options = parser.parse_args()
    if not (1 <= options.questions <= 99 and 4 <= options.passages <= 99):
        parser.error("questions must be 1 to 99, passages 4 to 99")
    for fault in filter(None, options.faults.split(",")):
        if fault not in (*FAULTS, MIXED):
            parser.error(f"no fault {fault!r}; faults are {', '.join((*FAULTS, MIXED))}")
    return options


if __name__ == "__main__":
    main()
