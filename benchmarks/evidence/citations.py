"""How well the check of a manuscript tells right citations from others, on Citation Integrity.

Usage: ``python benchmarks/evidence/citations.py citation_integrity.jsonl.gz --split dev``. Lines
have a citing sentence (`query`), a sentence of the cited paper (`passage`), what that is (`kind`:
``support``, ``refute``, ``cited_no_evidence``, ``same_reference_other_sentence``), and the pair
(`doc`, its thousands are the paper). A claim is judged by all sentences that the file has of its
paper, and once more by those of another paper: ``wrong``.

With ``--model NAME --base-url URL -o FILE`` a chat model judges 60 pairs drawn with ``--seed``: 28
rightly cited, 14 wrongly, 4 with nothing in the paper and 14 beside another paper; the sentences of
a paper that are nearest to the claim are one passage. ``--without FILE...`` leaves out the claims
of earlier runs.
"""

import argparse
import asyncio
import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from langchain_core.documents import Document

from deepera_graph import EvidenceReranker, llm_backend
from deepera_graph.agents.twin import ado
from deepera_graph.evidence.asking import follow_steps
from deepera_graph.evidence.check.library import CitedWork
from deepera_graph.evidence.check.verdict import (
    LOCAL_POINTS,
    MOST_SENTENCES,
    ClaimVerifier,
    choose,
    choose_nearest,
    cut_work,
    decide_by_rules,
)
from deepera_graph.literature.citation import Citation
from deepera_graph.prompts import read_rules
from deepera_graph.text.jsonl import open_records
from deepera_graph.text.records import read_records

_DRAWN = {"support": 28, "refute": 14, "nothing in it": 4, "wrong": 14}
Pairs = dict[str, list[dict[str, str]]]  # rows by claim
Papers = dict[str, CitedWork]


