"""How much the vocabulary of a field helps to read its questions, by rules alone.

    python benchmarks/judge/domains.py

Eight questions of each field of the package, with their intent class by hand, in
``domain_questions.jsonl``. They and the vocabularies were written by the same people, so figures
show that a vocabulary does what it says, and not how it does on questions of others.
"""

import json
import sys
from pathlib import Path

from deepera_graph.judges.heuristic.roles import recognize_intent
from deepera_graph.lab.tables import format_rows
from deepera_graph.prompts import NAMES, load_domain

FILE = Path(__file__).parent / "domain_questions.jsonl"


def count_right(name: str) -> tuple[int, int, int]:
    """Return how many questions of a field there are, and are right without and with its words."""
    with FILE.open(encoding="utf-8") as lines:
        asked = [one for one in map(json.loads, lines) if one["domain"] == name]
    domain, plain, own = load_domain(name), 0, 0
    for one in asked:
        by_rules = recognize_intent({"question": one["question"], "problem": ""}).intent
        plain += by_rules == one["intent"]
        own += (domain.find_intent(one["question"]) or by_rules) == one["intent"]
    return len(asked), plain, own


def main() -> None:
    """Print a table."""
    rows = [[name, *map(str, count_right(name))] for name in NAMES]
    sys.stdout.write(
        format_rows(["field", "questions", "right by rules", "right with vocabulary"], rows)
    )


if __name__ == "__main__":
    main()
