"""Tune the encoder: a question's tokens shall be near those of its evidence, not of near misses.

    python benchmarks/judge/tuning.py DATA -o W

Question and passage are compared as the judge does it, by the mean cosine of the nearest token.
Each piece of evidence is told from a near miss of its question and from all passages of the other
questions of a step, while vectors of tokens are held near those of the base. A matrix learns with
them to bring the mean of a text's tokens, or of a part of it, back to the base's: by such means
whole texts are compared as before. It is fitted once more to the encoders in eight bits.

What an encoder was taught, trees that are fitted to the same questions take for granted. So there
are two runs, each on one half of the groups. W has the mean of their weights and, for training,
both: ``deepera-lab judge train --encoder W`` reads a question by the one that was not taught it.

What is taught are pools of DATA, but for claims, those of the files beside this one, hard triples,
and snippets that experts marked. Questions that the shipped reader was not taught are held out
here, too. Printed is how well tokens alone order 100 of them, before and after, and how near means
are to the base's.

Source:
    Khattab and Zaharia (2020), ColBERT, section 3.3; there a sum over the tokens of a query.
    Wortsman et al. (2022), Model soups, section 2 (the mean of weights).
"""

import argparse
import json
import math
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import starmap
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from deepera_graph.judges.trained.reading.encoder import Encoder
from deepera_graph.judges.trained.reading.vectors import Floats, normalize
from deepera_graph.lab.training.fitting.features import assign_split
from deepera_graph.lab.training.fitting.network import load_body
from deepera_graph.lab.training.fitting.steps import Schedule, Step, plan_steps, take_steps
from deepera_graph.lab.training.lessons.groups import Group, Lesson, draw
from deepera_graph.lab.training.lessons.pools import Pool, hash_question, read_pools
from deepera_graph.lab.training.lessons.snippets import is_held_out, read_pairs, read_questions
from deepera_graph.lab.training.measure import mean_average_precision, score_pools
from deepera_graph.lab.training.train_reader import ReaderTrainingPlan
from deepera_graph.lab.training.weights import (
    BASE_MODULE,
    HALVES,
    TOKENIZER,
    export_encoder,
    find_encoder,
    import_package,
    log_nothing,
    write_projection,
    write_sums,
    write_text,
)
from deepera_graph.text.words import split_sentences

HERE = Path(__file__).parent
OWN = ("topics", "plain", "nulls", "libraries")  # files beside this one
MORE = "more_libraries"  # which trees are not taught
CLAIMS = "scifact_train"
LONGEST = 1100  # characters of a passage
N_MEASURED = 100  # questions held out
N_TRIPLES, N_SNIPPETS = 3_000, 2_500
RATE = 3e-5
SCALE = 30.0  # of mean cosines, before the softmax
NEAR_BASE = 0.5  # what the distance of tokens from the base counts beside the contrast
MEANS_NEAR_BASE = 6.0  # that of projected means of texts and parts
PROJECTION_RATE = 5e-4
N_PARTS, PART = 3, (12, 45)  # of each passage, by chance, and the fewest and most tokens of one
N_FITTED, SHRINKAGE = 2_400, 0.03  # questions, and the ridge beside the mean square of a dimension
N_SENTENCES = 6  # of each passage
MAX_TOKENS, MAX_ASKED = 208, 64  # of a passage and of a question, marks included; the rest is cut
_OUTSIDE = -1e4
_WHAT = "tuning the encoder"


class _Read(NamedTuple):
    given: dict[str, Any]  # what the encoder is given
    vectors: Any  # shape (n_texts, n_tokens, n_dimensions)
    inside: Any  # which tokens are neither marks nor padding, shape (n_texts, n_tokens)


