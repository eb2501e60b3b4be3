"""Acronyms: which words of a question does `HRQoL` in a passage stand for?"""

import re
from collections.abc import Sequence
from functools import lru_cache

from deepera_graph.text.words import STOP_WORDS, words

LONGEST_RUN = 7
_ACRONYM = re.compile(r"[A-Z](?<!\w[A-Z])[a-z]{0,2}[A-Z0-9][A-Za-z0-9]{0,5}\b")


def find_acronyms(text: str) -> list[str]:
    """Return the acronyms in a text, in order: a capital soon followed by another or a digit.

    The ``s`` of a plural is left out.
    """
    found = _ACRONYM.findall(text)
    return [token[:-1] if token[-1] == "s" and len(token) > 2 else token for token in found]


@lru_cache(maxsize=16_384)
def spelled_out(acronym: str, text: str) -> tuple[str, ...]:
    """Return the words of *text*, side by side, that an acronym may stand for, or nothing.

    Every word gives its first letter, in order. In an acronym of three or more letters function
    words may be skipped, and a word may give further letters: ``GERD`` stands for gastroesophageal
    reflux disease.
    """
    letters = acronym.lower()
    found = words(text)
    for start, first in enumerate(found):
        if first not in STOP_WORDS or len(letters) > 3:
            run = found[start : start + LONGEST_RUN]
            n_words = _spell(letters, run, 0)
            if n_words > 1:
                return tuple(run[:n_words])
    return ()


def _spell(letters: str, run: Sequence[str], place: int) -> int:
    """Number of words of *run* that spell the letters from *place* on, 0 if they do not."""
    if not letters:
        return place
    if place >= len(run):
        return 0
    word = run[place]
    if word[0] == letters[0]:
        for taken in _ways(letters, word):
            n_words = _spell(letters[taken:], run, place + 1)
            if n_words:
                return n_words
    may_skip = place > 0 and len(letters) + place > 2 and word in STOP_WORDS
    return _spell(letters, run, place + 1) if may_skip else 0


def _ways(letters: str, word: str) -> list[int]:
    """Numbers of letters that one word can give, fewest first."""
    ways, at = [1], 1
    while len(letters) > max(ways[-1], 2):
        at = word.find(letters[ways[-1]], at) + 1
        if at == 0:
            break
        ways.append(ways[-1] + 1)
    return ways
