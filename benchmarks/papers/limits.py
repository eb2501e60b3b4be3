"""How well the limits of a question are read, and what breaks an exclusion is left out, by rules.

    python benchmarks/papers/limits.py --show

150 questions (`limits.jsonl`) and 24 sets of papers (`left_out.jsonl`), all invented. The expected
answers of both were written before the rules; the rules were then written with the odd lines in
view. One answer was changed since: randomised trials are now a kind of their own. The even lines
are held back: `--show` prints errors of the odd lines alone.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deepera_graph.papers.agent.limits import Limits, breaks_by_facts
from deepera_graph.papers.agent.limits.reading import read_limits
from deepera_graph.papers.agent.planners import subject_of
from deepera_graph.papers.agent.selectors import make_selector
from deepera_graph.text.words import stems

FOLDER = Path(__file__).parent
TODAY = "2026"
VENUES = (
    "ACL", "EMNLP", "NAACL", "NeurIPS", "ICML", "ICLR", "CVPR", "SIGIR", "Nature", "Science",
    "The Lancet", "JAMA", "BMJ", "PLOS ONE",
)  # fmt: skip
FIELDS = (
    "year_from", "year_to", "not_years", "venues", "not_venues", "types", "not_types", "exclude",
    "topic",
)  # fmt: skip
_ONLY_ASK = frozenset(stems("papers studies works articles literature research published written"))
Lines = Sequence[Mapping[str, Any]]


def main() -> None:
    """Print a line a half."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="errors of the first half, too")
    parser.add_argument("--selector", default="rules,vectors", metavar="NAMES")
    given = parser.parse_args()
    questions, papers = load("limits.jsonl"), load("left_out.jsonl")
    for first, name in enumerate(("used for the rules", "held back")):
        show = given.show and not first
        right = measure_reading(questions[first::2], show=show)
        print(f"{name}: {right} of {len(questions[first::2])} questions read exactly")  # noqa: T201
        for selector in given.selector.split(","):
            n, precision, recall, f1 = measure_leaving_out(papers[first::2], selector, show=show)
            print(  # noqa: T201
                f"{name}: {selector}, {n} papers: F1 {f1:.3f} (precision {precision:.3f}, "
                f"recall {recall:.3f})"
            )


def load(name: str) -> Lines:
    """Return the lines of a file."""
    return [json.loads(one) for one in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def measure_reading(questions: Lines, *, show: bool = False) -> int:
    """Return how many questions are read exactly: every limit, and the words of the topic."""
    right = 0
    for one in questions:
        read = read_limits(one["question"], as_of=TODAY, venues=VENUES).to_dict()
        wrong = [name for name in FIELDS if _plain(name, read) != _plain(name, one)]
        right += not wrong
        for name in wrong if show else ():
            print(f"  {one['question']}\n    {name}: {read.get(name)}, not {one.get(name)}")  # noqa: T201
    return right


def _plain(name: str, limits: Mapping[str, Any]) -> Any:
    """Return a limit in a form in which equal ones are equal, whatever the order and word forms."""
    value = limits.get(name) or None
    if name == "topic":
        return frozenset(stems(subject_of(str(value)))) - _ONLY_ASK
    if name == "exclude":
        return {tuple(stems(one)) for one in value or ()}
    return frozenset(value) if isinstance(value, list) else value


def measure_leaving_out(
    sets: Lines, selector: str, *, show: bool = False
) -> tuple[int, float, float, float]:
    """Return the number of papers, and precision, recall and F1 of those that were left out."""
    right = wrong = missed = kept = 0
    judge = make_selector(selector, None).role
    for one in sets:
        limits = {name: value for name, value in one.items() if name != "papers"}
        papers = [{**each, "id": str(at)} for at, each in enumerate(one["papers"])]
        task: Any = {"limits": {"question": one["topic"], **limits}, "papers": papers}
        read = Limits.from_dict(task["limits"])
        for said, paper in zip(judge.invoke(task).papers, papers, strict=True):
            is_out = said.verdict == "out" or bool(breaks_by_facts(paper, read)[0])
            right += is_out and paper["out"]
            wrong += is_out and not paper["out"]
            missed += paper["out"] and not is_out
            kept += not is_out and not paper["out"]
            if show and is_out != paper["out"]:
                what = f"{'out' if is_out else 'kept'} {said.quote!r}"
                print(f"  {selector} {one['topic']} {read.exclude}")  # noqa: T201
                print(f"    {what}: {paper['title']}. {paper['abstract']}")  # noqa: T201
    precision, recall = right / (right + wrong or 1), right / (right + missed or 1)
    f1 = 2 * right / (2 * right + wrong + missed or 1)
    return right + wrong + missed + kept, precision, recall, f1


if __name__ == "__main__":
    main()
