"""Words as signs, a sentence as a row of them, its numbers, and what a yes/no question turns on.

The signs are up, down, good, bad, a negation, a finding of no difference, a hedge and the like.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from deepera_graph.text.questions import looks_like_claim
from deepera_graph.text.words import MOST_SENTENCES, STOP_WORDS, held, stem

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
    "bad": "worse worst harm(?!on) poor inferior advers deteriorat detriment toxic damag aggravat "
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
BAD_OUTCOME: Final = re.compile(
    r"(?:death|dead|die|mortal|fatal|risk|pain|complicat|relaps|recur|disease|disorder|symptom|"
    r"infect|injur|cancer|tumou?r|carcino|metast|inflam|fail|stroke|infarct|bleed|h(?:a)?emorrh|"
    r"depress|anxi|stress|fatigue|obes|diabet|hypert|hospitali|readmi|adverse|error|"
    r"bias|loss|toxic|damage|delay|mutation|pollut|emission|conflict|crime|poverty|unemploy|"
    r"inequal|deficit|apopto|resist|incidence|sever(?!al)|fracture|seizure|nausea|vomit|drop-?out|cost)"
)
_GOOD_OUTCOME: Final = re.compile(
    r"(?:quality|surviv|growth|yield|performan|health|function|accura|memory|cognit|strength|diversity|"
    r"fertil|efficien|adheren|recall|precision|learning|attention|mood|fitness|richness|capacity|"
    r"germinat|clearance|density|mobility|stability|satisf|nutri|scores?$|abundance|biomass)"
)
POLAR: Final = {"up": 1, "down": -1, "good": 1, "bad": -1}


@lru_cache(maxsize=32_768)
def sign_of(word: str) -> str:
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


COMPARED: Final = re.compile(
    r"\b(?:(?:as\s+)?compared\s+(?:with|to)|versus|vs\.?|than|relative\s+to|in\s+comparison\s+with)"
    r"\s+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, eq=False)
class ReadQuestion:
    """What a question asks about, and which way it asks."""

    kind: str  # the sign of its predicate: up, down, good, bad, null, link, or none
    place: int  # of the predicate
    value: int  # +1 if yes is good news, -1 if bad, 0 if neither
    wants_more: bool  # whether what is to become better or worse is better the more there is
    negated: bool
    is_claim: bool
    read: SignedWords
    stems: frozenset[str]
    outcome: frozenset[str]  # stems after the predicate
    near: Mapping[str, int]  # sign of the nearest polar word, by stem
    parity: int  # product of all its signs, 0 if it has none
    first: frozenset[str]  # stems of who is asked about, before what they are compared with
    second: frozenset[str]  # stems of what they are compared with


@lru_cache(maxsize=64)
def read_question(question: str) -> ReadQuestion:
    """Read what a question asks from its wording."""
    read = read_words(question)
    kind, place = _find_predicate(read)
    value = 0
    if kind in ("good", "bad"):
        value = POLAR[kind]
    elif kind in ("up", "down"):
        after = read.words[place + 1 : place + 8]
        value = -POLAR[kind] if any(map(BAD_OUTCOME.match, after)) else 0
    wants_more = kind in ("good", "bad") and any(map(_GOOD_OUTCOME.match, read.words[place + 1 :]))
    is_negated = any(sign == "not" for sign in read.signs[max(0, place - 5) : place + 5])
    parts = COMPARED.split(question, maxsplit=1)
    first: frozenset[str] = frozenset()
    second: frozenset[str] = frozenset()
    if len(parts) == 2:
        one, other = (frozenset(read_words(part).stems) - {""} for part in parts)
        first, second = one - other, other - one
    else:
        first = frozenset(read.stems[:place]) - {""}
    return ReadQuestion(
        kind="null" if is_negated and kind in ("link", "none") else kind,
        place=place,
        value=value,
        wants_more=wants_more,
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


def _find_predicate(read: SignedWords) -> tuple[str, int]:
    """Return the sign that the question turns on, and its place; ``none`` if it has no sign.

    A polar verb goes before a polar word after a linking one (``is associated with higher``), that
    before any other polar word, and that before a word of likeness or a link.
    """
    polar = [
        place
        for place, sign in enumerate(read.signs)
        if sign in POLAR and not _is_modifier(read, place)
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


def _is_modifier(read: SignedWords, place: int) -> bool:
    """Tell whether a polar word only describes a thing, as in ``low-dose`` or ``X-induced``."""
    after = read.words[place + 1] if place + 1 < len(read.words) else ""
    before = read.words[place - 1] if place else ""
    return after == "-" or before == "-"


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
_ALPHA = 0.05
_APART = 0.2
_NEAR_ONE = 0.1  # of a ratio, so far from 1: alike, unless an interval or a p-value says otherwise


def measure_numbers(sentence: str, way: int) -> Iterator[tuple[str, float]]:
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


def _judge_order(name: str, one: float, other: float, way: int) -> Iterator[tuple[str, float]]:
    if way and one != other:
        yield f"{name} {'agrees' if (one > other) == (way > 0) else 'opposes'}", 1.0


def _to_float(number: str) -> float:
    return float(re.sub("[−–]", "-", number).replace("·", "."))
