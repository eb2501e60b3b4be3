"""A sentence as a row of signs relative to the question."""

from collections.abc import Iterator, Sequence
from typing import Final

from deepera_graph.judges.trained.direction.question import Asked
from deepera_graph.judges.trained.direction.sentence import SignedWords


def relate_signs(asked: Asked, read: SignedWords) -> list[str]:
    """Return a sentence as signs relative to the question; other words are ``_``, once a row."""
    signs: list[str] = []
    for word, sign, one in zip(read.words, read.signs, read.stems, strict=True):
        new = (_relate_sign(asked, sign) if sign else "") or _name_word(asked, word, one)
        if not signs or new not in "_Q0AC" or signs[-1] != new:
            signs.append(new)
    return signs


def _name_word(asked: Asked, word: str, one: str) -> str:
    for name, known in (("A", asked.first), ("C", asked.second), ("Q", asked.stems)):
        if one and one in known:
            return name
    if word[0].isdigit():
        return "0"
    return word if word in _KEPT else "_"


_KEPT: Final = frozenset(
    [
        "in",
        "by",
        "for",
        "of",
        "to",
        "with",
        "after",
        "before",
        "and",
        "or",
        "did",
        "was",
        "were",
        "is",
        "are",
        "did",
        "does",
        "do",
        "difference",
        "group",
        "between",
        "as",
        "at",
        "all",
        "any",
        "most",
        "=",
        "<",
        ">",
        "%",
        ";",
    ]
)


def _relate_sign(asked: Asked, sign: str) -> str:
    """Return a sign relative to the way the question asks."""
    if sign in ("up", "down") and asked.kind in ("up", "down"):
        return "same" if sign == asked.kind else "opposite"
    if sign in ("good", "bad") and asked.kind in ("good", "bad"):
        return "SAME" if sign == asked.kind else "OPPOSITE"
    if sign == "null" and asked.kind == "null":
        return "SAME"
    if sign == "not" and asked.negated:
        return "also not"
    return sign


def find_grams(signs: Sequence[str], most: int) -> Iterator[str]:
    """Yield all runs of 1 to *most* signs that neither begin nor end with another word."""
    for size in range(1, most + 1):
        for start in range(len(signs) - size + 1):
            gram = signs[start : start + size]
            if gram[0] != "_" and gram[-1] != "_":
                yield " ".join(gram)
