"""A text cut into chunks of whole sentences."""

import re
import sys

from deepera_graph.errors import SettingsError
from deepera_graph.text.sentences import Sentence, split_sentences

_TOKEN = re.compile(r"\w+|[^\w\s]")


def chunks(text: str, *, max_tokens: int = 200) -> list[str]:
    """Cut a text into slices of whole sentences, as long as the limit allows.

    Every chunk is a verbatim slice of the text. A sentence longer than the limit stands alone. A
    blank text has none.

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
    groups: list[list[Sentence]] = []
    room = 0
    for sentence in split_sentences(text, longest=sys.maxsize):
        size = n_tokens(sentence.text)
        if size > room:
            groups.append([])
            room = max_tokens
        groups[-1].append(sentence)
        room -= size
    return [text[group[0].start : group[-1].end] for group in groups]


def n_tokens(text: str) -> int:
    """Return the words and punctuation marks of a text; it needs no model's vocabulary."""
    return sum(1 for _ in _TOKEN.finditer(text))
