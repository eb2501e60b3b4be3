"""Whether a text gives an answer: in the same words, as the same quantity, or as the same finding.

Read sentence by sentence, without a model. Words are reduced to concepts, so that *rose* and
*increased* are one; numbers to quantities, so that *38 min* and *thirty-eight minutes* are one; and
what is denied is told from what is said. What takes reasoning is left to the judges, see
`deepera_graph.lab.build.writing.gates`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from deepera_graph.judges.trained.direction.model import find_likeliest
from deepera_graph.lab.build.writing.faults import (
    WORDS,
    Quantity,
    read_quantities,
    without_quantities,
)
from deepera_graph.text.questions import asks_yes_or_no
from deepera_graph.text.words import STOP_WORDS, split_sentences, stem, stems, words

_SHORT_ANSWER = 12  # words; found word by word
_GIVEN_AWAY = 0.5  # share of what a sentence of a longer answer says
_TOLD = 3  # fewest shingles of such a sentence
_MISSING = 4  # of so many concepts of an answer one may be missing
_MISSING_TOPIC = 5  # likewise of a question
_LEAST_TOPIC = 2  # concepts of a question that a verdict has to name
_SPREAD = 3  # words for each concept of an answer that is no finding, all in one place
_LEAST_SPREAD = 8
_SCOPE = 4  # words that a negation reaches
_LIKELY = 0.758  # the least probability of a direction by its wording that counts as a verdict
_YES, _NO = frozenset({"yes", "true"}), frozenset({"no", "false"})
_NOT = frozenset(
    ["not", "no", "never", "neither", "nor", "without", "hardly", "cannot", "failed", "none"]
)
_NO_FINDING = re.compile(  # what is asked, aimed at, hoped, believed or only possible
    r"(?:^|\b(?:and|of|on|know|asked?|see|tell|tested|examined?|determined?)\s+|,\s+)whether\b"
    r"|\b(?:may|might|could|would|should)\b|\bhow (?:far|much|long|many|this|it)\b"
    r"|\b(?:hope|hoped|expect|expected|expects|suspected|disputed|debated|unknown|unclear|aim|aimed"
    r"|aims|wished|wanted|hypothesi[sz]ed?|argued|believed|planned|uncertain)\b"
    r"|\b(?:will|is to|are to|was to|were to|it is said|has long been asked)\b",
    re.IGNORECASE,
)
_COMPARED = re.compile(r"\bthan\b", re.IGNORECASE)
_PHRASES = (  # said in several words
    (re.compile(r"\b(?:too|very|so) (?:little|few)\b", re.IGNORECASE), "lack of"),
    (re.compile(r"\bmore than\b(?=\s+(?:doubled|halved|\d))", re.IGNORECASE), "over"),
    (re.compile(r"\b(?:no|any) (?:more|longer|better|worse) than\b", re.IGNORECASE), "similar to"),
    (
        re.compile(r"\bas (?!(?:well|soon|far|long|much|many)\b)(\w+) as\b", re.IGNORECASE),
        r"similar \1 as",
    ),
)
_CONCEPTS: Final[dict[str, str]] = {  # those named by a sign are a finding by themselves
    stem(one): name for name, listed in WORDS["concepts"].items() for one in listed.split()
}
_SIGNS: Final = frozenset("+-=~><")
_OPPOSITE: Final = {"+": "-", "-": "+", ">": "<", "<": ">"}
_WEAK = frozenset(map(stem, WORDS["words"]["weak"].split()))
_VERDICTS = frozenset(map(stem, WORDS["words"]["verdicts"].split()))
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_PERCENT = re.compile(r"\s*%|\s+per\s?cent\b")
_ZEROS = re.compile(r"(\.\d*?)0+(?!\d)")


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence as concepts in order, their signs as they are meant, and its quantities."""

    text: str
    keys: tuple[str, ...]  # stems and names of concepts, stop words left out
    signs: frozenset[str]  # of `_SIGNS`, turned to "=" where denied
    quantities: tuple[Quantity, ...]
    is_finding: bool
    denied: frozenset[str]  # concepts that have no sign and are denied
    changes: frozenset[str]  # stems of words for any change


