"""Which way a passage points: its named features, and the linear model that weighs them.

The sentences of a passage that match the question best are measured by how far their words agree
with what is asked, by their numbers, and as rows of signs relative to the question.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, Self, get_args

from deepera_graph.errors import SettingsError
from deepera_graph.judges.trained.direction.doubts import is_doubtful
from deepera_graph.judges.trained.direction.sides import order_sides
from deepera_graph.judges.trained.direction.wording import (
    BAD_OUTCOME,
    COMPARED,
    NEAR,
    POLAR,
    ReadQuestion,
    SignedWords,
    is_negated,
    measure_numbers,
    read_question,
    read_words,
)
from deepera_graph.schema import Direction
from deepera_graph.text.questions import asks_yes_or_no
from deepera_graph.text.words import split_sentences

_CLAUSE: Final = re.compile(r";|,?\s(?:whereas|while|but|although)\s|,\s(?:and|with|which)\s")
_SAME: Final = 0.3  # share of the outcome's words that a sentence on it has
_GRAM: Final = 0.3  # less than a measure, as there are many
_SAID: Final = frozenset(
    ["agrees", "opposes", "not agrees", "not opposes", "moves", "not moves", "null", "not"]
)


def describe(question: str, text: str, quote: str = "") -> dict[str, float]:
    """Return the named features of a passage, each in [-1, 1]; those that are 0 are left out."""
    asked = read_question(question)
    sentences = [one.text for one in split_sentences(text)] or [text]
    ranked = [_order_same(asked, one) for one in _rank_sentences(asked, sentences, quote)[:3]]
    found: defaultdict[str, float] = defaultdict(float)
    found[f"asks {asked.kind}"] = 1
    found["asks not"] = asked.negated
    found["asks for a comparison"] = bool(asked.second)
    found["claims"] = asked.is_claim
    found[f"asks value {asked.value}"] = 1
    clause = max(_CLAUSE.split(ranked[0]), key=lambda one: _weigh_clause(asked, one))
    for name, chosen, most in (
        ("", ranked[:1], 2),
        ("clause: ", [clause], 3),
        ("next: ", ranked[1:2], 2),
        ("best: ", ranked[:3], 1),
        ("last: ", [_order_same(asked, sentences[-1])], 1),
    ):
        _describe_sentences(name, asked, chosen, most, found)
    return {name: max(-1.0, min(1.0, value)) for name, value in found.items() if value}


def _rank_sentences(asked: ReadQuestion, sentences: Sequence[str], quote: str) -> list[str]:
    """Return the sentences, the quoted one first, then by how much of the question they name."""

    def key(place: int) -> tuple[bool, float]:
        sentence = sentences[place]
        read = read_words(sentence)
        named = len(asked.stems & read.known) + len(asked.outcome & read.known)
        is_quote = bool(quote) and (sentence in quote or quote.strip() in sentence)
        return is_quote, named + 1.0 * read.finds + 0.5 * place / len(sentences)

    order = sorted(range(len(sentences)), key=key, reverse=True)
    return [sentences[place] for place in order]


def _order_same(asked: ReadQuestion, sentence: str) -> str:
    """Order who is compared with whom in a sentence on the outcome asked about, not on others."""
    named = len(asked.outcome & read_words(sentence).known)
    return order_sides(asked, sentence) if named >= _SAME * len(asked.outcome) else sentence


def _weigh_clause(asked: ReadQuestion, clause: str) -> float:
    """Return how much of the outcome a part of a sentence names, and whether it tells a finding."""
    read = read_words(clause)
    return len(asked.outcome & read.known) + 0.5 * read.finds


def _describe_sentences(
    name: str,
    asked: ReadQuestion,
    sentences: Sequence[str],
    most: int,
    found: defaultdict[str, float],
) -> None:
    """Add what the sentences say, in an order that does not depend on the hash seed."""
    share = 1 / (len(sentences) or 1) ** 0.5
    mood = "asked not, " if asked.negated else ""
    for sentence in sentences:
        told = _tell(asked, sentence)
        for one, value in told.measures:
            found[f"{name}{mood}{one}"] += value * share
        found[f"{name}{mood}says {told.said}"] += share
        for gram in dict.fromkeys(find_grams(told.sequence, most)):
            found[f"{name}{gram}"] += _GRAM * share
        if most > 1:
            for sign in filter(None, ("nothing", *read_words(sentence).signs)):
                found[f"{name}{mood}{asked.kind}{asked.value:+}? {sign}"] = _GRAM


class _Told(NamedTuple):
    """What a sentence says against what is asked."""

    measures: Sequence[tuple[str, float]]  # with their names
    said: str  # which of `_SAID`, joined
    sequence: Sequence[str]


@lru_cache(maxsize=256)  # a sentence may be the best, the last and one of several at once
def _tell(asked: ReadQuestion, sentence: str) -> _Told:
    read = read_words(sentence)
    measures = list(measure_agreement(asked, sentence, read))
    said = _SAID.intersection(one for one, _ in measures) | _SAID.intersection(read.signs)
    return _Told(measures, "+".join(sorted(said)) or "nothing", relate_signs(asked, read))


def measure_agreement(
    asked: ReadQuestion, sentence: str, read: SignedWords
) -> Iterator[tuple[str, float]]:
    """Yield named measures of what a sentence says against what is asked."""
    is_turned = _is_turned(asked, sentence)
    way = POLAR.get(asked.kind, 0) if asked.kind in ("up", "down") else 0
    for place, sign in enumerate(read.signs):
        if sign in POLAR:
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
    yield from measure_numbers(sentence, way * (-1 if is_turned else 1))
    if read.parity and asked.parity:
        yield (
            ("signs multiply alike" if read.parity == asked.parity else "signs multiply apart"),
            1.0,
        )
    yield "turned", float(is_turned)
    yield "names", len(asked.stems & read.known) / (len(asked.stems) or 1)


def _judge_sign(
    asked: ReadQuestion, read: SignedWords, place: int, way: int, *, is_turned: bool
) -> Iterator[tuple[str, float]]:
    """Yield whether one polar word goes the way that is asked about, or the other."""
    sign = read.signs[place]
    denied = "not " * is_negated(read.signs, place)
    turned = -1 if is_turned or _is_of_control(asked, read, place) else 1
    value = 0
    if way and sign in ("up", "down"):
        value = POLAR[sign] * way * turned
    elif asked.value:
        value = _find_value(asked, read, place) * asked.value * turned
    if value:
        kind = "agrees" if value > 0 else "opposes"
        yield f"{denied}{kind}", 0.5
        if _is_close(asked, read, place):
            yield f"{denied}{kind} near", 0.5
    elif not way and not asked.value:
        yield f"{denied}moves", 0.5


def _find_value(asked: ReadQuestion, read: SignedWords, place: int) -> int:
    """Return +1 for good news, -1 for bad news, 0 where a polar word is neither."""
    sign = read.signs[place]
    if sign in ("good", "bad"):
        return POLAR[sign]
    around = read.words[max(0, place - 4) : place + 5]
    if any(map(BAD_OUTCOME.match, around)):
        return -POLAR[sign]
    is_wanted = asked.wants_more and _is_close(asked, read, place)
    return POLAR[sign] if is_wanted else 0


def _is_close(asked: ReadQuestion, read: SignedWords, place: int) -> bool:
    around = read.stems[max(0, place - NEAR) : place + NEAR + 1]
    return not asked.stems.isdisjoint(around)


def _is_of_control(asked: ReadQuestion, read: SignedWords, place: int) -> bool:
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


def _is_turned(asked: ReadQuestion, sentence: str) -> bool:
    """Tell whether a sentence compares the other way round than the question does."""
    if not asked.first or not asked.second:
        return False
    parts = COMPARED.split(sentence, maxsplit=1)
    if len(parts) < 2:
        return False
    before, after = (frozenset(read_words(part).stems) for part in parts)
    kept = len(asked.first & before) / len(asked.first) + len(asked.second & after) / len(
        asked.second
    )
    turned = len(asked.first & after) / len(asked.first) + len(asked.second & before) / len(
        asked.second
    )
    return turned > kept


def relate_signs(asked: ReadQuestion, read: SignedWords) -> list[str]:
    """Return a sentence as signs relative to the question; other words are ``_``, once a row."""
    signs: list[str] = []
    for word, sign, one in zip(read.words, read.signs, read.stems, strict=True):
        new = (_relate_sign(asked, sign) if sign else "") or _name_word(asked, word, one)
        if not signs or new not in "_Q0AC" or signs[-1] != new:
            signs.append(new)
    return signs


def _name_word(asked: ReadQuestion, word: str, one: str) -> str:
    for name, known in (("A", asked.first), ("C", asked.second), ("Q", asked.stems)):
        if one and one in known:
            return name
    if word[0].isdigit():
        return "0"
    return word if word in _KEPT else "_"


_KEPT: Final = frozenset(
    (
        *("in", "by", "for", "of", "to", "with", "after", "before", "as", "at", "and", "or"),
        *("did", "was", "were", "is", "are", "does", "do", "difference", "group", "between"),
        *("all", "any", "most", "=", "<", ">", "%", ";"),
    )
)


def _relate_sign(asked: ReadQuestion, sign: str) -> str:
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


WEIGHTS: Final = Path(__file__).parents[1] / "weights" / "direction.json"
UNCLEAR: Final[Direction] = "unclear"
DIRECTIONS: Final[tuple[Direction, ...]] = tuple(
    one for one in get_args(Direction) if one != UNCLEAR
)
READER_WEIGHT: Final = 0.45  # of what the reader says of a direction beside the wording
# the least probability of both: of each direction four in five above it are right
WITH_READER: Final[Mapping[Direction, float]] = {
    "supports": 0.65,
    "contradicts": 0.65,
    "no_difference": 0.5,
    "mixed": 0.65,
}


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

    def weigh(self, described: Mapping[str, float]) -> dict[Direction, float]:
        """Return how likely each direction is by features as `describe` names them.

        They add up to 1.
        """
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
        it makes a direction surer or less sure, and names no other one than the wording does. One
        that the quote denies is ``unclear``, too.
        """
        likely = self.weigh(describe(question, text, quote))
        found = choose_direction(likely, reader, self.threshold)
        return UNCLEAR if is_doubtful(question, quote, found) else found


def choose_direction(
    likely: Mapping[Direction, float], reader: Sequence[float] | None, threshold: float = 0.0
) -> Direction:
    """Return the direction that wording and reader find, or ``unclear`` if it is not likely enough.

    *likely* goes by the wording, *threshold* counts where there is no *reader*; see
    `DirectionModel.read`.
    """
    best = max(likely, key=lambda name: likely[name])
    if reader is not None:
        likely, threshold = weigh_reader(likely, reader), WITH_READER[best]
    is_likely = likely[best] == max(likely.values()) and likely[best] >= threshold
    return best if is_likely else UNCLEAR


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


def find_likeliest(question: str, text: str) -> tuple[Direction, float]:
    """Return the direction that the wording of a text makes likeliest, and how likely it is."""
    found = _load_shipped().weigh(describe(question, text))
    return max(found.items(), key=lambda item: item[1])


def read_direction(
    question: str, text: str, quote: str = "", reader: Sequence[float] | None = None
) -> Direction | None:
    """Say which way a passage points; None if yes or no does not answer the question."""
    return _load_shipped().read(question, text, quote, reader) if asks_yes_or_no(question) else None
