"""Words and patterns that tell a stated result from aims, methods, background and speculation.

The word lists are in ``lexicon.toml``: general English of science, drawn up by hand.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from deepera_graph.text.words import stem

_LISTS = tomllib.loads(files(__package__).joinpath("lexicon.toml").read_text(encoding="utf-8"))
CUE_WORDS: Mapping[str, str] = _LISTS["cues"]
TOPICS: Mapping[str, str] = _LISTS["topics"]
UNKNOWN_TOPIC = "science"
SHORT = 4
CUE_NAMES = (*CUE_WORDS, "statistic", "percentage", "figure", "intention", "passive", "active")

# Alternatives begin with a letter and look back from there for the beginning of the word: a search
# skips all other letters then, and is several times as fast as with `\b` first.
_P_VALUE = r"\s?(?:[-‐]?values?)?\s?(?:[<>=≤≥]|&lt;|&gt;)"
_PLANNED = (
    r"(?i:o (?:investigate|examine|evaluate|assess|determine|explore|test|compare|describe|identify"
    r"|clarify|study|establish|analy[sz]e|ascertain|verify|report|review|estimate|measure|find)\b)"
)
_WANTED = r"(?i:e (?:hypothesi[sz]ed?|aim|sought|wanted)\b)"
_STATISTIC = re.compile(
    rf"p(?<!\wp){_P_VALUE}|P(?<!\wP){_P_VALUE}"
    r"|C(?<!\wC)I\b|O(?<!\wO)R\b|R(?<!\wR)R\b|H(?<!\wH)R\b|S(?<!\wS)(?:D|EM)\b|a(?<!\wa)OR\b"
    r"|I(?<!\wI)QR\b|A(?<!\wA)UC\b|B(?<!\wB)LEU\b|F(?<!\wF)1\b"
    r"|o(?<!\wo)dds ratio|h(?<!\wh)azard ratio|r(?<!\wr)(?:elative risk|\s?=\s?-?\.?\d)"
    r"|±|\+/-|v(?<!\wv)(?:ersus\b|s?\b\.?)"
)
_PERCENTAGE = re.compile(r"\d\s?(?:%|percent|per cent)")
_FIGURE = re.compile(r"\d+(?:[.,·]\d+)*")
_INTENTION = re.compile(
    rf"t(?<!\wt){_PLANNED}|T(?<!\wT){_PLANNED}|w(?<!\ww){_WANTED}|W(?<!\wW){_WANTED}|\?"
)
_PASSIVE = re.compile(r"\b(?:was|were|been|be|being|are|is) (?:\w+ly |then |also )?\w{2,}ed\b")
_ACTIVE = re.compile(
    r"\b[Ww]e (?:\w+ly |then |also )?(?!show|f[io]u?nd|observ|demonstrat|detect|conclu|identif"
    r"|reveal|confirm|infer|report|saw|see)\w+"
)
PATTERNS = (_STATISTIC, _PERCENTAGE, _FIGURE, _INTENTION, _PASSIVE, _ACTIVE)
_WORD_SETS = {name: frozenset(text.split()) for name, text in CUE_WORDS.items()}


def words_of_cue(name: str) -> frozenset[str]:
    """Return the word forms of a cue."""
    return _WORD_SETS[name]


def count_cues(text: str, words: Iterable[str]) -> list[int]:
    """Count each cue of `CUE_NAMES` in one sentence; *words* are its words in lower case."""
    counts = [0] * len(CUE_WORDS)
    for word in words:
        for place in _PLACES.get(word, ()):
            counts[place] += 1
    counts.extend(len(pattern.findall(text)) for pattern in PATTERNS)
    return counts


def _places() -> dict[str, tuple[int, ...]]:
    places: dict[str, tuple[int, ...]] = {}
    for place, forms in enumerate(_WORD_SETS.values()):
        for word in forms:
            places[word] = (*places.get(word, ()), place)
    return places


_PLACES = _places()

_STEMS = frozenset(stem(word) for word in _LISTS["general"].split())


def is_general(word: str) -> bool:
    """Whether a word is a number or common in questions of any science."""
    return word[0].isdigit() or stem(word) in _STEMS


_RULES = tuple(
    (re.compile(pattern, re.IGNORECASE), weight)
    for pattern, weight in (
        (r"result|finding|outcomes?$", 0.5),
        (r"conclu|discussion|abstract$|summary", 0.0),
        (r"method|material|design|procedure|participants|statistical|setting|protocol", -1.5),
        (r"background|introduction|objective|\baims?\b|purpose|related work|rationale", -1.5),
        (r"reference|acknowledg|competing|contribution|abbreviation|funding|supporting", -3.0),
    )
)


def section_weight(section: str) -> float:
    """Log odds, set by hand, that a section label adds to evidence; 0 for one that says nothing."""
    last = section.rsplit(".", maxsplit=1)[-1]
    return next((weight for pattern, weight in _RULES if pattern.search(last)), 0.0)


def same_meaning(key: str) -> str:
    """Return the stem that stands for all stems of a meaning; other stems stand for themselves."""
    return _HEADS.get(key, key)


def _heads() -> Mapping[str, str]:
    heads: dict[str, str] = {}
    for group in _LISTS["meanings"].strip().splitlines():
        names = group.split()
        heads.update((stem(name), stem(names[0])) for name in names)
    return heads


_HEADS = _heads()


def find_topic(words: Sequence[str]) -> str:
    """Name the science that most words of a question point to, the first listed of equals.

    A listed word of up to four letters stands for itself and its plural, a longer one for every
    word that begins like it, one after a hyphen for every word that ends like it.
    """
    points = {topic: sum(map(_test(topic), words)) for topic in TOPICS}
    best = max(points, key=points.__getitem__)
    return best if points[best] else UNKNOWN_TOPIC


@cache
def _test(topic: str) -> Callable[[str], bool]:
    listed = TOPICS[topic].split()
    whole = {form for word in listed if len(word) <= SHORT for form in (word, word + "s")}
    beginnings = tuple(word for word in listed if len(word) > SHORT and word[0] != "-")
    endings = tuple(word[1:] for word in listed if word[0] == "-")
    return lambda word: word in whole or word.startswith(beginnings) or word.endswith(endings)
