"""Pairs as tokens."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.judges.cross_encoder.pairs import Pair
from deepera_graph.packages import call_foreign, import_extra

_USUAL_MAX_TOKENS = 512
_NO_LIMIT = 1_000_000  # tokenizers that have no limit name one above it
_PADS = ("[PAD]", "<pad>", "<|padding|>")


class Tokens(NamedTuple):
    """One pair: ids, and 0 for the question, 1 for the passage, where the tokenizer tells."""

    ids: Sequence[int]
    types: Sequence[int]
    n_cut: int = 0  # tokens of the passage that were left out
    n_cut_question: int = 0


class PairTokenizer:
    """Cuts pairs into tokens; of one that is too long, the end of its longer part is left out.

    Where that is as long as the other one both are cut, as sentence-transformers and the tokenizers
    of Hugging Face do it by default, so that a model reads here what it was trained on.
    Truncation and padding that a ``tokenizer.json`` sets are put aside; what stands in
    ``config.json`` and ``tokenizer_config.json`` beside it counts too.
    """

    def __init__(self, path: Path, *, max_tokens: int | None = None) -> None:
        package = import_extra("tokenizers")
        self._tokenizer = call_foreign(
            f"{path} is no tokenizer", lambda: package.Tokenizer.from_file(str(path))
        )
        own, model = (_read_json(path, one) for one in ("tokenizer_config.json", "config.json"))
        self._pad = self._find_pad(model)
        limits = (own.get("model_max_length"), model.get("max_position_embeddings"))
        self.max_tokens = self._find_max_tokens(max_tokens, limits)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, pair: Pair) -> Tokens:
        """Cut one pair into tokens; an `InputError` if there is no room for both parts."""
        whole = self._tokenizer.encode(*pair)
        n_over = len(whole.ids) - self.max_tokens
        if n_over <= 0:
            return Tokens(whole.ids, whole.type_ids)
        question, passage = (
            [place for place, one in enumerate(whole.sequence_ids) if one == part]
            for part in (0, 1)
        )
        n_asked, n_read = _share(len(question) + len(passage) - n_over, question, passage)
        if n_asked < 1:
            raise InputError(
                f"max_tokens leaves no room for a question and a passage, got {self.max_tokens}"
            )
        left_out = {*question[n_asked:], *passage[n_read:]}
        kept = [place for place in range(len(whole.ids)) if place not in left_out]
        ids, types = ([row[place] for place in kept] for row in (whole.ids, whole.type_ids))
        return Tokens(ids, types, len(passage) - n_read, len(question) - n_asked)

    def arrays(self, batch: Sequence[Tokens]) -> dict[str, NDArray[np.int64]]:
        """Return the inputs of a model by name, padded at the end, shape (n_pairs, n_longest)."""
        shape = len(batch), max(len(one.ids) for one in batch)
        ids = np.full(shape, self._pad, dtype=np.int64)
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

    def _find_max_tokens(self, asked: int | None, given: Iterable[object]) -> int:
        limits = [int(one) for one in given if isinstance(one, int | float) and 0 < one < _NO_LIMIT]
        if asked is None:
            truncation = self._tokenizer.truncation
            set_by_file = [int(truncation["max_length"])] if truncation else []
            return min(_USUAL_MAX_TOKENS, *limits, *set_by_file, _NO_LIMIT)
        most = min(limits, default=_NO_LIMIT)
        if asked > most:
            raise SettingsError(f"max_tokens must be at most {most} for this model, got {asked}")
        return asked


def _share(n_room: int, question: Sequence[int], passage: Sequence[int]) -> tuple[int, int]:
    """Return how many tokens of question and passage are kept where both together are too many."""
    shorter = min(len(question), len(passage))
    few = shorter if 2 * shorter <= n_room else n_room // 2
    return (few, n_room - few) if len(question) <= len(passage) else (n_room - few, few)


def _read_json(beside: Path, name: str) -> Mapping[str, Any]:
    path = beside.with_name(name)
    if not path.is_file():
        return {}
    plain = call_foreign(f"{path} is not JSON", lambda: json.loads(path.read_text("utf-8")))
    return plain if isinstance(plain, dict) else {}
