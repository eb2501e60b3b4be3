"""Small training pools, and files that hold them."""

import json

from deepera_graph.lab.training.lessons.pools import GOLDEN, OTHER_PAPER, LabelledPassage, Pool

SUBJECTS = ("copper roofs", "harbour lamps", "wet summers", "old keepers", "green crusts")


def pool(name, labels, *, group=None, kinds=None, **fields):
    """A pool whose passages have these labels, and kinds where they are no evidence."""
    kinds = kinds or [OTHER_PAPER] * len(labels)
    return Pool(
        id=name,
        question=f"Does rain change {name}?",
        group=group or name,
        set=fields.pop("set", "roofs"),
        passages=tuple(
            LabelledPassage(
                text=f"{name}, note {place}.", label=label, kind=GOLDEN if label else kind
            )
            for place, (label, kind) in enumerate(zip(labels, kinds, strict=True))
        ),
        **fields,
    )


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def instance_lines(n):
    """Questions with parts of the paper that answers, and of others."""
    for number in range(n):
        thing, other = (SUBJECTS[(number + step) % len(SUBJECTS)] for step in (0, 1))
        parts = [
            ("objective", f"We wanted to know whether {thing} grow in year {number}."),
            ("methods", f"We measured {thing} every week with a ruler."),
            (None, f"Growth was {number + 3}% in year {number}, twice that of before (p < 0.01)."),
            (None, f"Nobody counted {other} in year {number}."),
            (None, f"In {number + 9} towns {other} were painted, and 12% of them shone."),
        ]
        yield {
            "id": f"q{number}",
            "question": f"Do {thing} grow faster in year {number}?",
            "contexts": [
                {
                    "id": str(place),
                    "text": text,
                    "is_golden": place == 2,
                    "is_distractor": kind is not None,
                    "distractor_type": kind,
                }
                for place, (kind, text) in enumerate(parts)
            ],
        }
