"""How far a passage is about what a question names; and the word lists of all rules."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from deepera_graph.text.words import (
    GENERAL_STEMS,
    STOP_WORDS,
    content_words,
    is_general,
    rarity,
    stem,
    stems,
    words,
)

WORD_LISTS: Mapping[str, Any] = tomllib.loads(
    files(__package__).joinpath("lexicon.toml").read_text(encoding="utf-8")
)
CUE_WORDS: Mapping[str, str] = WORD_LISTS["cues"]
TOPICS: Mapping[str, str] = WORD_LISTS["topics"]
VERBS = frozenset(WORD_LISTS["names"]["verbs"].split())
UNKNOWN_TOPIC = "natural sciences"
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
CUE_FORMS = {name: frozenset(text.split()) for name, text in CUE_WORDS.items()}
STATING = CUE_FORMS["direction"] | CUE_FORMS["relation"] | CUE_FORMS["mechanism"]


def count_cues(text: str, words: Iterable[str]) -> list[int]:
    """Count each cue of `CUE_NAMES` in one sentence; *words* are its words in lower case."""
    counts = [0] * len(CUE_WORDS)
    for word in words:
        for place in _PLACES.get(word, ()):
            counts[place] += 1
    counts.extend(len(pattern.findall(text)) for pattern in PATTERNS)
    return counts


def count_plans(text: str) -> dict[str, int]:
    """Count each cue of `CUE_NAMES` in a sentence, but not where it only stands beside a result."""
    left = _BESIDE_RESULTS.sub(" ", text)
    return dict(zip(CUE_NAMES, count_cues(left, words(left)), strict=True))


NO_RESULT = re.compile(WORD_LISTS["no_result"], re.IGNORECASE | re.VERBOSE)
_BESIDE_RESULTS = re.compile(WORD_LISTS["beside_results"], re.IGNORECASE | re.VERBOSE)
_PLACES: dict[str, list[int]] = defaultdict(list)  # of the cues of a word
for _place, _forms in enumerate(CUE_FORMS.values()):
    for _form in _forms:
        _PLACES[_form].append(_place)


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


_HEADS = {
    stem(name): stem(group.split()[0])
    for group in WORD_LISTS["meanings"].strip().splitlines()
    for name in group.split()
}
_GENERAL = frozenset(map(same_meaning, GENERAL_STEMS))  # as terms


def find_topic(words: Sequence[str]) -> str:
    """Name the domain that the words of a question point to, the first listed of equals."""
    # A listed word gives its rarity, shared by the domains that list it, and two side by side that
    # are listed together give two points. Without any point it is `UNKNOWN_TOPIC`.
    given = [(_find_listed(word), rarity(stem(word))) for word in words]
    for word, other in pairwise(words):
        in_pair = word in _FIRST_OF_PAIRS  # else a pair is listed as what its first word begins
        listed = _find_listed(f"{word}-{other}") if in_pair else _find_beginning(word)
        given.append((listed, 2))
    points = dict.fromkeys(TOPICS, 0.0)
    for topics, n_points in given:
        for topic in topics:
            points[topic] += n_points / len(topics)
    best = max(points, key=points.__getitem__)
    return best if points[best] else UNKNOWN_TOPIC


def is_listed(word: str) -> bool:
    """Whether a word tells a domain."""
    return bool(_find_listed(word))


@lru_cache(maxsize=65_536)
def _find_listed(word: str) -> Sequence[str]:
    """Return the domains of the longest listed word that stands for this one."""
    whole = word[:-1] if word.endswith("s") and len(word) <= SHORT + 1 else word
    first = max(1, len(word) - _LONGEST + 1)  # none longer is listed
    endings = () if "-" in word else (f"-{word[at:]}" for at in range(first, len(word) - 1))
    return _LISTED.get(word) or _LISTED.get(whole) or _find_beginning(word) or _look_up(endings)


@lru_cache(maxsize=65_536)
def _find_beginning(word: str) -> Sequence[str]:
    return _look_up(word[:end] for end in range(min(len(word), _LONGEST), SHORT, -1))


def _look_up(forms: Iterable[str]) -> Sequence[str]:
    return next((_LISTED[form] for form in forms if form in _LISTED), ())


_LISTED: dict[str, list[str]] = {}
for _topic, _text in TOPICS.items():
    for _word in _text.split():
        _LISTED.setdefault(_word, []).append(_topic)
_LONGEST = max(map(len, _LISTED))
_FIRST_OF_PAIRS = frozenset(word.rpartition("-")[0] for word in _LISTED)


MAX_RUN = 7
ENTITY_WEIGHT = 0.5
GENERAL_WEIGHT = 0.3
TITLE_COUNT = 0.5
LIKENESS = 0.5
BEGINNING = 6
LEAST_RARITY = 0.05
EVENNESS = 0.7
SATURATION = 1.2
LENGTH_SHARE = 0.5
USUAL_LENGTH = 80
_LARGEST_SHARE = 0.5
_ACRONYM = re.compile(r"[A-Z](?<!\w[A-Z])[a-z]{0,2}[A-Z0-9][A-Za-z0-9]{0,5}\b")
_TOKEN = re.compile(r"[^\W_]+(?:[-‐‑+][^\W_]+)*")
_KIND = re.compile(r"(?:^|[;,])[^:;,]*:")


def find_acronyms(text: str) -> list[str]:
    """Return the acronyms in a text, in order: a capital soon followed by another or a digit."""
    # The ``s`` of a plural is left out.
    found = _ACRONYM.findall(text)
    return [token[:-1] if token[-1] == "s" and len(token) > 2 else token for token in found]


@lru_cache(maxsize=16_384)
def spell_out(acronym: str, text: str) -> tuple[str, ...]:
    """Return the words of *text*, side by side, that an acronym may stand for, or nothing."""
    # Every word gives its first letter, in order. In an acronym of three or more letters function
    # words may be skipped, and a word may give further letters: ``GERD`` stands for
    # gastroesophageal reflux disease.
    letters = acronym.lower()
    found = words(text)
    for start, first in enumerate(found):
        if first not in STOP_WORDS or len(letters) > 3:
            run = found[start : start + MAX_RUN]
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


def find_names(question: str) -> list[str]:
    """Return names as lower-case words: tokens with digit and capital, and capitalised words."""
    # A capital counts only within a sentence, and not at all in a question in title case.
    tokens = [(one.start(), one.group()) for one in _TOKEN.finditer(question)]
    plain = [(start, token) for start, token in tokens if token.lower() not in STOP_WORDS]
    n_titled = sum(token[0].isupper() and not _is_code(token) for _, token in plain)
    in_title_case = n_titled > _LARGEST_SHARE * len(plain)
    names: list[str] = []
    for start, token in plain:
        if _is_code(token) or (
            not in_title_case and token[0].isupper() and _is_within(question, start)
        ):
            names.extend(words(token))
    return names


def _is_code(token: str) -> bool:
    return not token.isalpha() and any(map(str.isdigit, token)) and any(map(str.isupper, token))


def _is_within(question: str, start: int) -> bool:
    before = question[:start].rstrip(" \"'“‘(")
    return bool(before) and before[-1] not in ".:?!"


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """What a question asks about."""

    question: str
    # term to weight, each > 0, in the question's order; a term is a stem that stands for all
    # words of its meaning
    weights: Mapping[str, float]
    total: float  # sum of the weights
    beginnings: Mapping[str, str]  # first six letters of a longer term to the term
    # letters of the question's own acronyms, in lower case, to the term
    acronyms: Mapping[str, str]
    names: frozenset[str]  # terms that name a particular thing


@dataclass(frozen=True, slots=True)
class Topicality:
    """How far a passage is on topic."""

    coverage: float  # weighted share of the question's terms that the passage names, in [0, 1]
    strength: float  # the same with repetitions and length taken into account, in [0, 1]
    # share of the question's names that the passage gives, in [0, 1]; 1 if it has none
    names: float
    # n_found, n_terms: how many of the question's terms the passage names, and how many it has
    n_found: int
    n_terms: int


@lru_cache(maxsize=1024)
def read_question_terms(question: str, entities: str) -> QuestionTerms:
    """Read what a question asks about; entities that it does not name itself weigh half."""
    # A term's weight grows with its rarity, less than in proportion (exponent `EVENNESS`): passages
    # on one subject share its rare names and differ in the plainer words. Words that any question
    # may use count as much less rare.
    weights: dict[str, float] = {}
    for word in content_words(question):
        weights.setdefault(_term(word), _weight(word))
    for word in content_words(_KIND.sub(" ", entities)):
        weights.setdefault(_term(word), ENTITY_WEIGHT * _weight(word))
    return QuestionTerms(
        question=question,
        weights=weights,
        total=sum(weights.values()),
        beginnings={term[:BEGINNING]: term for term in weights if len(term) >= BEGINNING},
        names=frozenset(_term(word) for word in find_names(question)) & weights.keys(),
        acronyms={
            name.lower(): _term(name.lower())
            for name in find_acronyms(question)
            if len(name) > 2 and name.isalpha() and _term(name.lower()) in weights
        },
    )


def names_any(need: QuestionTerms, text: str) -> bool:
    """Whether a text names something that a question asks about."""
    # Words that any question may use count only where the question has no others.
    telling = need.weights.keys() - _GENERAL
    found = find_terms(need, stems(text), find_acronyms(text))
    return not need.weights or bool(found.keys() & (telling or need.weights.keys()))


def find_terms(
    need: QuestionTerms, stems: Sequence[str], acronyms: Iterable[str]
) -> dict[str, float]:
    """Count the question's terms in a text, given by the stems of its content words, in order."""
    # A stem that only begins like a term counts half. An acronym counts for the words of the
    # question it may stand for; neighbouring words count for an acronym of the question that their
    # first letters spell.
    counts: dict[str, float] = {}
    for key in stems:
        term = _HEADS.get(key, key)
        if term in need.weights:
            counts[term] = counts.get(term, 0) + 1
        elif key[:BEGINNING] in need.beginnings:
            term = need.beginnings[key[:BEGINNING]]
            counts[term] = counts.get(term, 0) + LIKENESS
    spelled = (_term(word) for name in acronyms for word in spell_out(name, need.question))
    named = [term for term in spelled if term in need.weights]
    if need.acronyms:
        initials = "".join(key[0] for key in stems)
        named += (term for letters, term in need.acronyms.items() if letters in initials)
    for term in named:
        counts[term] = counts.get(term, 0) + 1
    return counts


