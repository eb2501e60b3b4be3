"""What gives a written text away: quantities that it repeats in another unit, and no running prose.

Prose is told by the order of its words, held against the same words shuffled. Common words stand
for themselves and all others for their endings, so that a few thousand words are enough.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from deepera_graph.demo import read_corpus
from deepera_graph.text.plain import read_lists
from deepera_graph.text.terms import write_numbers

WORDS = read_lists(__file__, "words.toml")
_UNITS: Final = {
    name: (kind, factor)
    for kind, units in WORDS["units"].items()
    for names, factor in units.items()
    for name in names.split()
}
_TEMPERATURES: Final = {"k": (1.0, -273.15), "c": (1.0, 0.0), "f": (5 / 9, -160 / 9)}  # to °C
_PARTS: Final = (  # shares in words, in percent
    (re.compile(r"\b(?:two[\s-]thirds|2/3)\b", re.IGNORECASE), "66.67 percent"),
    (re.compile(r"\b(?:(?:a|one|the|by)[\s-]third|1/3)\b", re.IGNORECASE), "33.33 percent"),
    (re.compile(r"\bthree[\s-]quarters\b", re.IGNORECASE), "75 percent"),
    (re.compile(r"\b(?:a|one)[\s-]quarter\b", re.IGNORECASE), "25 percent"),
    (re.compile(r"\b(?:a|one)[\s-]fifth\b", re.IGNORECASE), "20 percent"),
    (re.compile(r"\b(?:a|one)[\s-]tenth\b", re.IGNORECASE), "10 percent"),
    (re.compile(r"\b(?:by half|halved|half of|one half|half as)\b", re.IGNORECASE), "50 percent"),
    (re.compile(r"\b(?:doubled|doubling|twofold|two-fold|2-fold|twice as|twice the"
                r"|factor of (?:two|2))\b", re.IGNORECASE), "2 fold"),
    (re.compile(r"\b(?:tripled|threefold|three-fold|3-fold|factor of (?:three|3))\b",
                re.IGNORECASE), "3 fold"),
    (re.compile(r"\b(?:increas\w+|rose|grew|raised|higher) (?:of|by) 100\s*(?:%|per\s?cent)",
                re.IGNORECASE), "2 fold"),
)  # fmt: skip
_QUANTITY = re.compile(
    r"(?<![\w.])(?P<sign>[-−–]?)(?P<number>"
    r"(?<!\d,)[1-9]\d{0,2}(?:,\d{3})++(?:\.\d+)?(?!,?\d)"  # 1,200
    r"|(?<!\d,)\d{1,3},\d+(?![.,]?\d|-(?!fold\b)[^\W\d_])"  # 12,5, but not 2,4-D
    r"|\d+(?:\.\d+)?)"
    r"(?:\s?(?P<percent>%|per\s?cent\b)"
    r"|[\s-]?(?P<degree>°\s?[CF]\b|degrees? (?:Celsius|Fahrenheit)|K\b)"
    r"|(?P<gap>[\s-]?)(?P<unit>[A-Za-zµμ]+)(?P<rest>(?:\s?/\s?|\s+per\s+)[A-Za-zµμ]+\d?)?)?"
)
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with what rounding leaves open on either side, and its kind of unit."""

    value: float
    margin: float
    kind: str  # blank for a number without a known unit

    @property
    def is_bare(self) -> bool:
        """Whether it has no unit."""
        return not self.kind

    def equals(self, other: "Quantity") -> bool:
        """Return whether both may be the same amount, as far as they are rounded."""
        if self.kind != other.kind:
            return False
        return abs(self.value - other.value) <= max(self.margin, other.margin) * (1 + 1e-6)


@lru_cache(maxsize=4096)
def read_quantities(text: str) -> tuple[Quantity, ...]:
    """Return the quantities of a text, in order; numbers may be spelt out, up to 999."""
    return tuple(_read(found) for found in _QUANTITY.finditer(_write_numbers(text)))


def without_quantities(text: str) -> str:
    """Return a text without its quantities: what is said of them."""
    return _QUANTITY.sub(_leave_word, _write_numbers(text))


def _leave_word(found: re.Match[str]) -> str:
    """Return the word after a number that has no unit."""
    return found.group().removeprefix(found["number"]) if _read(found).is_bare else " "


def _write_numbers(text: str) -> str:
    for pattern, instead in _PARTS:
        text = pattern.sub(instead, text)
    return write_numbers(text)


def _read(found: re.Match[str]) -> Quantity:
    written = found["number"]
    digits = written.replace(",", "" if _THOUSANDS.fullmatch(written) else ".")
    value, margin = float(digits), 0.5 * 10.0 ** -len(digits.partition(".")[2])
    if found["sign"] in ("-", "−") and value:
        value = -value
    if found["percent"]:
        return Quantity(abs(value), margin, "share")
    if found["degree"]:
        written = found["degree"].rsplit(maxsplit=1)[-1]  # "K", "°C", "Celsius"
        scale, zero = _TEMPERATURES[written.strip("°").strip()[0].lower()]
        return Quantity(value * scale + zero, margin * scale, "temperature")
    kind, factor = _find_unit(found["unit"] or "")
    value = abs(value)
    if found["rest"] and kind:
        kind = f"{kind} {_read_rest(found['rest'])}"
    return Quantity(value * factor, margin * factor, kind)


