"""Invented questions, their passages, and which passage of each is hit."""

from dataclasses import dataclass
from random import Random

TOP_GRADE = 10
RELEVANT = 6  # grades from here up are called relevant by a model that says only yes or no


@dataclass(frozen=True, slots=True)
class Question:
    """A question with passages of known worth.

    Attributes:
        text: What is asked.
        passages: Text by code, in first-stage order; every text holds its own code.
        grades: Worth by code, in [1, 10].
        fault: What is done to the victim; empty for nothing.
        victim: Code of the passage that is hit.
    """

    text: str
    passages: dict[str, str]
    grades: dict[str, int]
    fault: str
    victim: str


def make_question(place: int, number: int, n_passages: int, fault: str, order: str) -> Question:
    """Write question *number*, to be asked under the fault at *place* of the table.

    Grades depend on *number* alone. The victim of an even question is relevant, of an odd one not,
    and neither is the best or the worst; *order* is appended to its text.
    """
    codes = [f"F{place:02}Q{number:02}P{item:02}" for item in range(1, n_passages + 1)]
    spread = [TOP_GRADE - item * TOP_GRADE // n_passages for item in range(n_passages)]
    Random(number).shuffle(spread)
    grades = dict(zip(codes, spread, strict=True))
    best_first = sorted(codes, key=lambda code: -grades[code])
    victim = best_first[(3 if number % 2 == 0 else 7) * n_passages // 10]
    passages = {code: f"In trial {code} reed moss gained weight in brine." for code in codes}
    passages[victim] += order
    return Question("Does brine make reed moss grow?", passages, grades, fault, victim)


def plain_id(code: str) -> str:
    """Return the part of a code that is the same under every fault."""
    return code[3:]
