"""Pairs as the numbers that a model of the BERT family reads."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepera_graph.backends.encoder.packages import foreign, needed
from deepera_graph.backends.encoder.pairs import Pair
from deepera_graph.errors import InputError, SettingsError

USUAL_MAX_TOKENS = 512
_PADS = ("[PAD]", "<pad>", "<|padding|>")
_NO_LIMIT = 1_000_000  # tokenizers that have no limit name one above it


@dataclass(frozen=True, slots=True)
class Tokens:
    """One pair.

    Attributes:
        ids: Token ids, shape (n_tokens,).
        types: 0 for the question, 1 for the passage, where the tokenizer tells, shape (n_tokens,).
        n_cut: Tokens of the passage that were left out, >= 0.
    """

    ids: Sequence[int]
    types: Sequence[int]
    n_cut: int


class PairTokenizer:
    """Cuts pairs into tokens; of one that is too long, the end of the passage is left out.

    Truncation and padding that the file sets are put aside.

    Args:
        path: A ``tokenizer.json``; what stands in ``config.json`` and ``tokenizer_config.json``
            beside it counts too.
        max_tokens: Most tokens of a pair, special ones included; by default what the files say,
            and no more than 512.

    Raises:
        SettingsError: A file cannot be read, or *max_tokens* is more than the model takes.
    """

    def __init__(self, path: Path, *, max_tokens: int | None = None) -> None:
        package = needed("tokenizers", extra="onnx")
        self._tokenizer = foreign(
            f"{path} is no tokenizer", lambda: package.Tokenizer.from_file(str(path))
        )
        about = [_json(path.with_name(one)) for one in ("tokenizer_config.json", "config.json")]
        self.pad = self._find_pad(about[1])
        self.max_tokens = self._find_max_tokens(max_tokens, about)
        self._n_special = self._tokenizer.num_special_tokens_to_add(True)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, pair: Pair) -> Tokens:
        """Cut one pair into tokens.

        Raises:
            InputError: The question alone leaves no room for a passage.
        """
        whole = self._tokenizer.encode(*pair)
        n_over = len(whole.ids) - self.max_tokens
        if n_over <= 0:
            return Tokens(whole.ids, whole.type_ids, 0)
        n_passage = sum(part == 1 for part in whole.sequence_ids)
        if n_over >= n_passage:
            raise InputError(
                f"the question takes {len(whole.ids) - n_passage} of {self.max_tokens} tokens and "
                "leaves no room for a passage"
            )
        kept = _without_end_of_passage(whole.sequence_ids, n_passage - n_over)
        return Tokens(
            [whole.ids[place] for place in kept], [whole.type_ids[place] for place in kept], n_over
        )

    def arrays(self, batch: Sequence[Tokens]) -> dict[str, NDArray[np.int64]]:
        """Return the inputs of a model by name, each of shape (n_pairs, n_tokens of the longest).

        Shorter pairs are padded at the end.
        """
        shape = len(batch), max(len(one.ids) for one in batch)
        ids = np.full(shape, self.pad, dtype=np.int64)
        types, mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        for row, one in enumerate(batch):
            n = len(one.ids)
            ids[row, :n], types[row, :n], mask[row, :n] = one.ids, one.types, 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}

    def _find_pad(self, config: Mapping[str, Any]) -> int:
        padding = self._tokenizer.padding
        if padding is not None:
            return int(padding["pad_id"])
        found = (self._tokenizer.token_to_id(one) for one in _PADS)
        known = next((id for id in found if id is not None), None)
        return int(config.get("pad_token_id") or 0) if known is None else int(known)

    def _find_max_tokens(self, asked: int | None, about: Sequence[Mapping[str, Any]]) -> int:
        limits = list(_limits(*about))
        if asked is None:
            truncation = self._tokenizer.truncation
            set_by_file = [int(truncation["max_length"])] if truncation else []
            return min(USUAL_MAX_TOKENS, *limits, *set_by_file, _NO_LIMIT)
        most = min(limits, default=_NO_LIMIT)
        if asked > most:
            raise SettingsError(f"max_tokens must be at most {most} for this model, got {asked}")
        return asked


def _without_end_of_passage(parts: Sequence[int | None], n_kept: int) -> list[int]:
    """Return the places to keep: all but the passage's, and the first *n_kept* of these."""
    kept, n_passage = [], 0
    for place, part in enumerate(parts):
        n_passage += part == 1
        if part != 1 or n_passage <= n_kept:
            kept.append(place)
    return kept


def _limits(tokenizer: Mapping[str, Any], model: Mapping[str, Any]) -> Iterator[int]:
    for limit in (tokenizer.get("model_max_length"), model.get("max_position_embeddings")):
        if isinstance(limit, int | float) and 0 < limit < _NO_LIMIT:
            yield int(limit)


def _json(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    plain = foreign(f"{path} is not JSON", lambda: json.loads(path.read_text(encoding="utf-8")))
    return plain if isinstance(plain, dict) else {}
