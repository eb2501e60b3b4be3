"""Trains the reader: a small BERT that reads question and passage together, written as ONNX.

The weights begin as the encoder's base. Each step reads some groups of passages whole: evidence is
told apart by itself (cross-entropy of a probability), and within its group (of a softmax, which
ranks); a direction and the sentences that answer are learned beside it where they are labelled.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.judges.cross_encoder.onnx import quantize, silence
from deepera_graph.judges.trained.model import opened
from deepera_graph.judges.trained.reading.encoder import Encoder, count_pieces
from deepera_graph.judges.trained.reading.reader import (
    MAX_QUESTION,
    MAX_TOKENS,
    Reader,
)
from deepera_graph.lab.training.fitting.network import (
    build_network,
    take_weights,
    trace_network,
)
from deepera_graph.lab.training.fitting.steps import (
    PAIRS_A_STEP,
    Schedule,
    plan_steps,
    take_steps,
)
from deepera_graph.lab.training.lessons.groups import Group, Lesson
from deepera_graph.lab.training.weights import BASE_MODULE, Log, import_package, log_nothing

WEIGHT_OF_ORDER, WEIGHT_OF_DIRECTION, WEIGHT_OF_SENTENCES = 0.35, 0.4, 0.3
RATE, FURTHER_RATE = 8e-5, 3e-5  # from the base, and from a reader
HEAD_RATE = 5  # times as fast as the body
_PARTS = 3  # of a step, each padded to its own longest pair
ReadPairs = Callable[[Sequence[tuple[str, str]]], list[float]]  # log odds of evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderPlan:
    """How the reader is trained."""

    start: Path | None = None  # a reader as ONNX to go on from; None: the base
    epochs: float = 2.2  # 0 teaches nothing: the reader at the start is kept as it is
    minutes: float = math.inf  # after which it ends, the learning rate having fallen by then
    seed: int = 0

    @property
    def rate(self) -> float:
        """The learning rate: gentle where a reader is taught further, lest it forget."""
        return RATE if self.start is None else FURTHER_RATE


class ReaderTraining:
    """A reader in training: `learn` from weak lessons first, then from labels; then `export`."""

    def __init__(self, plan: ReaderPlan, log: Log = log_nothing) -> None:
        self._torch = import_package("torch", "training the reader")
        self._plan, self._log = plan, log
        self._torch.manual_seed(plan.seed)
        self._chance = Random(plan.seed)
        source = Path(str(import_package(BASE_MODULE).__file__)).parent / "model"
        self._tokens = _open_tokenizer(source)
        self._network = build_network(self._torch, source)
        if plan.start is not None:
            take_weights(self._torch, self._network, plan.start)
        self._device = "cuda" if self._torch.cuda.is_available() else "cpu"
        self._network.to(self._device)

    def learn(
        self, groups: Sequence[Group], *, epochs: float, rate: float, in_order: bool = False
    ) -> None:
        """Fit to groups, shuffled unless *in_order*; an `InputError` if there is none."""
        if not groups:
            raise InputError("there is nothing for the reader to learn from")
        steps = plan_steps(groups, epochs, self._chance, in_order=in_order)
        how = Schedule(minutes=self._plan.minutes, log=self._log, name="reader")
        optimizer = _build_optimizer(self._torch, self._network, rate)
        take_steps(self._network, optimizer, steps, self._measure_loss, how)

    def read(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the log odds of evidence of each question and passage."""
        lessons = [Lesson(question, text, 0) for question, text in pairs]
        found: list[float] = []
        with self._torch.no_grad():
            for start in range(0, len(lessons), PAIRS_A_STEP):
                scores, *_ = self._forward(lessons[start : start + PAIRS_A_STEP])
                found += scores[:, 0].tolist()
        return found

    def export(self, target: Path) -> None:
        """Write it as ONNX, its weights rounded to eight bits."""
        import_package("onnx", "exporting the reader")
        with TemporaryDirectory() as scratch, silence():
            whole = Path(scratch, "whole.onnx")
            trace_network(self._torch, self._network.to("cpu"), whole)
            quantize(whole, target)
            self._network.to(self._device)

    def _measure_loss(self, step: Sequence[Group]) -> Any:
        torch, functional = self._torch, self._torch.nn.functional
        lessons = [one for group in step for one in group]
        scores, tokens, offsets = self._forward(lessons)
        labels = torch.tensor([float(one.label) for one in lessons], device=self._device)
        loss = functional.binary_cross_entropy_with_logits(scores[:, 0], labels)
        orders, start = [], 0
        for group in step:
            its = slice(start, start + len(group))
            start += len(group)
            if 0 < labels[its].sum() < len(group):
                ranked = functional.log_softmax(scores[its, 0], 0)
                orders.append(-(ranked * labels[its]).sum() / labels[its].sum())
        if orders:
            loss = loss + WEIGHT_OF_ORDER * torch.stack(orders).mean()
        ways = functional.log_softmax(scores[:, 1:], 1)
        known = [
            -torch.logsumexp(ways[place, list(one.directions)], 0)
            for place, one in enumerate(lessons)
            if one.directions
        ]
        if known:
            loss = loss + WEIGHT_OF_DIRECTION * torch.stack(known).sum() / max(4, len(known))
        marked = [
            (tokens[place][first:last].mean(), float(label))
            for place, one in enumerate(lessons)
            for first, last, label in _find_marks(one, offsets[place])
        ]
        if marked:
            means = torch.stack([mean for mean, _ in marked])
            right = torch.tensor([label for _, label in marked], device=self._device)
            told = functional.binary_cross_entropy_with_logits(means, right)
            loss = loss + WEIGHT_OF_SENTENCES * told
        return loss

    def _forward(self, lessons: Sequence[Lesson]) -> tuple[Any, list[Any], list[Any]]:
        """Return scores, shape (n, 1 + N_DIRECTIONS), those of each passage's tokens, and offsets.

        As for `Reader`, a passage is read in pieces, the best of which counts.
        """
        torch = self._torch
        read = [self._tokens(one) for one in lessons]
        pieces = [piece for its in read for piece in its]
        order = sorted(range(len(pieces)), key=lambda place: len(pieces[place].ids))
        size = -(-len(order) // _PARTS)
        scores: list[Any] = [None] * len(pieces)
        tokens: list[Any] = [None] * len(pieces)
        with torch.autocast(self._device, torch.bfloat16):
            for start in range(0, len(order), size):
                places = order[start : start + size]
                padded = _pad(torch, [pieces[one] for one in places])
                found, of_tokens = self._network(*(one.to(self._device) for one in padded))
                for row, place in enumerate(places):
                    one = pieces[place]
                    scores[place] = found[row]
                    tokens[place] = of_tokens[row][one.first : one.first + len(one.offsets)]
        table = torch.stack(scores)
        evidence = table[:, 0].tolist()
        best, joined, start = [], [], 0
        for its in read:
            own = range(start, start + len(its))
            start += len(its)
            best.append(max(own, key=evidence.__getitem__))
            joined.append(torch.cat([tokens[place] for place in own]))
        offsets = [[place for piece in its for place in piece.offsets] for its in read]
        return table[best], joined, offsets


def open_reader(file: Path, encoder: tuple[Path, Path]) -> ReadPairs:
    """Return what reads pairs as the judge does: passages whole, in eight bits."""
    reader = opened(Reader(file, opened(Encoder(*encoder), encoder[0].parent)), file.parent)

    def read(pairs: Sequence[tuple[str, str]]) -> list[float]:
        found: list[float] = []
        for question, its in groupby(pairs, key=itemgetter(0)):
            found += [one.evidence for one in reader.read(question, [text for _, text in its])]
        return found

    return read


class _Piece(NamedTuple):
    ids: list[int]  # question and a piece of the passage, with their marks
    first: int  # place of the first token of the passage
    offsets: list[tuple[int, int]]  # of its tokens, in the passage


def _open_tokenizer(source: Path) -> Callable[[Lesson], list[_Piece]]:
    tokenizers = import_package("tokenizers")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(source / "tokenizer.json"))
    except Exception as error:  # the library raises kinds of its own
        raise SettingsError(f"{str(source)!r} holds no tokenizer that can be used") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def read(lesson: Lesson) -> list[_Piece]:
        asked = tokenizer.encode(lesson.question).ids
        found = tokenizer.encode(lesson.text)
        begin, inside, end = asked[:1], asked[1:-1][:MAX_QUESTION], asked[-1:]
        before = [*begin, *inside, *end]
        n_pieces = count_pieces(len(found.ids) - 2, MAX_TOKENS - 3 - len(inside))
        pieces = []
        for places in np.array_split(np.arange(1, len(found.ids) - 1), n_pieces):
            ids = [*before, *(found.ids[place] for place in places), *end]
            pieces.append(_Piece(ids, len(before), [found.offsets[place] for place in places]))
        return pieces

    return read


