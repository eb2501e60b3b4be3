"""The folder of a construction: questions, judgements, papers, records, and a manifest of it all.

========================  ==========================================================================
``questions.jsonl``       the questions that were judged: id, query, topic, intent, constraints
``judgements.jsonl``      a line a pair: query_id, paper_id, grade, grades (by judge), evidence,
                          adjudicated; and reasons, failures, ruling, filtered where there are any
``papers.jsonl``          the papers of the pairs, as `deepera papers build` reads them
``queries.jsonl``         those with enough answers, as `deepera-lab bench papers` reads them
``records.jsonl``         a line a question: calls of sources, counts, usage, and why it ended
``rejected.jsonl``        topics and questions that went no further, each with its reason
``manifest.json``         what made it, what came out, and the SHA-256 of each file
========================  ==========================================================================
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from deepera_graph import __version__
from deepera_graph.agents.journal import Journal
from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.lab.build.outputs import hash_file, hash_prompts, remove_earlier
from deepera_graph.lab.quest.asking import PACKAGE
from deepera_graph.lab.quest.plan import INTENTS, QuestPlan, QuestQuestion, Rejection
from deepera_graph.usage import Usage

FORMAT = 1
WORK, JOURNAL = "work", "questions.journal"
QUESTIONS, JUDGEMENTS, PAPERS = "questions.jsonl", "judgements.jsonl", "papers.jsonl"
QUERIES, RECORDS, REJECTED = "queries.jsonl", "records.jsonl", "rejected.jsonl"
Entry = Mapping[str, Any]


@contextmanager
def open_journal(folder: Path, ran: Mapping[str, Any], *, resume: bool) -> Iterator[Journal]:
    """Open what keeps the questions that are finished.

    Raises:
        SettingsError: Another process builds in the folder; or it is to be resumed, and was made
            with other settings.
        StoreError: While it is open: a file of the folder cannot be written.
    """
    journal = Journal(folder / WORK / JOURNAL, ran)
    with ExitStack() as block:
        try:
            block.enter_context(FileLock(journal.path.with_suffix(".lock"), timeout=0))
        except Timeout as error:
            raise SettingsError(
                f"another process builds in {str(folder)!r}; one at a time can"
            ) from error
        try:
            block.enter_context(journal.open(resume=resume))
        except SettingsError as error:
            raise SettingsError(
                f"{error}; --overwrite (overwrite=True) begins anew, with kept replies"
            ) from error
        try:
            yield journal
        except OSError as error:
            raise StoreError(
                f"the folder {str(folder)!r} cannot be written: {error.strerror or error}"
            ) from error


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


def write_files(
    folder: Path,
    *,
    questions: Sequence[QuestQuestion],
    kept: Sequence[QuestQuestion],
    entries: Mapping[str, Entry],
    rejected: Sequence[Rejection],
    plan: QuestPlan,
) -> dict[str, str]:
    """Write all files but the manifest; return SHA-256 by file name.

    Only ``queries.jsonl`` leaves out what has too few answers: of all other questions that were
    judged the pairs are there, too.
    """
    remove_earlier(folder)
    worked = [entries[id] for id in sorted(entries)]
    papers = {one["id"]: one for entry in worked for one in entry["papers"]}
    rows: dict[str, Iterable[Any]] = {
        QUESTIONS: (one.to_dict() for one in questions),
        JUDGEMENTS: (one for entry in worked for one in entry["judgements"]),
        PAPERS: (papers[id] for id in sorted(papers)),
        QUERIES: (make_query(one, entries[one.id], plan.tau) for one in kept),
        RECORDS: (entry["record"] for entry in worked),
        REJECTED: (_plain(one) for one in rejected),
    }
    for name, lines in rows.items():
        _write_lines(folder / name, lines)
    return {name: hash_file(folder / name) for name in rows}


def _plain(one: Rejection) -> dict[str, Any]:
    return {name: value for name, value in asdict(one).items() if value}


def _write_lines(path: Path, lines: Iterable[Any]) -> None:
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8", newline="\n") as file:
        for one in lines:
            file.write(json.dumps(one, ensure_ascii=False, allow_nan=False) + "\n")
    part.replace(path)


def build_manifest(
    plan: QuestPlan,
    made_of: Mapping[str, Any],
    questions: Sequence[QuestQuestion],
    entries: Mapping[str, Entry],
    rejected: Sequence[Rejection],
    *,
    written: Mapping[str, Any],
    usage: Mapping[str, Mapping[str, int]],
    files: Mapping[str, str],
) -> dict[str, Any]:
    """Return the manifest, in plain data; it has no time, place or count of this run alone."""
    records = [entries[id]["record"] for id in sorted(entries)]
    sizes = sorted(entries[one.id]["record"]["answers"] for one in questions)
    intents = Counter(one.intent for one in questions)
    grades: Counter[str] = Counter()
    for one in records:
        grades.update(one["grades"])
    return {
        "format": FORMAT,
        "package": __version__,
        "plan": plan.to_dict(),
        **made_of,
        "prompts": hash_prompts(PACKAGE),
        "questions": {
            **written,
            "judged": len(records),
            "kept": len(questions),
            "intents": {name: intents[name] for name in INTENTS},
        },
        "rejected": _count_rejected(rejected),
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
        "usage": dict(usage),
        "files": dict(files),
    }


def _count_rejected(rejected: Sequence[Rejection]) -> dict[str, dict[str, int]]:
    stages = sorted({one.stage for one in rejected})
    return {
        stage: dict(sorted(Counter(one.reason for one in rejected if one.stage == stage).items()))
        for stage in stages
    }


def plain_usage(used: Usage) -> dict[str, int]:
    """Return what replies took, in plain data."""
    return {
        "calls": used.calls,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "asked_twice": used.reasked_calls,
    }


def explain_empty(rejected: Sequence[Rejection], failed: Mapping[str, str]) -> str:
    """Return the reasons with their counts and an example of each."""
    reasons: dict[str, list[Rejection]] = {}
    for one in rejected:
        reasons.setdefault(f"{one.stage}: {one.reason}", []).append(one)
    parts = [
        f"{len(many)} {name} (e.g. {many[0].query or many[0].topic!r:.80}: {many[0].detail:.120})"
        for name, many in sorted(reasons.items())
    ]
    parts += (
        [f"{len(failed)} with failed calls ({next(iter(failed.values())):.160})"] if failed else []
    )
    return "; ".join(parts) or "there was none"
