"""How well the check of a manuscript tells right citations from others, on Citation Integrity.

Usage: ``python benchmarks/evidence/citations.py citation_integrity.jsonl.gz --split dev``. Lines
have a citing sentence (`query`), a sentence of the cited paper (`passage`), what that is (`kind`:
``support``, ``refute``, ``cited_no_evidence``, ``same_reference_other_sentence``), and the pair
(`doc`). Each claim is also put beside the sentences of another pair's paper: ``wrong``.
"""

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from langchain_core.documents import Document

from deepera_graph import EvidenceReranker
from deepera_graph.evidence.check.library import CitedWork
from deepera_graph.evidence.check.verdict import LOCAL_POINTS, cut_work, decide_by_rules
from deepera_graph.literature.citation import Citation
from deepera_graph.text.files.records import open_records, read_records

_APART = 7  # places from a claim to that whose paper it is put beside


def main() -> None:
    """Print counts of verdicts and areas under the curve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--split", default="dev")
    parser.add_argument("--limit", type=int, default=None, help="pairs that are judged")
    given = parser.parse_args()
    groups: dict[str, list[dict[str, str]]] = defaultdict(list)
    with open_records(given.file) as (source, _):
        for one in read_records(source, ".jsonl"):
            if one.fields["split"] == given.split:
                groups[one.fields["doc"]].append(one.fields)
    pairs = list(groups.values())
    random.Random(0).shuffle(pairs)
    pairs = pairs[: given.limit]
    reranker = EvidenceReranker("local", content="passage")
    scores: dict[str, list[float]] = defaultdict(list)
    verdicts: Counter[tuple[str, str]] = Counter()
    for place, rows in enumerate(pairs):
        other = pairs[(place + _APART) % len(pairs)]
        for kind, texts in ((_kind_of(rows), rows), ("wrong", other)):
            score, verdict = _judge(reranker, rows[0]["query"], [one["passage"] for one in texts])
            scores[kind].append(score)
            verdicts[kind, verdict] += 1
    right = scores.pop("support")
    rest = [score for kind in scores.values() for score in kind]
    found = {kind: round(area(right, others), 3) for kind, others in scores.items()}
    counts = {" ".join(names): n for names, n in sorted(verdicts.items())}
    print(json.dumps({"all": round(area(right, rest), 3), **found, "counts": counts}, indent=2))  # noqa: T201


def _kind_of(rows: Sequence[dict[str, str]]) -> str:
    kinds = {one["kind"] for one in rows}
    return next((one for one in ("support", "refute") if one in kinds), "nothing in it")


def _judge(reranker: EvidenceReranker, claim: str, texts: Sequence[str]) -> tuple[float, str]:
    passages = tuple(Document(id=str(n), page_content=one) for n, one in enumerate(texts))
    work = CitedWork(passages=passages, source=Citation(id="work"))
    pool = reranker.rerank(claim, cut_work(work, claim, by_sentence=True))
    [alone] = reranker.rerank(claim, [pool.passages[0].text]).all_passages
    found = decide_by_rules(claim, work, alone, alone.score, LOCAL_POINTS)
    return alone.score or 0.0, found.verdict


def area(right: Sequence[float], others: Sequence[float]) -> float:
    """Return how often a right pair has the higher score; a tie counts half."""
    wins = sum((a > b) + 0.5 * (a == b) for a in right for b in others)
    return wins / (len(right) * len(others) or 1)


if __name__ == "__main__":
    main()
