"""The measure of a manuscript's check: a paper is all its sentences, another is another's."""

import importlib.util
from pathlib import Path

FILE = Path(__file__).parents[2] / "benchmarks" / "evidence" / "citations.py"
KINDS = ["support", "support", "refute", "cited_no_evidence"]


def test_a_claim_is_judged_by_all_of_its_paper_and_by_another_paper(monkeypatch):
    spec = importlib.util.spec_from_file_location("citations", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    groups = {
        f"{paper}{number:03}": [
            {"query": f"Claim {number}.", "passage": f"Finding {number} of {paper}.", "kind": kind},
            {"query": f"Claim {number}.", "passage": f"Aims of {paper}.", "kind": "other"},
        ]
        for paper in (7, 12)
        for number, kind in enumerate(KINDS)
    }
    papers = module._read_papers(groups)
    assert [one.page_content for one in papers["7"].passages] == [
        "Finding 0 of 7.",
        "Aims of 7.",
        *(f"Finding {n} of 7." for n in (1, 2, 3)),
    ]
    monkeypatch.setattr(
        module, "_DRAWN", {"support": 2, "refute": 1, "nothing in it": 1, "wrong": 2}
    )
    drawn = module._draw(groups, 5, set())
    assert sorted(kind for kind, *_ in drawn) == [
        "nothing in it",
        "refute",
        "support",
        "support",
        "wrong",
        "wrong",
    ]
    for kind, claim, paper in drawn:
        assert (claim[:-3] == paper[:-3]) is (kind != "wrong")
