"""What counts as a token: four characters, or what a real tokenizer makes of a text."""

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

CHARACTERS = "chars/4"
ENCODINGS = ("cl100k_base",)
_CHARACTERS_A_TOKEN = 4
Split = Callable[[str], Sequence[Hashable]]


def splitter(name: str) -> Split:
    """Return what cuts a text into tokens.

    ``chars/4`` needs nothing and is the same everywhere. An encoding of `tiktoken` is read from
    its cache (`TIKTOKEN_CACHE_DIR`) or downloaded by it.
    """
    if name == CHARACTERS:
        return quarters
    from tiktoken import get_encoding  # noqa: PLC0415 -- only where it was asked for

    encoding = get_encoding(name)
    return lru_cache(maxsize=64)(encoding.encode_ordinary)


def quarters(text: str) -> list[str]:
    """Cut a text into pieces of four characters."""
    step = _CHARACTERS_A_TOKEN
    return [text[start : start + step] for start in range(0, len(text), step)]


def shortened(text: str, n_tokens: int, split: Split) -> str:
    """Return the longest run of whole words from the start that is at most *n_tokens* long."""
    words = text.split(" ")
    while len(words) > 1 and len(split(" ".join(words))) > n_tokens:
        words.pop()
    return " ".join(words)


def as_long_as(text: str, n_tokens: int, split: Split) -> str:
    """Return the shortest run of whole words from the start that is at least *n_tokens* long."""
    words = text.split(" ")
    for n_words in range(1, len(words)):
        start = " ".join(words[:n_words])
        if len(split(start)) >= n_tokens:
            return start
    return text
