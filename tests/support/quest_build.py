"""A build of a benchmark of paper searches, written by hand, and labels of people for its pairs."""

import json
from pathlib import Path

# Source: ScholarQuest, its audit: rows are the judge's grades, columns people's labels.
PUBLISHED = ((133, 16, 1), (21, 117, 12), (2, 19, 129))
INTENTS = ("method", "setting", "comparison", "scope")
MATERIALS = ("oak", "slate", "copper", "wool", "glass", "clay")


def write_build(folder: Path, per_grade=(150, 150, 150), n_questions=12) -> Path:
    """Write a build with so many judged pairs of each grade."""
    folder.mkdir(parents=True, exist_ok=True)
    questions = [
        {
            "id": f"q{n}",
            "query": f"Ageing of {MATERIALS[n % 6]} outdoors in method {n}, but not under water",
            "topic": MATERIALS[n % 6],
            "intent": INTENTS[n % 4],
            "constraints": {"material": MATERIALS[n % 6], "exclude": ["under water", "in soil"]},
        }
        for n in range(n_questions)
    ]
    papers, judgements = [], []
    for grade, many in enumerate(per_grade):
        for n in range(many):
            paper = f"paper-{grade}-{n}"
            papers.append(
                {
                    "id": paper,
                    "title": f"Weathering report {n}: {MATERIALS[n % 6]} in the open",
                    "abstract": "Boards were kept outside for ten years and weighed each spring. "
                    f"Samples of set {n} lost {n % 9} % of their mass.",
                    "year": 2000 + n % 20,
                    "venue": "Journal of Slow Trials",
                }
            )
            judgements.append(
                {
                    "query_id": f"q{n % n_questions}",
                    "paper_id": paper,
                    "grade": grade,
                    "grades": {"first": grade, "second": grade},
                    "evidence": ["Boards were kept outside for ten years"],
                    "adjudicated": n % 10 == 0,
                }
            )
    for name, lines in (
        ("questions", questions), ("papers", papers), ("judgements", judgements),
    ):  # fmt: skip
        write_lines(folder / f"{name}.jsonl", lines)
    return folder


def write_lines(path: Path, lines) -> None:
    """Write JSON lines."""
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines), encoding="utf-8")


def published_labels(audit) -> dict[str, int]:
    """Return labels that make the published matrix of an audit of 150 pairs a grade."""
    left = [[label for label, n in enumerate(row) for _ in range(n)] for row in PUBLISHED]
    return {pair: left[one.grade].pop() for pair, one in audit.key.items()}


def fill_sheet(audit, labels, *, failures=None) -> bytes:
    """Return the sheet of an audit with labels in it, as commas and line feeds."""
    lines = ["pair,label,failure,note"]
    lines += [f"{pair},{label},{(failures or {}).get(pair, '')}," for pair, label in labels.items()]
    return ("\n".join(lines) + "\n").encode()
