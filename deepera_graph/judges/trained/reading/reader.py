"""The reader: question and passage read together, as one text, by a small cross-encoder."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judges.trained.direction.model import DIRECTIONS
from deepera_graph.judges.trained.reading.encoder import Encoder, Ids, count_pieces, open_session
from deepera_graph.judges.trained.reading.vectors import Offsets
from deepera_graph.text.words import held, split_sentences

Doubles = NDArray[np.float64]
MAX_TOKENS = 256  # question, passage and three marks
MAX_QUESTION = 96  # tokens of a question that are read
N_DIRECTIONS = len(DIRECTIONS)


class Reading(NamedTuple):
    """What the reader finds in one passage."""

    evidence: float  # log odds that it is evidence, but for a scale that training finds
    directions: Doubles  # of each of `DIRECTIONS`, log odds but for a constant
    sentences: Doubles  # how likely each sentence answers, log odds; those of `split_sentences`


class _Piece(NamedTuple):
    evidence: float
    directions: Doubles
    tokens: Doubles  # log odds of each token of the piece, marks left out


class Reader:
    """Reads pairs of texts; in the threads of the encoder, whose tokens it shares.

    The ONNX model takes what the encoder's does, for one pair, and gives ``evidence``, shape (1,),
    ``direction``, shape (1, 4), and ``tokens``, shape (1, n_tokens). A passage too long to be read
    at once is read in pieces of equal length: the best one counts. What was found lately is held,
    for a question that is asked again.
    """

    def __init__(self, model: Path, encoder: Encoder) -> None:
        self._model, self._encoder = model, encoder
        self._find = held()(self._read_one)

    def open(self) -> None:
        """Read the file, which is otherwise done at first use."""
        _ = self._session

    def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        """Return what is found in each text, none of which is blank."""
        asked = tuple(self._encoder.tokenize(question)[0][1:-1][:MAX_QUESTION].tolist())
        sizes = [len(text) for text in texts]
        return self._encoder.run_each(sizes, lambda place: self._find(texts[place], asked))

    def _read_one(self, text: str, asked: tuple[int, ...]) -> Reading:
        ids, offsets = self._encoder.tokenize(text)
        inside, places = ids[1:-1], offsets[1:-1]
        n_pieces = count_pieces(len(inside), MAX_TOKENS - 3 - len(asked))
        before = np.array(asked, np.int64)
        pieces = [
            self._run(ids[:1], before, ids[-1:], piece)
            for piece in np.array_split(inside, n_pieces)
        ]
        best = max(pieces, key=lambda piece: piece.evidence)
        tokens = np.concatenate([piece.tokens for piece in pieces])
        return Reading(best.evidence, best.directions, _weigh_sentences(text, tokens, places))

    def _run(self, begin: Ids, asked: Ids, end: Ids, piece: Ids) -> _Piece:
        row = np.concatenate([begin, asked, end, piece, end])[None]
        first = len(asked) + 2
        types = np.zeros_like(row)
        types[0, first:] = 1
        given = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": types}
        evidence, direction, tokens = self._session.run(_OUTPUTS, given)
        return _Piece(
            float(evidence[0]),
            np.asarray(direction[0], np.float64),
            np.asarray(tokens[0][first:-1], np.float64),
        )

    @cached_property
    def _session(self) -> Any:
        return open_session(self._model)


_OUTPUTS = ("evidence", "direction", "tokens")


def _weigh_sentences(text: str, tokens: Doubles, places: Offsets) -> Doubles:
    """Return the mean of each sentence's tokens; of one without tokens, the lowest."""
    first, last = places.T
    means = []
    for one in split_sentences(text):
        inside = (first >= one.start) & (last <= one.end) & (last > first)
        means.append(tokens[inside].mean() if inside.any() else np.nan)
    found = np.array(means, np.float64)
    if np.isnan(found).all():
        return np.zeros(len(found))
    return np.where(np.isnan(found), np.nanmin(found), found)
