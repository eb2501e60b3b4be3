"""Builds from the invented abstracts, with small pools unless the plan says otherwise."""

import sys
from pathlib import Path

from bench.build.lake_abstracts import lake_abstracts
from deepera_graph.bench.build.builder import build
from deepera_graph.bench.build.plan import BuildPlan

_OPTIONS = (
    "overwrite",
    "budget",
    "calls_at_once",
    "embeddings",
    "on_progress",
    "workers",
    "qdrant_url",
)


def build_from_lakes(base_url, out, *, documents=None, generators=("lmqg",), **more):
    options = {name: more.pop(name) for name in _OPTIONS if name in more}
    return build(
        lake_abstracts() if documents is None else documents,
        out,
        model="openai:scripted",
        base_url=base_url,
        retry={"attempts": 1},
        generators=generators,
        plan=BuildPlan(**{"n_questions": 6, "n_contexts": 8, "max_tokens": 120, **more}),
        **options,
    )


if __name__ == "__main__":
    build_from_lakes(sys.argv[1], Path(sys.argv[2]), calls_at_once=2)