def _find_unit(written: str) -> tuple[str, float]:
    name = written.replace("μ", "µ")
    if name in ("M", "mM", "µM", "nM"):
        return "concentration", {"M": 1.0, "mM": 1e-3, "µM": 1e-6, "nM": 1e-9}[name]
    if name in ("MPa", "MHz", "MJ"):
        return _UNITS[name.lower()]
    low = name.lower() if len(name) > 1 else name.replace("L", "l")
    found = _UNITS.get(low) or (_UNITS.get(low[:-1]) if len(low) > 3 and low[-1] == "s" else None)
    return found or ("", 1.0)


def _read_rest(written: str) -> str:
    """Return what a quantity is per; the unit stays as it is, by its shortest name."""
    name = re.sub(r"^(?:\s?/\s?|\s+per\s+)", "", written).lower().replace("μ", "µ")
    kind, factor = _find_unit(name)
    return f"per {factor:g} {kind}" if kind else f"per {name}"


_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_N_COMMON = 300  # words that stand for themselves
_N_ENDINGS = 80  # of two letters, for all others
_SHARES = (0.7, 0.25, 0.05)  # of the pair, of its second class alone, of any class
MOST_TEXTS = 2_000
_LEAST_WORDS = 12  # of a text; below this any order is as good
_N_SHUFFLES = 100
_OTHER = "-"


class ProseModel:
    """How likely a class of words is after another one, learnt from passages of a corpus."""

    # Source: Brown et al. (1992), Class-based n-gram models of natural language, section 3, with
    # classes by frequency and ending; the two are mixed as in Jelinek and Mercer (1980).

    def __init__(self, texts: Sequence[str]) -> None:
        words = Counter(word for text in texts for word in _read_words(text))
        ranked = sorted(words, key=lambda word: (-words[word], word))
        endings: Counter[str] = Counter()
        for word in ranked[_N_COMMON:]:
            endings[_ending(word)] += words[word]
        known = sorted(endings, key=lambda one: (-endings[one], one))[:_N_ENDINGS]
        names = dict.fromkeys([_OTHER, *ranked[:_N_COMMON], *known])
        self._classes = {name: place for place, name in enumerate(names)}
        self._log_likely = self._learn(texts)

    @classmethod
    def fit(cls, texts: Iterable[str]) -> Self:
        """Return a model of the first 2 000 texts, and of 122 abstracts that the package has."""
        # With the latter prose in English is known for what it is by a small corpus of one subject.
        common = (one.page_content for hard in (False, True) for one in read_corpus(hard=hard))
        return cls([*islice(texts, MOST_TEXTS), *common])

    def measure_order(self, text: str) -> float | None:
        """Return how much likelier a text is than its words in any order; None below 12 words."""
        # In standard deviations of 100 shuffles, over the square root of the number of words, with
        # which they grow: 0.5 to 1.5 for prose, and about 0 for words at random.
        words = _read_words(text)
        if len(words) < _LEAST_WORDS:
            return None
        classes = self._classify(words)
        rng = np.random.default_rng(0)
        orders = rng.permuted(np.tile(classes, (_N_SHUFFLES, 1)), axis=1)
        shuffled = self._log_likely[orders[:, :-1], orders[:, 1:]].mean(axis=1)
        spread = float(shuffled.std())
        own = float(self._log_likely[classes[:-1], classes[1:]].mean())
        gain = (own - float(shuffled.mean())) / spread if spread > 0 else 0.0
        return gain / math.sqrt(len(words))

    def _learn(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return log probabilities of the second class after the first; shape (n, n)."""
        n = len(self._classes)
        pairs = np.zeros((n, n))
        for text in texts:
            for first, second in pairwise(self._classify(_read_words(text))):
                pairs[first, second] += 1
        pair, single, any_ = _SHARES
        before = pairs.sum(axis=1, keepdims=True)
        alone = pairs.sum(axis=0) / max(1.0, pairs.sum())
        after: NDArray[np.float64] = pairs / np.maximum(before, 1)
        likely: NDArray[np.float64] = np.log(pair * after + single * alone + any_ / n)
        return likely

    def _classify(self, words: Sequence[str]) -> NDArray[np.intp]:
        known, other = self._classes, self._classes[_OTHER]
        return np.array(
            [known.get(word, known.get(_ending(word), other)) for word in words], np.intp
        )


def _read_words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _ending(word: str) -> str:
    return "-0" if word[0].isdigit() else f"-{word[-2:]}"
