"""The folder of a construction: questions, judgements, papers, records, and a manifest of it all.

========================  ==========================================================================
``questions.jsonl``       the questions that were judged: id, query, topic, intent, constraints
``judgements.jsonl``      a line a pair: query_id, paper_id, grade, grades (by judge), evidence,
                          adjudicated; and reasons, failures, ruling, filtered where there are any
``papers.jsonl``          the papers of the pairs, as `deepera papers build` reads them
``queries.jsonl``         those with enough answers, as `deepera-lab study papers` reads them
``records.jsonl``         a line a question: calls of sources, counts, usage, and why it ended
``rejected.jsonl``        topics and questions that went no further, each with its reason
``manifest.json``         what made it, what came out, and the SHA-256 of each file
========================  ==========================================================================
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deepera_graph.lab.construction import ReasonLog, RowSink
from deepera_graph.lab.quest.plan import INTENTS, QuestQuestion, Rejection
from deepera_graph.lab.quest.questions import Written
from deepera_graph.lab.settings import QuestPlan

REJECTED = "rejected.jsonl"
FILES = (
    "questions.jsonl",
    "judgements.jsonl",
    "papers.jsonl",
    "queries.jsonl",
    "records.jsonl",
    REJECTED,
)
Entry = Mapping[str, Any]


def reject_thin(
    questions: Sequence[QuestQuestion], entries: Mapping[str, Entry], plan: QuestPlan
) -> tuple[list[QuestQuestion], list[Rejection]]:
    """Return the questions with enough answers, and the others as rejected."""
    kept, rejected = [], []
    for one in questions:
        n = entries[one.id]["record"]["answers"]
        if n >= plan.min_answers:
            kept.append(one)
            continue
        detail = f"{n} answers were found, at least {plan.min_answers} are needed"
        rejected.append(Rejection.of("answers", one, "too_few_answers", detail))
    return kept, rejected


def make_query(question: QuestQuestion, entry: Entry, tau: int) -> dict[str, Any]:
    """Return a question with its answers; within a scope, partial matches break a limit of it."""
    grades = {one["paper_id"]: one["grade"] for one in entry["judgements"]}
    plain: dict[str, Any] = {
        **question.to_dict(),
        "gold": [id for id, grade in grades.items() if grade >= tau],
    }
    if question.intent == "scope":
        plain["violating"] = [id for id, grade in grades.items() if 0 < grade < tau]
    return plain


def write_rows(
    rows: Mapping[str, RowSink],
    *,
    worked: Sequence[QuestQuestion],
    kept: Sequence[QuestQuestion],
    entries: Mapping[str, Entry],
    tau: int,
) -> None:
    """Write the rows of all files but the rejected.

    Only ``queries.jsonl`` leaves out what has too few answers: of all other questions that were
    judged the pairs are there, too.
    """
    done = [entries[id] for id in sorted(entries)]
    papers = {one["id"]: one for entry in done for one in entry["papers"]}
    found: tuple[Iterable[Any], ...] = (
        (one.to_dict() for one in worked),
        (one for entry in done for one in entry["judgements"]),
        (papers[id] for id in sorted(papers)),
        (make_query(one, entries[one.id], tau) for one in kept),
        (entry["record"] for entry in done),
    )
    for name, lines in zip(FILES, found, strict=False):
        for line in lines:
            rows[name].append(line)


def describe_outcome(
    written: Written,
    questions: Sequence[QuestQuestion],
    entries: Mapping[str, Entry],
    rejected: ReasonLog,
) -> dict[str, Any]:
    """Return what the manifest says came out, in plain data; nothing is of this run alone."""
    records = [entries[id]["record"] for id in sorted(entries)]
    sizes = sorted(entries[one.id]["record"]["answers"] for one in questions)
    intents = Counter(one.intent for one in questions)
    grades: Counter[str] = Counter()
    for one in records:
        grades.update(one["grades"])
    return {
        "questions": {
            "written": written.n_written or len(written.questions),
            "judged": len(records),
            "kept": len(questions),
            "intents": {name: intents[name] for name in INTENTS},
        },
        "rejected": rejected.describe(),
        "stops": dict(sorted(Counter(one["stop"] for one in records).items())),
        "answers": {
            "all": sum(sizes),
            "fewest": min(sizes, default=0),
            "most": max(sizes, default=0),
        },
        "pairs": {
            "scored": sum(one["scored"] for one in records),
            "grades": dict(sorted(grades.items())),
            "adjudicated": sum(one["adjudicated"] for one in records),
            "filtered": sum(one["filtered"] for one in records),
            "unfiltered": sum(len(one["unfiltered"]) for one in records),
            "unjudged": sum(len(one["unjudged"]) for one in records),
        },
    }


def explain_empty(rejected: ReasonLog, failed: Mapping[str, str]) -> str:
    """Return the reasons with their counts and an example of each."""
    parts = [
        f"{rejected.counts[stage][reason]} {stage}: {reason} "
        f"(e.g. {first.query or first.topic!r:.80}: {first.detail:.120})"
        for (stage, reason), first in sorted(rejected.first.items())
    ]
    if failed:
        parts.append(f"{len(failed)} with failed calls ({next(iter(failed.values())):.160})")
    return "; ".join(parts) or "none"
