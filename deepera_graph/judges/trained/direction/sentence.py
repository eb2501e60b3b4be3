"""A sentence as words with their signs."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from deepera_graph.judges.trained.direction.signs import POLAR, sign_of
from deepera_graph.text.held import MOST_SENTENCES, held
from deepera_graph.text.words import STOP_WORDS, stem

_TOKEN: Final = re.compile(
    r"[A-Za-z]+n['’]t\b|[^\W\d_]+|\d+(?:[.,·]\d+)*|[<>=≤≥%;,:]|[.](?=\d)\d*|[-−–+±]"
)
_FINDING: Final = frozenset({"up", "down", "good", "bad", "null", "sig", "not", "link"})
_SCOPE = 5  # words after a negation
NEAR = 6  # words between a sign and what it is said of


@dataclass(frozen=True, eq=False)
class SignedWords:
    """A sentence as words in lower case, their signs, and their stems (empty for stop words)."""

    words: tuple[str, ...]
    signs: tuple[str, ...]
    stems: tuple[str, ...]

    @cached_property
    def known(self) -> frozenset[str]:
        """Which stems there are."""
        return frozenset(self.stems)

    @cached_property
    def near(self) -> Mapping[str, int]:
        """Sign of the nearest polar word, by stem; see `_near_signs`."""
        return _near_signs(self)

    @cached_property
    def parity(self) -> int:
        """Product of all signs, 0 without any; see `_parity`."""
        return _parity(self)

    @cached_property
    def finds(self) -> bool:
        """Whether it tells a finding."""
        return not _FINDING.isdisjoint(self.signs)


@held(MOST_SENTENCES)
def read_words(text: str) -> SignedWords:
    """Read a sentence, or a part of one."""
    found = tuple(word.lower().replace("’", "'") for word in _TOKEN.findall(text))
    return SignedWords(
        found,
        tuple(map(sign_of, found)),
        tuple(
            stem(word) if len(word) > 2 and word.isalpha() and word not in STOP_WORDS else ""
            for word in found
        ),
    )


def is_negated(signs: Sequence[str], place: int) -> bool:
    """Tell whether a negation stands shortly before a word, in the same clause."""
    for before in range(place - 1, max(-1, place - 1 - _SCOPE), -1):
        if signs[before] == "but":
            return False
        if signs[before] == "not":
            return True
    return False


def _near_signs(read: SignedWords) -> dict[str, int]:
    """Return the sign of the nearest polar word of each stem, turned by a negation."""
    polar = [
        (place, -POLAR[sign] if is_negated(read.signs, place) else POLAR[sign])
        for place, sign in enumerate(read.signs)
        if sign in POLAR
    ]
    near: dict[str, tuple[int, int]] = {}
    for place, one in enumerate(read.stems):
        if not one or read.signs[place]:
            continue
        for where, sign in polar:
            far = abs(where - place)
            if far <= NEAR and (one not in near or far < near[one][0]):
                near[one] = (far, sign)
    return {one: sign for one, (_, sign) in near.items()}


def _parity(read: SignedWords) -> int:
    signs = [POLAR[sign] for sign in read.signs if sign in POLAR]
    return math.prod(signs) * (-1) ** read.signs.count("not") if signs else 0
