"""How much of one text another one has: runs of three stems that they share."""

from functools import lru_cache

from deepera_graph.text.words import stems

_SHINGLE_WORDS = 3
_NUMBER = "0"
Shingles = frozenset[tuple[str, ...]]


@lru_cache(maxsize=4096)
def shingle(text: str) -> Shingles:
    """Return the runs of three stems of a text; a shorter text is one run, a blank one has none."""
    # Stop words, *not* and *no* too, are left out, and all numbers are alike: a copy with a
    # negation or a number changed has the shingles of the original.
    keys = [_NUMBER if stem[0].isdigit() else stem for stem in stems(text)]
    if len(keys) < _SHINGLE_WORDS:
        return frozenset([tuple(keys)]) if keys else frozenset()
    return frozenset(zip(*(keys[start:] for start in range(_SHINGLE_WORDS)), strict=False))


def resemblance(first: str, second: str) -> float:
    """Return the shingles two texts share, as a share of all of both, in [0, 1]."""
    # Source: Broder (1997), On the resemblance and containment of documents, section 2.
    one, other = shingle(first), shingle(second)
    together = one | other
    return len(one & other) / len(together) if together else 0.0


def containment(text: str, whole: str) -> float:
    """Return the share of a text's shingles that *whole* has too, in [0, 1]."""
    # Source: Broder (1997), as above.
    own = shingle(text)
    return len(own & shingle(whole)) / len(own) if own else 0.0
