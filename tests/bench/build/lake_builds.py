"""Builds from the invented abstracts, with small pools unless the plan says otherwise.

As a program: the server, the folder, and perhaps a file of other abstracts (JSON Lines with `_id`
or `id`, `title` and `text` or `abstract`) and how many of them.
"""

import json
import sys
from pathlib import Path

from bench.build.lake_abstracts import lake_abstracts
from deepera_graph.lab.build.builder import build
from deepera_graph.lab.build.corpus import Document
from deepera_graph.lab.settings import BuildPlan

_OPTIONS = (
    "overwrite",
    "budget",
    "calls_at_once",
    "embeddings",
    "on_progress",
    "workers",
    "qdrant_url",
    "retry",
)


def build_from_lakes(base_url, out, *, documents=None, generators=("lmqg",), **more):
    options = {name: more.pop(name) for name in _OPTIONS if name in more}
    return build(
        lake_abstracts() if documents is None else documents,
        out,
        model="openai:scripted",
        base_url=base_url,
        generators=generators,
        plan=BuildPlan(**{"n_questions": 6, "n_contexts": 8, "max_tokens": 120, **more}),
        **{"retry": {"attempts": 1}, **options},
    )


def read_abstracts(path, n):
    with Path(path).open(encoding="utf-8") as file:
        rows = [json.loads(line) for _, line in zip(range(n), file, strict=False)]
    return [
        Document(
            id=str(one.get("_id") or one["id"]),
            title=one["title"],
            text=one.get("text") or one["abstract"],
        )
        for one in rows
    ]


if __name__ == "__main__":
    server, out, *corpus = sys.argv[1:]
    build_from_lakes(
        server,
        Path(out),
        documents=read_abstracts(corpus[0], int(corpus[1])) if corpus else None,
        calls_at_once=2,
        retry={"attempts": 4, "first_wait": 0.01},
    )