class EncoderTuning:
    """An encoder in training: `learn` in some runs, each from the base on; `average`; `export`."""

    def __init__(self, minutes: float) -> None:
        self._torch = import_package("torch", _WHAT)
        self._minutes, self._chance = minutes, Random(0)
        self._learned: list[dict[str, Any]] = []
        self._source = Path(str(import_package(BASE_MODULE).__file__)).parent / "model"
        file = str(self._source / TOKENIZER)
        self._tokenizer = import_package("tokenizers").Tokenizer.from_file(file)
        self._tokenizer.enable_padding()
        self._device = "cuda" if self._torch.cuda.is_available() else "cpu"
        self._base, body = (load_body(self._source, _WHAT).to(self._device) for _ in range(2))
        size = body.config.hidden_size
        matrix = self._torch.nn.Linear(size, size, bias=False, device=self._device)
        self._matrix = self._torch.nn.init.eye_(matrix.weight)
        self._body = self._torch.nn.ModuleDict({"body": body, "matrix": matrix})
        self._begin = {name: one.clone() for name, one in self._body.state_dict().items()}

    def learn(self, groups: Sequence[Group], seed: int) -> None:
        """Fit the base to groups, each with evidence, once or until the time is over."""
        self._torch.manual_seed(seed)
        self._chance = Random(seed)
        self._body.load_state_dict(self._begin)
        steps = plan_steps(groups, 1.0, Random(seed))
        rates = {"body": (RATE, 0.01), "matrix": (PROJECTION_RATE, 0.0)}
        weights = [
            {
                "params": [one for one in self._body[name].parameters() if one.requires_grad],
                "lr": rate,
                "weight_decay": decay,
            }
            for name, (rate, decay) in rates.items()
        ]
        optimizer = self._torch.optim.AdamW(weights)
        how = Schedule(minutes=self._minutes, log=log_nothing, name="encoder")
        take_steps(self._body, optimizer, steps, self._measure_loss, how)
        self._learned.append({name: one.clone() for name, one in self._body.state_dict().items()})

    def average(self) -> None:
        """Take the mean of the weights of all runs."""
        runs = self._learned
        mean = {name: sum(one[name] for one in runs) / len(runs) for name in self._begin}
        self._body.load_state_dict(mean)

    def align(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the mean cosine of the question's tokens and the nearest of each text."""
        with self._torch.no_grad():
            cosines = self._compare(self._read([question], MAX_ASKED), self._read(texts))
        return [float(one) for one in cosines[0]]

    @property
    def projection(self) -> Floats:
        """The matrix that was learned, as `write_projection` takes it."""
        return np.asarray(self._matrix.detach().cpu().numpy().T, np.float32)

    def export(self, out: Path) -> None:
        """Write encoder, tokenizer and checksums into a folder, as `export_encoder` does."""
        with TemporaryDirectory() as scratch:
            folder = Path(scratch)
            self._body["body"].to("cpu").save_pretrained(folder)
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
        (token, mean), (its_token, its_mean) = starmap(
            self._measure_distance, ((asked, 0), (read, N_PARTS))
        )
        return contrast + NEAR_BASE * (token + its_token) + MEANS_NEAR_BASE * (mean + its_mean)

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
            vectors = self._body["body"](**given).last_hidden_state.float()
        return _Read(given, vectors, (mask * (1 - marks)).bool())

    def _measure_distance(self, read: _Read, n_parts: int) -> tuple[Any, Any]:
        """Return how far tokens and projected means are from the base's.

        The first is a share of the square of a token's length, the second a square at length 1, the
        mean over whole texts and *n_parts* of each, drawn by chance.
        """
        torch, mask = self._torch, read.given["attention_mask"]
        with torch.no_grad(), torch.autocast(self._device, torch.bfloat16):
            before = self._base(**read.given).last_hidden_state.float()
        moved = ((read.vectors - before) ** 2).sum(-1) / (before**2).sum(-1)
        drawn = torch.stack([mask, *(self._draw_parts(mask) for _ in range(n_parts))]).float()
        now, was = (torch.einsum("kpi,pid->kpd", drawn, one) for one in (read.vectors, before))
        units = (torch.nn.functional.normalize(one, dim=-1) for one in (now @ self._matrix.T, was))
        apart = torch.sub(*units)
        return moved[mask.bool()].mean(), (apart**2).sum(-1).mean()

    def _draw_parts(self, mask: Any) -> Any:
        """Return a part of each text, as long as a sentence, or all of it; shaped as *mask*."""
        part = self._torch.zeros_like(mask)
        for row, n_tokens in zip(part, mask.sum(1).tolist(), strict=True):
            n = min(n_tokens, self._chance.randint(*PART))
            start = self._chance.randint(0, n_tokens - n)
            row[start : start + n] = 1
        return part


def fit_projection(was: Floats, now: Floats, start: Floats) -> Floats:
    """Fit the matrix that brings means of tokens to what they were, by ridge, going on from one.

    Means are of shape (n, n_dimensions), both by an encoder in eight bits.
    """
    length = np.linalg.norm(was, axis=1, keepdims=True)
    given, left = now / length, (was - now @ start) / length
    square = given.T @ given
    ridge = SHRINKAGE * np.trace(square) / len(square)
    found = start + np.linalg.solve(square + ridge * np.eye(len(square)), given.T @ left)
    return np.asarray(found, np.float32)


def list_texts(pools: Sequence[Pool], chance: Random) -> list[str]:
    """Return the questions of up to `N_FITTED` pools, and one passage of each."""
    some = draw(pools, N_FITTED, chance)
    return [*(one.question for one in some), *(chance.choice(one.passages).text for one in some)]


def read_means(encoder: Encoder, texts: Sequence[str]) -> Floats:
    """Return the means of the tokens of texts and of their first sentences."""
    rows: list[Floats] = []
    for text, encoded in zip(texts, encoder.encode(texts), strict=True):
        places = [(one.start, one.end) for one in split_sentences(text)]
        spans = slice(None), *encoded.find_spans(places[:N_SENTENCES])
        rows += [encoded.vectors[span].mean(axis=0) for span in spans]
    return np.stack(rows)


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


def write_encoder(
    tuning: EncoderTuning, texts: Sequence[str], was: Floats, out: Path
) -> tuple[Encoder, Floats]:
    """Write an encoder with the matrix that brings its means of texts to those; return both."""
    tuning.export(out)
    tuned = Encoder(*find_encoder(out))
    projection = fit_projection(was, read_means(tuned, texts), tuning.projection)
    write_projection(find_encoder(out)[0], projection)
    write_sums(out)
    return tuned, projection


def main() -> None:
    """Tune, write the encoders, and print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--minutes", type=float, default=math.inf, help="of each run, at most")
    parser.add_argument("--out", "-o", type=Path, required=True)
    chosen = parser.parse_args()
    data = chosen.data, *(HERE / f"{name}.jsonl" for name in OWN)
    plan = ReaderTrainingPlan(data=data, out=chosen.out, abstracts=(HERE / "abstracts.jsonl",))
    pools, held_out = plan.divide()
    more = read_pools([HERE / f"{MORE}.jsonl"])
    unseen = {hash_question(one.question) for one in (*pools, *held_out)}
    measured = draw([one for one in held_out if one.n_golden], N_MEASURED, Random(0))
    tuning = EncoderTuning(chosen.minutes)
    before = measure_alignment(measured, tuning.align)
    triples, snippets = read_public(chosen.data / "pretrain", unseen)
    with TemporaryDirectory() as scratch:
        folders = [Path(scratch, name) for name in ("base", *HALVES)]
        export_encoder(folders[0])
        base = Encoder(*find_encoder(folders[0]))
        texts, held = (list_texts(some, Random(0)) for some in (pools, measured))
        was = read_means(base, texts)
        records = []
        for half, folder in enumerate(folders[1:]):
            own = [one for one in pools if one.set != CLAIMS and assign_split(one) % 2 == half]
            chance = Random(half)
            public = *draw(triples, N_TRIPLES, chance), *draw(snippets, N_SNIPPETS, chance)
            tuning.learn([*teach_pools([*own, *more], chance), *public], half)
            write_encoder(tuning, texts, was, folder)
            records.append(sorted({hash_question(one.question) for one in own}))
        tuning.average()
        reached = measure_alignment(measured, tuning.align)
        tuned, projection = write_encoder(tuning, texts, was, chosen.out)
        for name, folder, record in zip(HALVES, folders[1:], records, strict=True):
            shutil.copyfile(find_encoder(folder)[0], chosen.out / f"{name}.onnx")
            write_text(chosen.out, f"{name}.json", json.dumps({"questions": record}) + "\n")
        units = normalize(read_means(base, held)), normalize(read_means(tuned, held) @ projection)
    near = float(np.multiply(*units).sum(axis=1).mean())
    sys.stdout.write(f"MAP of {len(measured)} questions held out: {before:.1f}, {reached:.1f}\n")
    sys.stdout.write(f"mean cosine of their means and the base's: {near:.3f}\n")


if __name__ == "__main__":
    main()