def main() -> None:
    """Print counts of verdicts and areas under the curve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--split", default="dev")
    parser.add_argument("--limit", type=int, default=None, help="pairs that are judged")
    parser.add_argument("--model", help="a chat model, as provider:name")
    parser.add_argument("--base-url")
    parser.add_argument("--seed", type=int, default=0, help="of the 60 pairs of a chat model")
    parser.add_argument("--without", type=Path, nargs="*", default=[], help="earlier -o files")
    parser.add_argument("-o", "--out", type=Path, help="file of verdicts, a line a pair")
    given = parser.parse_args()
    if bool(given.model) != bool(given.out):
        parser.error("--model and --out go together")
    groups: Pairs = defaultdict(list)
    with open_records(given.file) as (source, _):
        for one in read_records(source, ".jsonl"):
            if one.fields["split"] == given.split:
                groups[str(one.fields["doc"])].append(one.fields)
    papers = _read_papers(groups)
    if given.model:
        asyncio.run(_ask_model(groups, papers, given))
        return
    claims = list(groups)
    random.Random(0).shuffle(claims)
    reranker = EvidenceReranker("local", content="passage")
    scores: dict[str, list[float]] = defaultdict(list)
    verdicts: Counter[tuple[str, str]] = Counter()
    for claim in claims[: given.limit]:
        rows, other = groups[claim], _find_other(claims, claim)
        for kind, paper in ((_kind_of(rows), claim), ("wrong", other)):
            score, verdict = _judge(reranker, rows[0]["query"], papers[_paper_of(paper)])
            scores[kind].append(score)
            verdicts[kind, verdict] += 1
    right = scores.pop("support")
    rest = [score for kind in scores.values() for score in kind]
    found = {kind: round(area(right, others), 3) for kind, others in scores.items()}
    counts = {" ".join(names): n for names, n in sorted(verdicts.items())}
    print(json.dumps({"all": round(area(right, rest), 3), **found, "counts": counts}, indent=2))  # noqa: T201


async def _ask_model(groups: Pairs, papers: Papers, given: argparse.Namespace) -> None:
    """Have a chat model judge 60 pairs, and print how many it called supported rightly."""
    lines = [one for file in given.without for one in file.read_text("utf-8").splitlines()]
    seen = {str(json.loads(line)["doc"]) for line in lines}
    backend = llm_backend(given.model, base_url=given.base_url, retry={"timeout": 3600})
    reranker = EvidenceReranker(backend, max_concurrency=64)
    verifier = ClaimVerifier(reranker, read_rules("claims"))

    async def judge(kind: str, claim: str, paper: str) -> dict[str, object]:
        said = groups[claim][0]["query"]
        near = choose(papers[_paper_of(paper)].passages, said, MOST_SENTENCES)
        text = "\n".join(one.page_content for one in near)
        passages = (Document(id="0", page_content=text),)
        work = CitedWork(passages=passages, source=Citation(id="work"))
        found = (await ado(follow_steps(verifier.verify(said, work)))).decision
        return {"doc": claim, "kind": kind, "verdict": found.verdict, "score": found.score}

    drawn = _draw(groups, given.seed, seen)
    done = await asyncio.gather(*(judge(*one) for one in drawn))
    given.out.write_text("".join(json.dumps(one) + "\n" for one in done), "utf-8")
    right = sum((one["kind"] == "support") == (one["verdict"] == "supported") for one in done)
    counts = Counter(f"{one['kind']} {one['verdict']}" for one in done)
    print(json.dumps({"right": right, "pairs": len(done), "counts": counts}, indent=2))  # noqa: T201


def _draw(groups: Pairs, seed: int, seen: set[str]) -> list[tuple[str, str, str]]:
    """Draw pairs as kind, claim and the claim whose paper is shown."""
    claims = sorted(groups)
    random.Random(seed).shuffle(claims)
    claims = [one for one in claims if one not in seen]
    left, drawn = dict(_DRAWN), []
    for claim in claims:
        kind, paper = _kind_of(groups[claim]), claim
        if kind == "support" and not left[kind]:
            kind, paper = "wrong", _find_other(claims, claim)
        if left[kind]:
            left[kind] -= 1
            drawn.append((kind, claim, paper))
    random.Random(seed + 1).shuffle(drawn)
    return drawn


def _kind_of(rows: Sequence[dict[str, str]]) -> str:
    kinds = {one["kind"] for one in rows}
    return next((one for one in ("support", "refute") if one in kinds), "nothing in it")


def _paper_of(claim: str) -> str:
    return claim[:-3]


def _find_other(claims: Sequence[str], claim: str) -> str:
    """Return the next claim, in a ring, that cites another paper."""
    place = claims.index(claim)
    ring = [*claims[place:], *claims[:place]]
    return next(one for one in ring if _paper_of(one) != _paper_of(claim))


def _read_papers(groups: Pairs) -> Papers:
    """Return all sentences of each paper, each once."""
    texts: dict[str, dict[str, None]] = defaultdict(dict)
    for claim, rows in groups.items():
        texts[_paper_of(claim)].update(dict.fromkeys(one["passage"] for one in rows))
    return {
        paper: CitedWork(
            passages=tuple(Document(id=str(n), page_content=one) for n, one in enumerate(found)),
            source=Citation(id="work"),
        )
        for paper, found in texts.items()
    }


def _judge(reranker: EvidenceReranker, claim: str, work: CitedWork) -> tuple[float, str]:
    pool = reranker.rerank(claim, cut_work(work, claim, by_sentence=True))
    [alone] = reranker.rerank(claim, [choose_nearest(claim, pool).text]).all_passages
    found = decide_by_rules(claim, work, alone, alone.score, LOCAL_POINTS)
    return alone.score or 0.0, found.verdict


def area(right: Sequence[float], others: Sequence[float]) -> float:
    """Return how often a right pair has the higher score; a tie counts half."""
    wins = sum((a > b) + 0.5 * (a == b) for a in right for b in others)
    return wins / (len(right) * len(others) or 1)


if __name__ == "__main__":
    main()
