"""Tune the encoder: a question's tokens shall be near those of its evidence, not of near misses.

    python benchmarks/judge/tuning.py DATA --minutes 20 --runs 4 -o W

Question and passage are compared as the judge does it, by the mean cosine of the nearest token.
Each piece of evidence is told from a near miss of its question and from all passages of the other
questions of a step, while vectors are held near those of the base; the last two of four runs hold
those of whole passages more. W has the mean of the weights of all runs, and is what ``deepera-lab
judge train --encoder W`` takes. What is taught are pools of DATA, but for the sets of `LEFT_OUT`,
those of the files beside this one, hard triples, and snippets that experts marked. Questions that
the shipped reader was not taught are held out here, too. Printed is how well this alignment alone
orders 100 of them, before and after.

Source:
    Khattab and Zaharia (2020), ColBERT, section 3.3; there a sum over the tokens of a query.
    Wortsman et al. (2022), Model soups, section 2 (the mean of weights).
"""

import argparse
import math
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from deepera_graph.lab.training.fitting.network import load_body
from deepera_graph.lab.training.fitting.steps import Schedule, Step, plan_steps, take_steps
from deepera_graph.lab.training.lessons.groups import Group, Lesson, draw
from deepera_graph.lab.training.lessons.pools import Pool, hash_question, read_pools
from deepera_graph.lab.training.lessons.snippets import (
    SNIPPETS,
    is_held_out,
    read_pairs,
    read_questions,
)
from deepera_graph.lab.training.measure import mean_average_precision, score_pools
from deepera_graph.lab.training.train_reader import ReaderTrainingPlan
from deepera_graph.lab.training.weights import (
    BASE_MODULE,
    TOKENIZER,
    export_encoder,
    import_package,
    log_nothing,
)

HERE = Path(__file__).parent
OWN = ("topics", "plain", "nulls", "libraries")  # files beside this one
MORE = "more_libraries"  # which trees are not taught
# What an encoder knows of these, trees that are fitted to the same questions take for granted.
PUBMEDQA = ("base", "natural", "written", "control", "multi")
LEFT_OUT = frozenset((*PUBMEDQA, "evidence_inference", SNIPPETS))
LONGEST = 1100  # characters of a passage
N_MEASURED = 100  # questions held out
N_TRIPLES, N_SNIPPETS = 6_000, 4_000
RATE = 3e-5
SCALE = 30.0  # of mean cosines, before the softmax
NEAR_BASE = 0.5  # what the distance of tokens from the base counts beside the contrast
WHOLE_NEAR_BASE = (0.0, 0.0, 3.0, 3.0)  # that of whole passages, run by run
MAX_TOKENS, MAX_ASKED = 208, 64  # of a passage and of a question, marks included; the rest is cut
_OUTSIDE = -1e4
_WHAT = "tuning the encoder"


class _Read(NamedTuple):
    given: dict[str, Any]  # what the encoder is given
    vectors: Any  # shape (n_texts, n_tokens, n_dimensions)
    inside: Any  # which tokens are neither marks nor padding, shape (n_texts, n_tokens)


