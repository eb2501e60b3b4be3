"""Which way a passage points on a question that yes or no answers, read from its wording.

Words are read as signs: up and down, good and bad, links, negations, findings of no difference,
significance, comparisons, contrasts and hedges. The sentences that match the question best become
sequences of such signs, relative to what the question asks ("same" is the way it asks about), and
a multinomial logistic regression weighs what stands in them. All weights have names.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final, NamedTuple, Self, get_args

from deepera_graph.errors import SettingsError
from deepera_graph.schema import Direction
from deepera_graph.text.held import MOST_SENTENCES, held
from deepera_graph.text.questions import asks_yes_or_no, looks_like_claim
from deepera_graph.text.words import STOP_WORDS, split_sentences, stem

WEIGHTS: Final = Path(__file__).parent / "weights" / "direction.json"
UNCLEAR: Final[Direction] = "unclear"
DIRECTIONS: Final[tuple[Direction, ...]] = tuple(
    one for one in get_args(Direction) if one != UNCLEAR
)

_SIGNS: Final = {  # the first that fits; each is a list of beginnings, or of whole words after `=`
    "not": "=not =no =never =neither =nor =none =cannot =without =fail =fails =failed =failing "
    "failure =lack lacks lacked lacking absen =nothing =hardly =little =barely =unlikely =nowhere "
    "=nobody insufficien =unable n't",
    "null": "=similar =similarly similarit comparabl equivalen equal =same indistinguish identical "
    "unchanged unaffected unalter unrelated independen irrespective regardless nonsignifican "
    "insignifican =ns noninferior negligib =alike =flat =constant stable =parity coincid "
    "unassociated uncorrelated nonsuperior =chance =stayed =stay =remained",
    "sig": "significan",
    "than": "=than =versus =vs compared relative comparison against",
    "but": "=but =however =although =though =whereas =while =yet =despite nevertheless nonetheless "
    "=except =unless =instead conversely =albeit contrary contrast unlike",
    "mix": "=only =some =depend =depends depended depending =varied varies vary varying =subgroup "
    "subgroups subset interaction =both partial partly inconsisten mixed heterogene confined "
    "restricted conflicting disagree =half modest transient =otherwise =reversed revers offset",
    "hedge": "=may =might =could suggest possibl =perhaps seem appear potential =likely probabl",
    "worry": "=unclear inconclusive uncertain unknown remains warrant",
    "bad": "worse worst harm poor inferior advers deteriorat detriment toxic damag aggravat "
    "exacerbat unsafe unfavo disadvantag unnecessar useless ineffect inadequate unreliable "
    "unsuccess inaccura overestimat underestimat mislead incorrect limited useles",
    "good": "improv better best benefi effective efficac superior safe success favo advantag "
    "reliab valid accura adequate useful sufficien necessar feasible appropriate helpful help "
    "protect =well robust satisf good excellent alleviat ameliorat reliev resolv rescue restor "
    "recover worthwhile justified suitable important valuable essential required",
    "down": "decreas reduc lower less lesser fewer declin "
    "diminish attenuat suppress inhibit impair "
    "block prevent abolish short smaller smallest =fall falls "
    "fallen =fell =falling drop loss =lose "
    "=loses =lost deficien downregulat =down slow delay weak "
    "blunt lessen limits limit minimi eliminat "
    "remov hinder impede restrain restrict deplet shrink shrank "
    "shrunk =cut =cuts curb halve halved "
    "dampen antagoni disrupt abrogat ablat knockout knockdown knock silenc null-mutant depress low "
    "=thin thinner undercut =shed absent inactivat degrad quench dwindl erod retard mitigat hypo "
    "underrepresent narrow cool cooler =below =under subtract sparse scarce rarer rare "
    "discourag avert avoid interfer lowest negative negatively inverse inversely declines",
    "up": "increas rais rise rises rising =rose risen elevat higher highest greater greatest more "
    "enhanc augment upregulat promot stimulat induc activat gain grow grew exceed longer "
    "larger largest accelerat boost strengthen facilitat expand double doubled tripl amplif "
    "potentiat stronger faster =up =high additional extra excess overrepresent climb widen wider "
    "deepen trigger elicit provok heighten quicker earlier accumulat warmer thicker =above "
    "outperform surpass support stabili maximi intensif hyper multipli swell lengthen prolong "
    "enrich overexpress positive positively quadrupl soar spur encourag foster "
    "produc generat yield creat form speed =sped hasten deeper denser",
    "link": "associat correlat link relat predict affect influenc effect impact differ chang caus "
    "contribut role determin modif alter =drive drives driven =play respons depend matter "
    "modulat regulat mediat lead leads leading result explain account require "
    "involv exist occur detect evidence =show shows shown demonstrat possess contain "
    "express persist allow permit enable =can work works worked match agree confirm",
}  # fmt: skip
_BAD_OUTCOME: Final = re.compile(
    r"(?:death|dead|die|mortal|fatal|risk|pain|complicat|relaps|recur|disease|disorder|symptom|"
    r"infect|injur|cancer|tumou?r|carcino|metast|inflam|fail|stroke|infarct|bleed|h(?:a)?emorrh|"
    r"depress|anxi|stress|fatigue|obes|diabet|hypert|hospitali|readmi|adverse|error|"
    r"bias|loss|toxic|damage|delay|mutation|pollut|emission|conflict|crime|poverty|unemploy|"
    r"inequal|deficit|apopto|resist|incidence|sever(?!al)|fracture|seizure|nausea|vomit|drop-?out|cost)"
)
_TOKEN: Final = re.compile(
    r"[A-Za-z]+n['’]t\b|[^\W\d_]+|\d+(?:[.,·]\d+)*|[<>=≤≥%;,:]|[.](?=\d)\d*|[-−–+±]"
)
_P_VALUE: Final = re.compile(
    r"\bp(?:\s*-?\s*values?)?(?:\s*(?:of|was|were|is))?\s*([<>=≤≥])\s*(0?[.·]\d+|0|1(?:\.0+)?)\b",
    re.IGNORECASE,
)
_INTERVAL: Final = re.compile(
    r"(?:\bCI|confidence|interval|\brange|\bHR|\bOR|\bRR|ratio)\D{0,24}?"
    r"(?:95\s*%?\D{0,24}?)?([-−–]?\d+(?:[.·]\d+)?)\s*%?\s*(?:to|and|,|;|–|-|—|−)\s*"
    r"([-−–]?\d+(?:[.·]\d+)?)"
)
_RATIO: Final = re.compile(
    r"\b(?:a?OR|a?HR|RR|IRR|(?:odds|hazards?|risk|rate|relative)\s+(?:ratio|risk))s?\b\D{0,20}?"
    r"(\d+[.·]\d+)"
)
_PAIR: Final = re.compile(
    r"(\d+(?:[.·]\d+)?)\s*%?[^\d.;]{0,40}?\b(?:vs\.?|versus|compared\s+(?:with|to)|against|than)\s"
    r"[^\d.;]{0,40}?(\d+(?:[.·]\d+)?)"
)
_CLAUSE: Final = re.compile(r";|,?\s(?:whereas|while|but|although)\s|,\s(?:and|with|which)\s")
_COMPARED: Final = re.compile(
    r"\b(?:(?:as\s+)?compared\s+(?:with|to)|versus|vs\.?|than|relative\s+to|in\s+comparison\s+with)"
    r"\s+",
    re.IGNORECASE,
)
_POLAR: Final = {"up": 1, "down": -1, "good": 1, "bad": -1}
_SCOPE = 5  # words after a negation
_NEAR = 6  # words between a sign and what it is said of


@lru_cache(maxsize=32_768)
def _sign_of(word: str) -> str:
    """Return the sign a word in lower case is; empty for none."""
    if word.endswith(("n't", "n’t")):
        return "not"
    if word in _WHOLE:
        return _WHOLE[word]
    found = _STARTS.match(word)
    return found.lastgroup or "" if found else ""


_WHOLE: Final = {
    one.removeprefix("="): name
    for name, listed in reversed(_SIGNS.items())
    for one in listed.split()
    if one.startswith("=")
}
_STARTS: Final = re.compile(
    "|".join(
        f"(?P<{name}>{'|'.join(one for one in listed.split() if not one.startswith('='))})"
        for name, listed in _SIGNS.items()
    )
)


@dataclass(frozen=True, eq=False)
class _Words:
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
def _read_words(text: str) -> _Words:
    found = tuple(word.lower().replace("’", "'") for word in _TOKEN.findall(text))
    return _Words(
        found,
        tuple(map(_sign_of, found)),
        tuple(
            stem(word) if len(word) > 2 and word.isalpha() and word not in STOP_WORDS else ""
            for word in found
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """What a question asks about, and which way it asks."""

    kind: str  # the sign of its predicate: up, down, good, bad, null, link, or none
    place: int  # of the predicate
    value: int  # +1 if yes is good news, -1 if bad, 0 if neither
    negated: bool
    is_claim: bool
    read: _Words
    stems: frozenset[str]
    outcome: frozenset[str]  # stems after the predicate
    near: Mapping[str, int]  # sign of the nearest polar word, by stem
    parity: int  # product of all its signs, 0 if it has none
    first: frozenset[str]  # stems of who is asked about, before what they are compared with
    second: frozenset[str]  # stems of what they are compared with


@lru_cache(maxsize=64)
def _read_question(question: str) -> _Asked:
    read = _read_words(question)
    kind, place = _find_predicate(read)
    value = 0
    if kind in ("good", "bad"):
        value = _POLAR[kind]
    elif kind in ("up", "down"):
        after = read.words[place + 1 : place + 8]
        value = -_POLAR[kind] if any(map(_BAD_OUTCOME.match, after)) else 0
    is_negated = any(sign == "not" for sign in read.signs[max(0, place - 5) : place + 5])
    parts = _COMPARED.split(question, maxsplit=1)
    first: frozenset[str] = frozenset()
    second: frozenset[str] = frozenset()
    if len(parts) == 2:
        one, other = (frozenset(_read_words(part).stems) - {""} for part in parts)
        first, second = one - other, other - one
    else:
        first = frozenset(read.stems[:place]) - {""}
    return _Asked(
        kind="null" if is_negated and kind in ("link", "none") else kind,
        place=place,
        value=value,
        negated=is_negated,
        is_claim=looks_like_claim(question),
        read=read,
        stems=frozenset(read.stems) - {""},
        outcome=frozenset(read.stems[place + 1 :]) - {""} or frozenset(read.stems) - {""},
        near=read.near,
        parity=read.parity,
        first=first,
        second=second,
    )


def _find_predicate(read: _Words) -> tuple[str, int]:
    """Return the sign that the question turns on, and its place; ``none`` if it has no sign.

    A polar verb goes before a polar word after a linking one (``is associated with higher``), that
    before any other polar word, and that before a word of likeness or a link.
    """
    polar = [
        place
        for place, sign in enumerate(read.signs)
        if sign in _POLAR and not _is_modifier(read, place)
    ]
    verbs = [place for place in polar if not _NO_VERB.search(read.words[place])]
    links = [place for place, sign in enumerate(read.signs) if sign == "link"]
    links += [place for place, word in enumerate(read.words) if place and word in _BEING]
    after = [place for place in polar if links and place > min(links)]
    for found in (verbs, after, polar):
        if found:
            return read.signs[found[0]], found[0]
    for wanted in ("null", "link"):
        if wanted in read.signs:
            return wanted, read.signs.index(wanted)
    return "none", len(read.signs)


_NO_VERB: Final = re.compile(
    r"(?:ed|ing|tions?|sions?|ments?|[ae]nce|[ae]ncy|er|est|ity|ive|[ae]nt|low|high|loss|deficient|negative"
    r"|positive|positively|negatively|more|less|excess)$"
)
_BEING: Final = frozenset(["is", "are", "was", "were", "have", "has", "had", "can", "be", "been"])


def _is_modifier(read: _Words, place: int) -> bool:
    """Tell whether a polar word only describes a thing, as in ``low-dose`` or ``X-induced``."""
    after = read.words[place + 1] if place + 1 < len(read.words) else ""
    before = read.words[place - 1] if place else ""
    return after == "-" or before == "-"


def _count(signs: Iterable[str], wanted: str) -> int:
    return sum(sign == wanted for sign in signs)


def _is_negated(signs: Sequence[str], place: int) -> bool:
    for before in range(place - 1, max(-1, place - 1 - _SCOPE), -1):
        if signs[before] == "but":
            return False
        if signs[before] == "not":
            return True
    return False


def _near_signs(read: _Words) -> dict[str, int]:
    """Return the sign of the nearest polar word of each stem, turned by a negation."""
    polar = [
        (place, -_POLAR[sign] if _is_negated(read.signs, place) else _POLAR[sign])
        for place, sign in enumerate(read.signs)
        if sign in _POLAR
    ]
    near: dict[str, tuple[int, int]] = {}
    for place, one in enumerate(read.stems):
        if not one or read.signs[place]:
            continue
        for where, sign in polar:
            far = abs(where - place)
            if far <= _NEAR and (one not in near or far < near[one][0]):
                near[one] = (far, sign)
    return {one: sign for one, (_, sign) in near.items()}


def _parity(read: _Words) -> int:
    signs = [_POLAR[sign] for sign in read.signs if sign in _POLAR]
    return math.prod(signs) * (-1) ** _count(read.signs, "not") if signs else 0


def describe(question: str, text: str, quote: str = "") -> dict[str, float]:
    """Return the named features of a passage, each in [-1, 1]; those that are 0 are left out."""
    asked = _read_question(question)
    sentences = [one.text for one in split_sentences(text)] or [text]
    ranked = _rank_sentences(asked, sentences, quote)
    found: defaultdict[str, float] = defaultdict(float)
    _describe_question(asked, found)
    clause = _find_clause(asked, ranked[0])
    for name, chosen, most in (
        ("", ranked[:1], 2),
        ("clause: ", [clause], 3),
        ("next: ", ranked[1:2], 2),
        ("best: ", ranked[:3], 1),
        ("last: ", sentences[-1:], 1),
    ):
        _describe_sentences(name, asked, chosen, most, found)
    return {name: max(-1.0, min(1.0, value)) for name, value in found.items() if value}


def _rank_sentences(asked: _Asked, sentences: Sequence[str], quote: str) -> list[str]:
    """Return the sentences, the quoted one first, then by how much of the question they name."""

    def key(place: int) -> tuple[bool, float]:
        sentence = sentences[place]
        read = _read_words(sentence)
        named = len(asked.stems & read.known) + len(asked.outcome & read.known)
        is_quote = bool(quote) and (sentence in quote or quote.strip() in sentence)
        return is_quote, named + 1.0 * read.finds + 0.5 * place / len(sentences)

    order = sorted(range(len(sentences)), key=key, reverse=True)
    return [sentences[place] for place in order]


_FINDING: Final = frozenset({"up", "down", "good", "bad", "null", "sig", "not", "link"})


def _describe_question(asked: _Asked, found: defaultdict[str, float]) -> None:
    found[f"asks {asked.kind}"] = 1
    found["asks not"] = asked.negated
    found["asks for a comparison"] = bool(asked.second)
    found["claims"] = asked.is_claim
    found[f"asks value {asked.value}"] = 1


def _find_clause(asked: _Asked, sentence: str) -> str:
    """Return the part of a sentence that names most of the outcome, and tells a finding."""

    def key(clause: str) -> float:
        read = _read_words(clause)
        return len(asked.outcome & read.known) + 0.5 * read.finds

    return max(_CLAUSE.split(sentence), key=key)


def _describe_sentences(
    name: str, asked: _Asked, sentences: Sequence[str], most: int, found: defaultdict[str, float]
) -> None:
    share = 1 / (len(sentences) or 1) ** 0.5
    mood = "asked not, " if asked.negated else ""
    for sentence in sentences:
        told = _tell(asked, sentence)
        for one, value in told.measures:
            found[f"{name}{mood}{one}"] += value * share
        found[f"{name}{mood}says {told.said}"] += share
        for gram in set(_grams(told.abstract, most)):
            found[f"{name}{gram}"] += _GRAM * share
        if most > 1:
            for sign in {"nothing", *_read_words(sentence).signs} - {""}:
                found[f"{name}{mood}{asked.kind}{asked.value:+}? {sign}"] = _GRAM


class _Told(NamedTuple):
    """What a sentence says against what is asked."""

    measures: Sequence[tuple[str, float]]  # with their names
    said: str  # which of `_SAID`, joined
    abstract: Sequence[str]


@lru_cache(maxsize=256)  # a sentence may be the best, the last and one of several at once
def _tell(asked: _Asked, sentence: str) -> _Told:
    read = _read_words(sentence)
    measures = list(_agreements(asked, sentence, read))
    said = _SAID.intersection(one for one, _ in measures) | _SAID.intersection(read.signs)
    return _Told(measures, "+".join(sorted(said)) or "nothing", _abstract(asked, read))


_SAID: Final = frozenset(
    ["agrees", "opposes", "not agrees", "not opposes", "moves", "not moves", "null", "not"]
)
_GRAM: Final = 0.3  # less than a measure, as there are many


def _abstract(asked: _Asked, read: _Words) -> list[str]:
    """Return a sentence as signs relative to the question; other words are ``_``, once a row."""
    signs: list[str] = []
    for word, sign, one in zip(read.words, read.signs, read.stems, strict=True):
        new = (_relate(asked, sign) if sign else "") or _name_word(asked, word, one)
        if not signs or new not in "_Q0AC" or signs[-1] != new:
            signs.append(new)
    return signs


def _name_word(asked: _Asked, word: str, one: str) -> str:
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


def _relate(asked: _Asked, sign: str) -> str:
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


def _grams(signs: Sequence[str], most: int) -> Iterator[str]:
    for size in range(1, most + 1):
        for start in range(len(signs) - size + 1):
            gram = signs[start : start + size]
            if gram[0] != "_" and gram[-1] != "_":
                yield " ".join(gram)


def _agreements(asked: _Asked, sentence: str, read: _Words) -> Iterator[tuple[str, float]]:
    """Yield named measures of what a sentence says against what is asked."""
    is_turned = _is_turned(asked, sentence)
    way = _POLAR.get(asked.kind, 0) if asked.kind in ("up", "down") else 0
    for place, sign in enumerate(read.signs):
        if sign in _POLAR:
            yield from _judge_sign(asked, read, place, way, is_turned=is_turned)
    near = read.near
    shared = [one for one in asked.near if one in near]
    for one in shared:
        same = asked.near[one] == near[one]
        yield ("same word, same way" if same else "same word, other way"), 1 / len(shared)
    denies = "not" in read.signs
    if denies:
        yield ("both negate" if asked.negated else "negates alone"), 1.0
    elif asked.negated:
        yield "asked negated, not said", 1.0
    yield from _numbers(sentence, way * (-1 if is_turned else 1))
    if read.parity and asked.parity:
        yield (
            ("signs multiply alike" if read.parity == asked.parity else "signs multiply apart"),
            1.0,
        )
    yield "turned", float(is_turned)
    yield "names", len(asked.stems & read.known) / (len(asked.stems) or 1)


def _judge_sign(
    asked: _Asked, read: _Words, place: int, way: int, *, is_turned: bool
) -> Iterator[tuple[str, float]]:
    """Yield whether one polar word goes the way that is asked about, or the other."""
    sign = read.signs[place]
    denied = "not " * _is_negated(read.signs, place)
    turned = -1 if is_turned or _is_of_control(asked, read, place) else 1
    value = 0
    if way and sign in ("up", "down"):
        value = _POLAR[sign] * way * turned
    elif asked.value:
        value = _find_value(read, place) * asked.value * turned
    if value:
        kind = "agrees" if value > 0 else "opposes"
        yield f"{denied}{kind}", 0.5
        if _is_close(asked, read, place):
            yield f"{denied}{kind} near", 0.5
    elif not way and not asked.value:
        yield f"{denied}moves", 0.5


def _find_value(read: _Words, place: int) -> int:
    """Return +1 for good news, -1 for bad news, 0 where a polar word is neither."""
    sign = read.signs[place]
    if sign in ("good", "bad"):
        return _POLAR[sign]
    around = read.words[max(0, place - 4) : place + 5]
    return -_POLAR[sign] if any(map(_BAD_OUTCOME.match, around)) else 0


def _is_close(asked: _Asked, read: _Words, place: int) -> bool:
    around = read.stems[max(0, place - _NEAR) : place + _NEAR + 1]
    return not asked.stems.isdisjoint(around)


def _is_of_control(asked: _Asked, read: _Words, place: int) -> bool:
    """Tell whether a polar word is said of those compared with, as in ``higher with placebo``."""
    if read.signs[place + 1 : place + 2] == ("than",):
        return False
    for where in range(place + 1, min(len(read.words), place + 1 + _FAR)):
        if read.signs[where] == "than" or read.words[where] in (";", ","):
            return False
        if read.stems[where] in asked.first and read.stems[where]:
            return False
        if read.stems[where] in asked.second or read.words[where] in _CONTROL:
            return True
    return False


_FAR = 9  # words between a polar word and of whom it is said
_CONTROL: Final = frozenset(
    ["control", "controls", "placebo", "untreated", "sham", "conventional", "usual"]
)


def _is_turned(asked: _Asked, sentence: str) -> bool:
    """Tell whether a sentence compares the other way round than the question does."""
    if not asked.first or not asked.second:
        return False
    parts = _COMPARED.split(sentence, maxsplit=1)
    if len(parts) < 2:
        return False
    before, after = (frozenset(_read_words(part).stems) for part in parts)
    kept = len(asked.first & before) / len(asked.first) + len(asked.second & after) / len(
        asked.second
    )
    turned = len(asked.first & after) / len(asked.first) + len(asked.second & before) / len(
        asked.second
    )
    return turned > kept


def _numbers(sentence: str, way: int) -> Iterator[tuple[str, float]]:
    """Yield what numbers say: significance, intervals that hold no difference, ratios, pairs."""
    if not any(map(str.isdigit, sentence)):
        return
    for sign, number in _P_VALUE.findall(sentence):
        is_significant = _to_float(number) <= _ALPHA and sign not in (">", "≥")
        yield ("p significant" if is_significant else "p not significant"), 1.0
    ratios = [_to_float(one) for one in _RATIO.findall(sentence)]
    none = 1.0 if ratios or "ratio" in sentence else 0.0
    for ends in _INTERVAL.findall(sentence):
        low, high = sorted(map(_to_float, ends))
        yield ("interval holds none" if low <= none <= high else "interval is clear"), 1.0
    for ratio in ratios:
        if abs(ratio - 1) <= _NEAR_ONE:
            yield "ratio alike", 1.0
        else:
            yield ("ratio above" if ratio > 1 else "ratio below"), 1.0
            yield from _judge_order("ratio", ratio, 1.0, way)
    yield from _judge_pairs(sentence, way)


def _judge_pairs(sentence: str, way: int) -> Iterator[tuple[str, float]]:
    for pair in _PAIR.findall(sentence):
        one, other = map(_to_float, pair)
        yield from _judge_order("pair", one, other, way)
        if one or other:
            is_apart = abs(one - other) > _APART * max(abs(one), abs(other))
            yield ("pair apart" if is_apart else "pair alike"), 1.0


_ALPHA = 0.05
_APART = 0.2
_NEAR_ONE = 0.1  # of a ratio, so far from 1: alike, unless an interval or a p-value says otherwise


def _judge_order(name: str, one: float, other: float, way: int) -> Iterator[tuple[str, float]]:
    if way and one != other:
        yield f"{name} {'agrees' if (one > other) == (way > 0) else 'opposes'}", 1.0


def _to_float(number: str) -> float:
    return float(re.sub("[−–]", "-", number).replace("·", "."))


@dataclass(frozen=True, slots=True)
class DirectionModel:
    """Weights of features by direction, in the order of `DIRECTIONS`, and the least probability."""

    bias: tuple[float, ...]
    weights: Mapping[str, Sequence[float]]
    threshold: float

    @classmethod
    def load(cls, path: Path = WEIGHTS) -> Self:
        """Read the weights; a `SettingsError` if they are none."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return cls(tuple(found["bias"]), found["weights"], float(found["threshold"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SettingsError(f"{str(path)!r} holds no weights of directions: {error}") from error

    def probabilities(self, question: str, text: str, quote: str = "") -> dict[Direction, float]:
        """Return how likely each direction is; they add up to 1."""
        return self.weigh(describe(question, text, quote))

    def weigh(self, described: Mapping[str, float]) -> dict[Direction, float]:
        """Return how likely each direction is by features as `describe` names them."""
        sums = list(self.bias)
        for name, value in described.items():
            for place, weight in enumerate(self.weights.get(name, ())):
                sums[place] += weight * value
        most = max(sums)
        parts = [math.exp(one - most) for one in sums]
        return {name: part / sum(parts) for name, part in zip(DIRECTIONS, parts, strict=True)}

    def read(
        self, question: str, text: str, quote: str = "", reader: Sequence[float] | None = None
    ) -> Direction:
        """Return the likeliest direction, or ``unclear`` if it is not likely enough.

        *reader* are the log odds, but for a constant, that the reader gives each of `DIRECTIONS`;
        it makes a direction surer or less sure, and names no other one than the wording does.
        """
        found, threshold = self.probabilities(question, text, quote), self.threshold
        best = max(found, key=lambda name: found[name])
        if reader is not None:
            found, threshold = weigh_reader(found, reader), WITH_READER
        is_likely = found[best] == max(found.values()) and found[best] >= threshold
        return best if is_likely else UNCLEAR


READER_WEIGHT: Final = 0.3  # of what the reader says of a direction beside the wording
WITH_READER: Final = 0.5  # the least probability of both: three in four above it are right


def weigh_reader(
    likely: Mapping[Direction, float], reader: Sequence[float]
) -> dict[Direction, float]:
    """Return how likely each direction is by wording and reader together; they add up to 1."""
    most = max(reader)
    total = sum(math.exp(one - most) for one in reader)
    both = {
        name: likely[name] ** (1 - READER_WEIGHT) * (math.exp(one - most) / total) ** READER_WEIGHT
        for name, one in zip(DIRECTIONS, reader, strict=True)
    }
    return {name: one / sum(both.values()) for name, one in both.items()}


@lru_cache(maxsize=1)
def _load_shipped() -> DirectionModel:
    return DirectionModel.load()


def read_direction(
    question: str, text: str, quote: str = "", reader: Sequence[float] | None = None
) -> Direction | None:
    """Say which way a passage points; None if yes or no does not answer the question."""
    return _load_shipped().read(question, text, quote, reader) if asks_yes_or_no(question) else None
