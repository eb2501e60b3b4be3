"""Figures that README and docs name are those of the code.

To add one: the page, a pattern with a group a figure, and what the code says, in that order.
"""

import re
from pathlib import Path

import pytest

from deepera_graph import load_backend
from deepera_graph.lab.settings import Gates, QuestPlan
from deepera_graph.papers.agent import asking, planners, roles, steps
from deepera_graph.settings.thresholds import OPERATING_POINT

ROOT = Path(__file__).parents[2]
GATES, QUEST = Gates(), QuestPlan()
FIGURES = {
    "benchmark: local judge's gate": (
        "docs/benchmark.md", r"passage that it scores ([\d.]+) or more", [GATES.max_evidence]),
    "benchmark: lengths": (
        "docs/benchmark.md", r"a length beyond (half) to (twice) the median",
        [GATES.min_length, GATES.max_length]),
    "benchmark: likeness": (
        "docs/benchmark.md", r"than the (tenth) percentile of the pool", [GATES.min_percentile]),
    "judges: local threshold": (
        "docs/judges.md", r"that of the local judge is ([\d.]+)", ["local"]),
    "judges: rules' threshold": (
        "docs/judges.md", r"at their threshold of ([\d.]+)", ["rules"]),
    "local judge: operating point": (
        "docs/local-judge.md", r"operating point\*\* of [a-z ]+ weights is ([\d.]+)", ["local"]),
    "local judge: figures": (
        "docs/local-judge.md", r"\(nothing kept\) at the operating point, ([\d.]+);", ["local"]),
    "start: threshold": (
        "docs/start.md", r"more are possible, reaching ([\d.]+)\. ", ["local"]),
    "card: evidence": (
        "deepera_graph/judges/trained/weights/MODEL_CARD.md",
        r"scores ([\d.]+) or more is called \*evidence\*", ["evidence"]),
    "local judge: evidence": (
        "docs/local-judge.md", r"scores ([\d.]+) or more is called \*evidence\*", ["evidence"]),
    "README: evidence": (
        "README.md", r"What scores ([\d.]+) or more is called evidence", ["evidence"]),
    "settings: a chat model's threshold": (
        "docs/settings.md", r"is the judge's own, ([\d.]+) for a chat model", [OPERATING_POINT]),
    "quest: top": ("docs/quest.md", r"service of literature, the top (\d+);", [QUEST.per_search]),
    "quest: citing": ("docs/quest.md", r"at most (\d+) citing papers", [QUEST.max_citing]),
    "quest: duplicates": ("docs/quest.md", r"cosine of embeddings >= ([\d.]+)", [QUEST.duplicate]),
    "quest: rewrites": (
        "docs/quest.md", r"(ten) queries of (five) kinds", [5 * QUEST.rewrites, 5]),
    "quest: ends": (
        "docs/quest.md", r"`max_answers` \((\d+)\) or `max_scored` \(([\d ]+)\)",
        [QUEST.max_answers, QUEST.max_scored]),
    "quest: answers": (
        "docs/quest.md", r"fewer than (\d+) answers are rejected", [QUEST.min_answers]),
    "quest: papers a call": (
        "docs/quest.md", r"its constraints, and (ten) papers with title", [QUEST.group]),
    "paper search: PaSa": (
        "docs/paper-search.md",
        r"up to (\d+) queries of (\d+) papers; .* that score above ([\d.]+),",
        [roles.N_QUERIES, asking.PAGE, steps.FIT]),
    "paper search: PaperScout": (
        "docs/paper-search.md",
        r"at most (\d+) calls a round, .* (ten) papers a page; .* the (ten) best papers and the "
        r"(ten) newest of the others; what scores below ([\d.]+) is dropped",
        [planners.PARALLEL, asking.PAGE, asking.N_BEST, asking.N_NEWEST, planners.LEAST]),
}  # fmt: skip
WORDS = {"half": 0.5, "twice": 2, "five": 5, "ten": 10, "tenth": 10}


def number(written: str) -> float:
    return WORDS[written] if written in WORDS else float(written.replace(" ", ""))


def said_by_code(figure: float | str) -> float:
    """A figure, the point of evidence, or the threshold of the judge of that name."""
    if figure == "evidence":
        point = load_backend("local").judge.evidence_point
        assert point is not None
        return point
    return load_backend(figure).judge.operating_point if isinstance(figure, str) else figure


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_in_the_docs_is_that_of_the_code(name: str) -> None:
    page, pattern, figures = FIGURES[name]
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    found = re.findall(pattern, text)
    assert found, f"{page} no longer says {pattern!r}"
    for one in found:
        written = [one] if isinstance(one, str) else [*one]
        assert [*map(number, written)] == [*map(said_by_code, figures)]


def test_the_thresholds_advised_go_the_way_that_is_said() -> None:
    text = " ".join((ROOT / "docs/judges.md").read_text(encoding="utf-8").split())
    [(lower, higher)] = re.findall(
        r"lower it; .*?`--threshold ([\d.]+)`.*?raise it, `--threshold ([\d.]+)`", text
    )
    assert float(lower) < said_by_code("local") < float(higher)
