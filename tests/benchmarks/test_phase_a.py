"""The fit of `benchmarks/bioasq/phase_a.py`: gathered from a collection, and a planted order."""

import importlib.util
import random
from pathlib import Path

import pytest

from deepera_graph import open_store
from deepera_graph.bioasq.questions import BioasqQuestion, Snippet
from support.moths import QUESTION, documents

pytestmark = pytest.mark.full

FILE = Path(__file__).parents[2] / "benchmarks" / "bioasq" / "phase_a.py"


@pytest.fixture(scope="module")
def phase_a():
    spec = importlib.util.spec_from_file_location("phase_a", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def planted(draw, n=200):
    """Questions whose golden document is the best by 2 * first + passage."""
    for _ in range(n):
        found = [
            {"first": draw.random(), "aligned": [draw.random(), draw.random(), draw.random()]}
            for _ in range(6)
        ]
        best = max(found, key=lambda one: 2 * one["first"] + one["aligned"][0])
        documents = [{**one, "is_golden": one is best} for one in found]
        yield {"documents": documents}


def test_planted_weights_are_found(phase_a):
    first, passage, *others = phase_a.fit_order([*planted(random.Random(1))])
    assert first / passage == pytest.approx(2, rel=0.2)
    assert max(map(abs, others)) < 0.1 * passage


def test_what_is_found_is_gathered_once(phase_a, tmp_path):
    golden = Snippet(
        document="101", text="x", begin_section="abstract", begin=37, end_section="abstract", end=83
    )
    asked = BioasqQuestion(
        id="q", type="yesno", body=QUESTION, documents=("101",), snippets=(golden,)
    )
    with open_store("moths") as store:
        store.add(documents())
        [row] = phase_a.gather([asked], store, tmp_path)
    assert [one["id"] for one in row["documents"] if one["is_golden"]] == ["101"]
    assert phase_a.gather([asked], store, tmp_path) == [row]  # the store is closed
    assert phase_a.mean_precision([row]) == 1.0
    labels = [label for _, _, label in phase_a.list_sentences(row)]
    assert sum(labels) == 1
