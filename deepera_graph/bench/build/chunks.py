"""A text cut into chunks of whole sentences."""

import re
import sys
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from deepera_graph.errors import SettingsError
from deepera_graph.text.sentences import split_sentences

_TOKEN = re.compile(r"\w+|[^\w\s]")


def chunks(text: str, *, max_tokens: int = 200) -> list[str]:
    """Cut a text into slices of whole sentences: as few as the limit allows, of about one length.

    Every chunk is a verbatim slice of the text. A sentence longer than the limit stands alone. A
    blank text has none. Full chunks with a short one at the end would serve less well: a passage
    written for the same pool is told from such remnants by its length.

    Args:
        text: Any prose.
        max_tokens: Most tokens a chunk, see `n_tokens`; >= 1.

    Raises:
        SettingsError: *max_tokens* is below 1.

    Source:
        DeepEra, section 6.1: sentence-preserving chunks; the limit is not given there.
    """
    if max_tokens < 1:
        raise SettingsError(f"max_tokens must be >= 1, got {max_tokens}")
    sentences = split_sentences(text, longest=sys.maxsize)
    sizes = [n_tokens(one.text) for one in sentences]
    fewest = len(_filled(sizes, max_tokens))
    least = bisect_left(
        range(1, max_tokens), True, key=lambda limit: len(_filled(sizes, limit)) <= fewest
    )
    groups = _filled(sizes, least + 1)
    return [text[sentences[start].start : sentences[end - 1].end] for start, end in groups]


def _filled(sizes: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Return [start, end) of runs, each filled up to the limit before the next one begins."""
    starts: list[int] = []
    room = 0
    for place, size in enumerate(sizes):
        if size > room:
            starts.append(place)
            room = limit
        room -= size
    return list(pairwise([*starts, len(sizes)]))


def n_tokens(text: str) -> int:
    """Return the words and punctuation marks of a text; it needs no model's vocabulary."""
    return sum(1 for _ in _TOKEN.finditer(text))
