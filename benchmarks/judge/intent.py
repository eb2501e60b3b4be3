"""How well the rules read a question: intent class, form of the answer, domain, entities.

    python benchmarks/judge/intent.py sciences/

The folder has a ``topics.jsonl``: a line is a topic with its ``field`` and its ``questions``, each
with ``question``, ``intent``, ``expected_answer_type`` and ``entities`` (``kind: name``) by hand.
The word lists may be looked at on the 1st, 3rd, ... topic; the others are held out.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deepera_graph.judges.heuristic.roles import recognize_intent
from deepera_graph.lab.tables import format_rows
from deepera_graph.schema import Intent

FILE = "topics.jsonl"
HALVES = {"looked at": slice(0, None, 2), "held out": slice(1, None, 2), "all": slice(None)}
HEAD = ("topics", "questions", "intent", "answer", "domain", "entities: P", "R", "F1")
IRREGULAR = {"mice": "mouse", "children": "child", "women": "woman", "men": "man", "teeth": "tooth"}


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its labels."""

    text: str
    field: str
    intent: str
    answer: str
    entities: tuple[str, ...]


def read_topics(folder: Path) -> list[list[Question]]:
    """Return the questions of each topic, in the file's order."""
    with (folder / FILE).open(encoding="utf-8") as lines:
        topics = [json.loads(line) for line in lines]
    return [
        [
            Question(
                text=one["question"],
                field=topic["field"],
                intent=one["intent"],
                answer=one["expected_answer_type"],
                entities=tuple(one["entities"]),
            )
            for one in topic["questions"]
        ]
        for topic in topics
    ]


def find_heads(entities: Iterable[str]) -> set[str]:
    """Return the last word of each ``kind: name``, in lower case, singular."""
    names = (entity.partition(":")[2].strip(" ).?") for entity in entities)
    return {_to_singular(name.split()[-1].lower().strip("().,'’\"")) for name in names if name}


def fits(domain: str, field: str) -> bool:
    """Whether the first word of a domain is in the name of a field."""
    return domain.split(maxsplit=1)[0] in field


def measure(questions: Sequence[Question]) -> list[str]:
    """Return shares in per cent: intent, answer and domain right; P, R and F1 of the heads.

    The heads are counted over all questions, so that one with many entities weighs more.
    """
    found = [read(question.text) for question in questions]
    pairs = list(zip(questions, found, strict=True))
    heads = [(find_heads(q.entities), find_heads(i.entity_type.split("; "))) for q, i in pairs]
    n_right = sum(len(true & said) for true, said in heads)
    n_true, n_said = (sum(map(len, column)) for column in zip(*heads, strict=True))
    shares = (
        sum(q.intent == i.intent for q, i in pairs) / len(pairs),
        sum(q.answer == i.expected_answer_type for q, i in pairs) / len(pairs),
        sum(fits(i.topic, q.field) for q, i in pairs) / len(pairs),
        n_right / n_said,
        n_right / n_true,
        2 * n_right / (n_said + n_true),
    )
    return [f"{100 * share:.1f}" for share in shares]


def read(question: str) -> Intent:
    """Read one question."""
    return recognize_intent({"question": question, "problem": ""})


def tabulate(topics: Sequence[Sequence[Question]]) -> str:
    """Return a Markdown table: both halves and all, then each field."""
    rows = []
    for name, half in HALVES.items():
        rows.append([name, str(len(topics[half])), *_row([q for t in topics[half] for q in t])])
    for field in sorted({topic[0].field for topic in topics}):
        its = [topic for topic in topics if topic[0].field == field]
        rows.append([field, str(len(its)), *_row([q for topic in its for q in topic])])
    return format_rows(("", *HEAD), rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table and the time a question takes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, help=f"with {FILE}")
    topics = read_topics(parser.parse_args(arguments).folder)
    sys.stdout.write(tabulate(topics))
    questions = [question.text for topic in topics for question in topic]
    start = time.process_time()
    for question in questions:
        read(question)
    spent = time.process_time() - start
    sys.stdout.write(f"\n{1000 * spent / len(questions):.2f} ms of processor time a question\n")


def _row(questions: Sequence[Question]) -> list[str]:
    return [str(len(questions)), *measure(questions)]


def _to_singular(word: str) -> str:
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "ches", "shes", "xes", "oes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


if __name__ == "__main__":
    main()