def measure_topicality(
    need: QuestionTerms, found: Iterable[Mapping[str, float]], titled: Iterable[str], length: int
) -> Topicality:
    """Compare what a passage names, sentence by sentence, with what the question asks about."""
    # A term that only the title names counts half; *length* is in content words.
    # Source: Saturation and length normalisation: BM25, Robertson and Zaragoza (2009), k1 = 1.2; b
    # = 0.5 and a usual length of 80 content words, since one passage is compared with no others.
    counts: dict[str, float] = {}
    for part in found:
        for term, count in part.items():
            counts[term] = counts.get(term, 0) + count
    counts = dict.fromkeys(titled, TITLE_COUNT) | counts
    scale = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / USUAL_LENGTH)
    strength = sum(need.weights[term] * n / (n + scale) for term, n in counts.items())
    return Topicality(
        coverage=coverage(need, counts),
        strength=strength / (need.total or 1),
        names=len(need.names & counts.keys()) / len(need.names) if need.names else 1.0,
        n_found=len(counts),
        n_terms=len(need.weights),
    )


def coverage(need: QuestionTerms, counts: Mapping[str, float]) -> float:
    """Weighted share of the question's terms among those counted, in [0, 1]."""
    return sum(need.weights[term] * min(n, 1) for term, n in counts.items()) / (need.total or 1)


def _term(word: str) -> str:
    return same_meaning(stem(word))


def _weight(word: str) -> float:
    rare = max(rarity(stem(word)), LEAST_RARITY)
    return float((rare * GENERAL_WEIGHT if is_general(word) else rare) ** EVENNESS)