def contains_answer(text: str, answer: str, question: str = "") -> bool:
    """Return whether a text contains an answer, in its words or others."""
    # Verdicts ("yes", "increased") and stop words alone are only looked for where the question is
    # given: a sentence gives them if it names what the question names and finds the same.
    if not words(answer):
        return False
    if _is_verdict(answer):
        return bool(question) and any(
            _gives_verdict(one, answer, question) for one in _read_text(text)
        )
    wanted = _exact_keys(answer)
    if len(wanted) <= _SHORT_ANSWER and _has_run(_exact_keys(text), wanted):
        return True
    if len(wanted) > _SHORT_ANSWER and _gives_away(text, answer, question):
        return True
    return any(_gives_finding(one, answer, question) for one in _read_text(text))


def _gives_away(text: str, answer: str, question: str) -> bool:
    """Tell whether a text has half of what a sentence of an answer says beyond the question."""
    asked, found = shingle(question), shingle(text)
    told = [shingle(sentence.text) - asked for sentence in split_sentences(answer)]
    return any(len(one & found) >= _GIVEN_AWAY * len(one) for one in told if len(one) >= _TOLD)


def _is_verdict(answer: str) -> bool:
    """Tell whether an answer says only yes or no, or which way something went."""
    if read_quantities(answer):
        return False
    return all(
        word in STOP_WORDS
        or stem(word) in _VERDICTS
        or stem(word) in _WEAK
        or _CONCEPTS.get(stem(word), "") in _SIGNS
        for word in words(answer)
    )


def _gives_verdict(said: _Sentence, answer: str, question: str) -> bool:
    if not said.is_finding or not _is_on_topic(said, question):
        return False
    plain = set(words(answer))
    if plain & (_YES | _NO) and len(plain) == 1:
        return asks_yes_or_no(question) and _agrees(said, question, is_yes=bool(plain & _YES))
    wanted = _read_sentence(answer).signs
    return bool(wanted) and _has_sign(said.signs, wanted)


def _agrees(said: _Sentence, question: str, *, is_yes: bool) -> bool:
    """Tell whether a sentence answers a question as *is_yes* says."""
    read = _read_sentence(question)
    asked = read.signs
    opposite = {_OPPOSITE[one] for one in asked if one in _OPPOSITE}
    same = asked & said.signs if asked != {"~"} else _any_change(read, said)
    if same and "=" not in said.signs:
        return is_yes
    if asked and ("=" in said.signs or opposite & said.signs):
        return not is_yes
    if asked:
        return False
    direction, likely = find_likeliest(question, said.text)
    if not asks_yes_or_no(question) or likely < _LIKELY:
        return False
    if is_yes:
        return direction == "supports"
    return direction in ("contradicts", "no_difference")


def _any_change(asked: _Sentence, said: _Sentence) -> bool:
    """Tell whether a sentence reports a change of any kind, or uses the question's word for it."""
    return bool(said.signs & {"+", "-", ">", "<"} or asked.changes & said.changes)


def _has_sign(found: frozenset[str], wanted: frozenset[str]) -> bool:
    if "=" in wanted:
        return "=" in found
    return bool(found & wanted) and "=" not in found


def _is_on_topic(said: _Sentence, question: str) -> bool:
    """Tell whether a sentence names what a question names; of five concepts one may be missing."""
    asked = _topic(question)
    missing = asked - set(said.keys)
    return len(asked) >= _LEAST_TOPIC and len(missing) <= len(asked) // _MISSING_TOPIC


@lru_cache(maxsize=512)
def _topic(question: str) -> frozenset[str]:
    return frozenset(
        one for one in _read_sentence(question).keys if one not in _SIGNS and one not in _WEAK
    )


def _gives_finding(said: _Sentence, answer: str, question: str) -> bool:
    """Tell whether a sentence says what an answer says that is no verdict."""
    wanted = _read_sentence(answer)
    if wanted.quantities:
        return _gives_quantities(said, wanted, question)
    if not said.is_finding or not _has_concepts(said, wanted):
        return False
    if not wanted.signs:
        return True
    signs = wanted.signs
    if _is_turned(wanted, said):
        signs = frozenset(_OPPOSITE.get(one, one) for one in signs)
    return _has_sign(said.signs, signs)


def _gives_quantities(said: _Sentence, wanted: _Sentence, question: str) -> bool:
    """Whether a sentence has the quantities of an answer, in order, and what is said of them."""
    # A number without a unit counts with its words only: three ponds are not three boats.
    left = iter(said.quantities)
    if not all(any(one.equals(other) for other in left) for one in wanted.quantities):
        return False
    is_bare = all(one.is_bare for one in wanted.quantities)
    if is_bare and not wanted.signs & said.signs:
        return False
    others = set(_read_sentence(without_quantities(wanted.text)).keys) - _WEAK
    signs = wanted.signs - {"="}
    if "=" in said.signs and signs:
        return False
    missing = others - _SIGNS - set(said.keys) - _topic(question)
    opposite = {_OPPOSITE[one] for one in signs if one in _OPPOSITE}
    return not missing and not (opposite & said.signs and not signs & said.signs)