class EncoderTuning:
    """An encoder in training: `learn` in some runs, each from the base on, then `export`."""

    def __init__(self, minutes: float) -> None:
        self._torch = import_package("torch", _WHAT)
        self._minutes, self._whole = minutes, 0.0
        self._n_runs = 0
        self._sum: dict[str, Any] = {}
        self._source = Path(str(import_package(BASE_MODULE).__file__)).parent / "model"
        file = str(self._source / TOKENIZER)
        self._tokenizer = import_package("tokenizers").Tokenizer.from_file(file)
        self._tokenizer.enable_padding()
        self._device = "cuda" if self._torch.cuda.is_available() else "cpu"
        self._base, self._body = (load_body(self._source, _WHAT).to(self._device) for _ in range(2))

    def learn(self, groups: Sequence[Group], seed: int, whole: float) -> None:
        """Fit the base to groups, each with evidence, once or until the time is over.

        *whole* is what the distance of whole passages counts. The encoder is the mean of all runs.
        """
        self._whole = whole
        self._torch.manual_seed(seed)
        self._body.load_state_dict(self._base.state_dict())
        steps = plan_steps(groups, 1.0, Random(seed))
        weights = [one for one in self._body.parameters() if one.requires_grad]
        optimizer = self._torch.optim.AdamW(weights, lr=RATE, weight_decay=0.01)
        how = Schedule(minutes=self._minutes, log=log_nothing, name="encoder")
        take_steps(self._body, optimizer, steps, self._measure_loss, how)
        self._n_runs += 1
        for name, values in self._body.state_dict().items():
            self._sum[name] = self._sum.get(name, 0) + values
        self._body.load_state_dict({name: one / self._n_runs for name, one in self._sum.items()})

    def align(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the mean cosine of the question's tokens and the nearest of each text."""
        with self._torch.no_grad():
            cosines = self._compare(self._read([question], MAX_ASKED), self._read(texts))
        return [float(one) for one in cosines[0]]

    def export(self, out: Path) -> None:
        """Write encoder, tokenizer and checksums into a folder, as `export_encoder` does."""
        with TemporaryDirectory() as scratch:
            folder = Path(scratch)
            self._body.to("cpu").save_pretrained(folder)
            (folder / TOKENIZER).write_bytes((self._source / TOKENIZER).read_bytes())
            export_encoder(out, folder)
        self._body.to(self._device)

    def _measure_loss(self, step: Step) -> Any:
        """Return how badly evidence is told from the other passages of a step."""
        torch = self._torch
        lessons = [one for group in step for one in group]
        questions = list(dict.fromkeys(one.question for one in lessons))
        asked, read = self._read(questions, MAX_ASKED), self._read([one.text for one in lessons])
        cosines = self._compare(asked, read)
        rows = {question: place for place, question in enumerate(questions)}
        own = torch.tensor([rows[one.question] for one in lessons], device=self._device)
        is_evidence = torch.tensor([bool(one.label) for one in lessons], device=self._device)
        its = own[is_evidence]
        others = (own[None] == its[:, None]) & is_evidence[None]  # evidence of the same question
        itself = torch.nonzero(is_evidence)[:, 0]
        others[torch.arange(len(itself)), itself] = False
        logits = (SCALE * cosines[its]).masked_fill(others, _OUTSIDE)
        contrast = torch.nn.functional.cross_entropy(logits, itself)
        (moved, _), (its_moved, whole) = map(self._measure_distance, (asked, read))
        return contrast + NEAR_BASE * (moved + its_moved) + self._whole * whole

    def _compare(self, asked: _Read, read: _Read) -> Any:
        """Return the mean cosine of each question's tokens and the nearest, shape (n, n_texts)."""
        torch = self._torch
        units = (torch.nn.functional.normalize(one.vectors, dim=-1) for one in (asked, read))
        near = torch.einsum("qid,pjd->qpij", *units)
        nearest = near.masked_fill(~read.inside[None, :, None], -1.0).amax(-1)
        inside = asked.inside[:, None].to(nearest.dtype)
        return (nearest * inside).sum(-1) / inside.sum(-1).clamp(min=1)

    def _read(self, texts: Sequence[str], most: int = MAX_TOKENS) -> _Read:
        torch = self._torch
        self._tokenizer.enable_truncation(most)
        found = self._tokenizer.encode_batch(list(texts))
        ids, mask, marks = (
            torch.tensor(rows, device=self._device)
            for rows in (
                [one.ids for one in found],
                [one.attention_mask for one in found],
                [one.special_tokens_mask for one in found],
            )
        )
        given = {"input_ids": ids, "attention_mask": mask}
        with torch.autocast(self._device, torch.bfloat16):
            vectors = self._body(**given).last_hidden_state.float()
        return _Read(given, vectors, (mask * (1 - marks)).bool())

    def _measure_distance(self, read: _Read) -> tuple[Any, Any]:
        """Return how far tokens and whole texts are from the base's, as mean squares at length 1.

        That of a token is a share of the square of its base's length.
        """
        torch, mask = self._torch, read.given["attention_mask"]
        with torch.no_grad(), torch.autocast(self._device, torch.bfloat16):
            before = self._base(**read.given).last_hidden_state.float()
        moved = ((read.vectors - before) ** 2).sum(-1) / (before**2).sum(-1)
        now, was = (
            torch.nn.functional.normalize((one * mask.unsqueeze(-1)).sum(1), dim=-1)
            for one in (read.vectors, before)
        )
        return moved[mask.bool()].mean(), ((now - was) ** 2).sum(-1).mean()


def teach_pools(pools: Sequence[Pool], chance: Random) -> Iterator[Group]:
    """Yield up to three pieces of evidence of each pool, each beside a wrong passage."""
    for pool in pools:
        right, wrong = ([one for one in pool.passages if one.label == label] for label in (1, 0))
        for one in draw(right, 3, chance) if wrong else ():
            texts = one.read_text, chance.choice(wrong).read_text
            labelled = zip(texts, (1, 0), strict=True)
            yield tuple(Lesson(pool.question, text[:LONGEST], label) for text, label in labelled)


def read_public(folder: Path, unseen: Collection[str]) -> tuple[list[Group], list[Group]]:
    """Read triples whose wrong sentence shares as many words as the right one, and snippets.

    *unseen* are hashes of questions that are held out.
    """
    triples: list[Group] = [
        (Lesson(row["question"], row["positive"], 1), Lesson(row["question"], row["negative"], 0))
        for row in read_pairs(folder, "squad_sentences")
        if row["overlap_neg"] >= row["overlap_pos"]
    ]
    snippets: list[Group] = [
        (Lesson(asked.question, text[:LONGEST], 1),)
        for asked in read_questions(folder)
        if not (is_held_out(asked.id) or hash_question(asked.question) in unseen)
        for text in asked.golden
    ]
    return triples, snippets


def measure_alignment(
    pools: Sequence[Pool], align: Callable[[str, Sequence[str]], Sequence[float]]
) -> float:
    """Return the MAP@10, in [0, 100], of pools ordered by the alignment of tokens alone."""

    def score(pool: Pool) -> list[float]:
        cosines = align(pool.question, [one.read_text for one in pool.passages])
        return [(1 + one) / 2 for one in cosines]

    return 100 * mean_average_precision(list(score_pools(pools, score)))


def main() -> None:
    """Tune, write the encoder, and print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--minutes", type=float, default=math.inf, help="of each run")
    parser.add_argument("--runs", type=int, default=len(WHOLE_NEAR_BASE))
    parser.add_argument("--out", "-o", type=Path, required=True)
    chosen = parser.parse_args()
    data = chosen.data, *(HERE / f"{name}.jsonl" for name in OWN)
    plan = ReaderTrainingPlan(data=data, out=chosen.out, abstracts=(HERE / "abstracts.jsonl",))
    pools, held_out = plan.divide()
    taught = [one for one in pools if one.set not in LEFT_OUT]
    taught += read_pools([HERE / f"{MORE}.jsonl"])
    unseen = {hash_question(one.question) for one in (*pools, *held_out)}
    measured = draw([one for one in held_out if one.n_golden], N_MEASURED, Random(0))
    tuning = EncoderTuning(chosen.minutes)
    before = measure_alignment(measured, tuning.align)
    triples, snippets = read_public(chosen.data / "pretrain", unseen)
    for seed in range(chosen.runs):
        chance = Random(seed)
        public = *draw(triples, N_TRIPLES, chance), *draw(snippets, N_SNIPPETS, chance)
        whole = WHOLE_NEAR_BASE[seed % len(WHOLE_NEAR_BASE)]
        tuning.learn([*teach_pools(taught, chance), *public], seed, whole)
    tuning.export(chosen.out)
    reached = measure_alignment(measured, tuning.align)
    sys.stdout.write(f"MAP of {len(measured)} questions held out: {before:.1f}, {reached:.1f}\n")


if __name__ == "__main__":
    main()
