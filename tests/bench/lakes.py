"""Invented questions about mountain lakes, and ways to write them down."""

import json
from pathlib import Path

from deepera_graph.calibration.instance import Context, Dataset, Instance
from deepera_graph.lab.metrics.ranking import JudgedRanking

SHARED_DATA = Path(__file__).parents[3] / "shared" / "data"


def make_judged(ranked, golden, *, n=None, parents=None, id="q"):
    grades = golden if isinstance(golden, dict) else dict.fromkeys(golden, 1)
    return JudgedRanking(id, tuple(ranked), n or len(ranked), grades, parents or {})


def make_instance(number=1, *, n=5, golden=(2,), distractors=(), question=None, outside=None):
    contexts = tuple(
        Context(
            id=f"c{place}",
            text=f"Passage {place} of lake {number}: its water was {place} degrees warm.",
            is_golden=place in golden,
            is_distractor=place in distractors,
            distractor_type="background" if place in distractors else None,
            parent_id=f"c{golden[0]}" if place in distractors else None,
            first_stage_rank=place,
        )
        for place in range(1, n + 1)
    )
    if outside is None:
        outside = {} if golden else {"elsewhere": 1}
    return Instance(
        id=f"q{number}",
        question=question or f"How warm is lake {number}?",
        contexts=contexts,
        golden_outside=outside,
    )


def make_dataset(n=4, name="lakes", **changes):
    instances = [make_instance(number, **changes) for number in range(1, n + 1)]
    return Dataset(name, lambda: instances, "by hand")


def write_jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
