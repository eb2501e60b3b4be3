"""What judges make of questions that neither was trained on: other people's, and small libraries.

    pip install -e '.[train]'
    python benchmarks/judge/real.py DATA --weights my-weights

Beside the shipped weights, each folder of weights named. Questions of BioASQ that are held out,
with three golden snippets among twelve others, or one among five; questions of MedQuAD with answers
to others on the same disease; claims of SciFact's test half with what they cite and ten near
abstracts; and the questions of ``unseen_libraries.jsonl``, each over some ten abstracts with titles
on one narrow subject, written for this measurement.

Of each set: mean average precision; of what is kept, and of the first band, recall @ precision, and
in how many of 100 pools a look-alike is in it; of the libraries also how many of 100 null results
and of 100 other pieces of evidence are kept, and are in the first band.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from random import Random
from statistics import fmean
from typing import NamedTuple

import numpy as np

from deepera_graph.calibration.instance import read_rows
from deepera_graph.judges.trained.backend import Weights
from deepera_graph.judges.trained.model import EvidenceModel
from deepera_graph.lab.data.beir import read_beir
from deepera_graph.lab.training.fitting.scorer import build_model_scorer
from deepera_graph.lab.training.lessons.libraries import SmallLibrary
from deepera_graph.lab.training.lessons.pools import LabelledPassage, Pool
from deepera_graph.lab.training.lessons.snippets import (
    AskedSnippets,
    is_held_out,
    read_pairs,
    read_questions,
)
from deepera_graph.lab.training.measure import (
    ScoredPool,
    compute_threshold_metrics,
    mean_average_precision,
    score_pools,
)

LIBRARIES = Path(__file__).with_name("unseen_libraries.jsonl")
NULL = "no_difference"
N_ASKED = 120
Text = tuple[str, str]  # title and text


class Asked(NamedTuple):
    """A question before its passages are mixed."""

    id: str
    question: str
    golden: Sequence[tuple[Text, str]]  # and what each says of it, where that is known
    others: Sequence[Text]


def read_bioasq(asked: Sequence[AskedSnippets], n_golden: int, n_others: int) -> Iterator[Asked]:
    """Yield the questions with their golden snippets and the nearest others."""
    for one in asked:
        golden = [(("", text), "") for text in one.golden[:n_golden]]
        yield Asked(one.id, one.question, golden, [("", text) for text in one.strange[:n_others]])


def read_medquad(pretrain: Path) -> Iterator[Asked]:
    """Yield questions of MedQuAD by chance, with answers to others on the same disease."""
    answers: dict[str, dict[int, list[str]]] = defaultdict(lambda: {0: [], 1: []})
    for row in read_pairs(pretrain, "medquad"):
        answers[row["query"]][int(row["label"])].append(row["passage"])
    fit = {query: its for query, its in answers.items() if len(its[1]) <= 2 <= len(set(its[0]))}
    for query in Random(0).sample(sorted(fit), N_ASKED):
        golden = [(("", text), "") for text in dict.fromkeys(fit[query][1])]
        others = [("", text) for text in dict.fromkeys(fit[query][0]) if text not in fit[query][1]]
        yield Asked(query, query, golden, others)


def read_scifact(scifact: Path) -> Iterator[Asked]:
    """Yield claims by chance, with the abstracts that they cite and ten near ones."""
    claims = list(read_beir(scifact, split="test", n_candidates=10))
    for one in Random(0).sample([claim for claim in claims if not claim.golden_outside], N_ASKED):
        golden = [((its.title, its.text), "") for its in one.contexts if its.is_golden]
        others = [(its.title, its.text) for its in one.contexts if not its.is_golden]
        yield Asked(one.id, one.question, golden, others)


def read_libraries(*, answered: bool) -> Iterator[Asked]:
    """Yield the questions that some abstract of their library answers, or those that none does."""
    for library in read_rows(LIBRARIES, SmallLibrary):
        texts = {one.id: (one.title, one.text) for one in library.abstracts}
        for asked in library.questions:
            if bool(asked.golden) == answered:
                golden = [(texts[id], said) for id, said in asked.golden.items()]
                others = [text for id, text in texts.items() if id not in asked.golden]
                yield Asked(f"{library.subject}: {asked.question}", asked.question, golden, others)


def build_pool(set: str, asked: Asked, chance: Random) -> Pool:
    """Return the pool of a question, its passages in an order by chance."""
    passages = [
        *(_passage(text, 1, said) for text, said in asked.golden),
        *(_passage(text, 0, "") for text in asked.others),
    ]
    chance.shuffle(passages)
    return Pool(
        id=asked.id, question=asked.question, passages=tuple(passages), set=set, group=asked.id
    )


def _passage(text: Text, label: int, kind: str) -> LabelledPassage:
    return LabelledPassage(title=text[0], text=text[1], label=label, kind=kind)


def read_sets(data: Path) -> dict[str, list[Pool]]:
    """Return the pools of each set."""
    pretrain, scifact = data / "pretrain", data / "scifact"
    held_out = [one for one in read_questions(pretrain) if is_held_out(one.id)]
    read = {
        "BioASQ": read_bioasq(held_out, 3, 12),
        "BioASQ, of six": read_bioasq(held_out, 1, 5),
        "MedQuAD": read_medquad(pretrain),
        "SciFact": read_scifact(scifact),
        "libraries": read_libraries(answered=True),
        "nothing answers": read_libraries(answered=False),
    }
    return {
        name: [build_pool(name, one, Random(place)) for place, one in enumerate(asked)]
        for name, asked in read.items()
    }


def count(scored: Sequence[ScoredPool], threshold: float) -> str:
    """Return recall @ precision of what a threshold keeps, and pools with a look-alike in it."""
    found = compute_threshold_metrics(scored, threshold)
    recall, precision = found["recall"].mean, found["precision"].mean
    share = "-" if isnan(recall) else f"{100 * recall:.0f} @ {100 * precision:.0f}"
    wrong = [one.scores[np.array(one.pool.labels) == 0] for one in scored]
    return f"{share}; {100 * fmean(bool((its >= threshold).any()) for its in wrong):.0f}"


def count_said(scored: Sequence[ScoredPool], threshold: float) -> str:
    """Return how many per cent of null results, and of other evidence, a threshold keeps."""
    taken: dict[bool, list[bool]] = {True: [], False: []}
    for one in scored:
        for passage, score in zip(one.pool.passages, one.scores, strict=True):
            if passage.label:
                taken[passage.kind == NULL].append(score >= threshold)
    return " / ".join(f"{100 * fmean(taken[is_null]):.0f}" for is_null in (True, False))


def measure(name: str, folder: Path | None, sets: Mapping[str, Sequence[Pool]]) -> Iterator[str]:
    """Yield the lines of a table of what the judge of a folder makes of each set."""
    judge = build_model_scorer(EvidenceModel.load(folder))
    weights = Weights(folder=None if folder is None else str(folder))
    kept, band = weights.operating_point(), weights.evidence_point() or 1
    yield f"\n{name}: kept from {kept}, first band from {band}\n"
    yield "| set | questions | MAP | kept; mistaken | first band; mistaken | null / other of each |"
    yield "|---|---:|---:|---|---|---|"
    for set, pools in sets.items():
        scored = list(score_pools(pools, judge))
        ranked = [one for one in scored if sum(one.pool.labels)]
        order = f"{100 * mean_average_precision(ranked):.1f}" if ranked else "-"
        is_told = any(its.kind for one in scored for its in one.pool.passages)
        said = [count_said(scored, one) for one in (kept, band)] if is_told else ["-"]
        cells = [set, len(scored), order, *(count(scored, one) for one in (kept, band))]
        yield f"| {' | '.join(map(str, cells))} | {', '.join(said)} |"


def main() -> None:
    """Measure, and print a table a judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with pretrain/ and scifact/")
    parser.add_argument("--weights", type=Path, action="append", default=[], help="may be repeated")
    chosen = parser.parse_args()
    sets = read_sets(chosen.data)
    judges = {"these weights": None, **{str(folder): folder for folder in chosen.weights}}
    for name, folder in judges.items():
        for line in measure(name, folder, sets):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