def _has_concepts(said: _Sentence, wanted: _Sentence) -> bool:
    """Tell whether the concepts of an answer are in a sentence, near each other if they are few."""
    concepts = [one for one in dict.fromkeys(wanted.keys) if one not in _SIGNS | _WEAK]
    if not concepts or (wanted.denied != said.denied & set(concepts)):
        return False
    n_missing = len(concepts) // _MISSING if wanted.signs or len(concepts) > _SHORT_ANSWER else 0
    present = [one for one in concepts if one in said.keys]
    if len(concepts) - len(present) > n_missing:
        return _is_joined(concepts, said.keys)
    if wanted.signs or len(concepts) > _SHORT_ANSWER:
        return True
    size = max(_LEAST_SPREAD, _SPREAD * len(concepts))
    last = max(1, len(said.keys) - size + 1)
    return any(set(concepts) <= set(said.keys[start : start + size]) for start in range(last))


def _is_joined(concepts: Sequence[str], keys: Sequence[str]) -> bool:
    """Tell whether concepts stand in one word, as in *polyphenoloxidase*."""
    if len(concepts) < 2:
        return False
    return any(
        one.startswith(concepts[0]) and one.endswith(concepts[-1]) and one != concepts[0]
        for one in keys
    )


def _is_turned(wanted: _Sentence, said: _Sentence) -> bool:
    """Tell whether a sentence compares the other way round than an answer."""
    answer, text = (_COMPARED.split(one.text, maxsplit=1) for one in (wanted, said))
    if len(answer) < 2 or len(text) < 2:
        return False
    first, second = (set(_read_sentence(part).keys) - _SIGNS - _WEAK for part in answer)
    before, after = (set(_read_sentence(part).keys) for part in text)
    first, second = first - second, second - first
    if not first or not second:
        return False
    kept = len(first & before) / len(first) + len(second & after) / len(second)
    turned = len(first & after) / len(first) + len(second & before) / len(second)
    return turned > kept


def _read_text(text: str) -> list[_Sentence]:
    return [_read_sentence(one.text) for one in split_sentences(text)]


@lru_cache(maxsize=4096)
def _read_sentence(text: str) -> _Sentence:
    plain = text
    for pattern, instead in _PHRASES:
        plain = pattern.sub(instead, plain)
    found = words(plain)
    concepts = [(place, word, _concept(word)) for place, word in enumerate(found)]
    keys = [(place, word, one) for place, word, one in concepts if one is not None]
    signs, denied = set(), set()
    for place, _, concept in keys:
        is_denied = not _NOT.isdisjoint(found[max(0, place - _SCOPE) : place])
        if concept in _SIGNS:
            signs.add(("~" if concept == "=" else "=") if is_denied else concept)
        elif is_denied:
            denied.add(concept)
    if len(signs) > 1:
        signs.discard("~")
    return _Sentence(
        text=text,
        keys=tuple(concept for _, _, concept in keys),
        signs=frozenset(signs),
        quantities=read_quantities(text),
        is_finding=_NO_FINDING.search(text) is None and not text.rstrip().endswith("?"),
        denied=frozenset(denied & {"lack"}),
        changes=frozenset(stem(word) for _, word, concept in keys if concept == "~"),
    )


def _concept(word: str) -> str | None:
    """Return the name of a word's concept; None for a stop word that has none."""
    if word[0].isdigit():
        return _exact_key(word)
    one = _CONCEPTS.get(stem(word))
    if one is not None:
        return one
    return None if word in STOP_WORDS else stem(word)


def _exact_keys(text: str) -> list[str]:
    text = _THOUSANDS.sub("", _PERCENT.sub(" percent", text.casefold()))
    return [_exact_key(word) for word in words(text)]


def _exact_key(word: str) -> str:
    if word[0].isdigit():
        return _ZEROS.sub(r"\1", word).rstrip(".")
    return str(WORDS["numbers"].get(word) or stem(word))


def _has_run(keys: list[str], wanted: list[str]) -> bool:
    size = len(wanted)
    return any(keys[start : start + size] == wanted for start in range(len(keys) - size + 1))


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