def _find_marks(lesson: Lesson, offsets: Sequence[Any]) -> list[tuple[int, int, int]]:
    """Return first and last token and label of each sentence that is marked and was read."""
    found = []
    for start, end, label in lesson.marks:
        inside = [place for place, one in enumerate(offsets) if start <= one[0] < one[1] <= end]
        if inside:
            found.append((inside[0], inside[-1] + 1, label))
    return found


def _pad(torch: Any, read: Sequence[_Piece]) -> tuple[Any, Any, Any]:
    longest = max(len(one.ids) for one in read)
    numbers = torch.zeros(3, len(read), longest, dtype=torch.long)
    for row, (ids, first, _) in enumerate(read):
        numbers[0, row, : len(ids)] = torch.tensor(ids)
        numbers[1, row, : len(ids)] = 1
        numbers[2, row, first : len(ids)] = 1
    return numbers[0], numbers[1], numbers[2]


def _build_optimizer(torch: Any, network: Any, rate: float) -> Any:
    named = [(name, one) for name, one in network.named_parameters() if one.requires_grad]
    body = [one for name, one in named if name.startswith("model.")]
    head = [one for name, one in named if not name.startswith("model.")]
    groups = [{"params": body, "lr": rate}, {"params": head, "lr": HEAD_RATE * rate}]
    return torch.optim.AdamW(groups, weight_decay=0.01)
