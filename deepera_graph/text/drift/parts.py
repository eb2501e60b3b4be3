"""A text as clauses, and the words that change, deny or compare in them: ``parts.toml``."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from deepera_graph.text.plain import read_lists
from deepera_graph.text.words import STOP_WORDS, held, split_sentences, stem_verb

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
ENOUGH = 0.5  # share of the words of a clause that a sentence has if it is about the same
NEAR = 5  # words between a negation and what it negates
COUNTED = "ˢ"  # marks a noun, or an adjective, that looks like a verb of change


def _signed(pairs: Sequence[Mapping[str, str]]) -> dict[str, tuple[str, int]]:
    """Return what each word stands for, and which side of it."""
    signed: dict[str, tuple[str, int]] = {}
    for pair in pairs:
        key = pair["for"].split()[0]
        for name, sign in (("for", 1), ("against", -1)):
            signed.update(dict.fromkeys(pair[name].split(), (f"{key}+", sign)))
    return signed


_LISTS = read_lists(__file__)
SETS = {name: frozenset(text.split()) for name, text in _LISTS.items() if isinstance(text, str)}
_NEGATIONS, ABSENCES, MODIFIERS = (SETS[one] for one in ("negations", "absences", "modifiers"))
FINDINGS, COMPARISONS = _signed(_LISTS["findings"]), _signed(_LISTS["comparisons"])
MORE_FINDINGS = _signed(_LISTS["more_findings"])
PATTERNS = {
    name: re.compile(one, re.IGNORECASE | re.VERBOSE) for name, one in _LISTS["patterns"].items()
}
APART, NO_AMOUNT = PATTERNS["apart"], PATTERNS["no_amount"]
KEYS = frozenset(key for key, _ in FINDINGS.values())
AMOUNT, WORTH = (COMPARISONS[one][0] for one in ("higher", "better"))
_DENYING = frozenset(word for word, (_, sign) in FINDINGS.items() if sign < 0)
WAYS = dict.fromkeys(SETS["up"], 1) | dict.fromkeys(SETS["down"], -1)  # of a word of change
_VERBS = SETS["auxiliaries"] | {  # behind a subject: "wax did", "wax improved"
    word for word in {*WAYS, *FINDINGS, *SETS["actions"]} if word.endswith(("s", "ed"))
}
AMOUNTS = (  # of a word beside an amount: its sign, 0 for either
    {word: sign for word, (key, sign) in COMPARISONS.items() if key == AMOUNT}
    | dict.fromkeys(SETS["gained"], 1)
    | dict.fromkeys(SETS["lost"], -1)
    | dict.fromkeys(SETS["differing"], 0)
    | WAYS
)
LESSENING = ABSENCES | SETS["lost"] | SETS["down"]  # "a higher loss of yield" is no more yield
_PAIRS, _MORE_PAIRS = (
    [pair.split("/") for pair in _LISTS[name].split()]
    for name in ("opposites", "opposites_of_falls")
)
OPPOSITES = dict([*_PAIRS, *((down, up) for up, down in _PAIRS), *_MORE_PAIRS])


class ReadClause(NamedTuple):
    """A clause of a text."""

    text: str
    words: tuple[str, ...]  # in lower case
    sentence: str
    denying: frozenset[str]  # the words of the sentence that deny something
    borrowed: tuple[str, ...]  # of an earlier clause: its subject in "but improved balance"

    @property
    def about(self) -> frozenset[str]:
        """The stems of what it is about."""
        return list_stems(self.borrowed + self.words)


def hide_designs(text: str) -> str:
    """Return a text without "double-blind" and "in four blocks", which are no changes."""
    # "Not waxed apples" and "those who were not waxed" are named so: "nonwaxed" denies nothing.
    return PATTERNS["groups"].sub(_name_group, PATTERNS["designs"].sub(" ", text))


def _name_group(found: re.Match[str]) -> str:
    is_finding = found["what"].lower() in {*WAYS, *FINDINGS, *MODIFIERS, *SETS["evidential"]}
    return found[0] if is_finding else f"{found['who']} non{found['what']}"


@held()
def read_parts(text: str) -> tuple[ReadClause, ...]:
    """Cut a text into clauses."""
    found: list[ReadClause] = []
    counted = rf"\g<before>\g<fewer>\g<noun>\g<counted>\g<accident>{COUNTED}"
    text = PATTERNS["nouns"].sub(counted, text)
    text = PATTERNS["joined_nouns"].sub(rf"\g<before>\g<noun>{COUNTED}", text)
    text = PATTERNS["none_of"].sub("no", PATTERNS["joined_non"].sub(r"\1", text))
    text = PATTERNS["described"].sub(rf"\g<before>\g<what>{COUNTED}", text)
    for one in split_sentences(hide_designs(text)):
        words = list_words(PATTERNS["not_only"].sub(" ", one.text))
        denying = frozenset(
            word
            for word in words
            if denies(word) or word in _DENYING or PATTERNS["prefixed"].match(word)
        )
        clauses = PATTERNS["clause"].split(PATTERNS["brackets"].sub(" ", one.text))
        words_of = [(clause, list_words(clause)) for clause in clauses if clause.strip()]
        borrowed = _borrow([words for _, words in words_of])
        found += (
            ReadClause(clause, words, one.text, denying, more)
            for (clause, words), more in zip(words_of, borrowed, strict=True)
        )
    return tuple(found)


def _borrow(clauses: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield what each clause of a sentence has of earlier ones: a subject, and what "it" is."""
    subject: tuple[str, ...] = ()
    thing: tuple[str, ...] = ()  # the subject with what is done to it: up to "in women"
    for words in clauses:
        own = tuple(takewhile(lambda word: word not in _VERBS, words))
        is_bare = len(own) < len(words) and all(map(_is_beside_verb, own))
        is_meant = is_bare and not SETS["pronouns"].isdisjoint(words)
        yield thing if is_meant else subject if is_bare else ()
        if not is_bare and own != words:
            subject = own
            thing = own + tuple(
                takewhile(lambda word: word not in SETS["prepositions"], words[len(own) :])
            )


def _is_beside_verb(word: str) -> bool:
    """Tell whether a word may stand before a verb that has no subject: "also", "not", "it"."""
    return word in STOP_WORDS or word in MODIFIERS or word.endswith("ly") or denies(word)


def list_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case."""
    return tuple(one.group().lower() for one in WORD.finditer(text))


def denies(word: str) -> bool:
    """Tell whether a word negates, or says that something is away."""
    return is_negation(word) or word in ABSENCES


def is_negation(word: str) -> bool:
    """Tell whether a word is "not" or the like."""
    return word in _NEGATIONS or word.endswith(("n't", "n’t"))


def list_stems(words: Sequence[str]) -> frozenset[str]:
    """Return what words are about: neither negations nor comparisons nor stop words."""
    return frozenset(
        FINDINGS.get(one, (stem_verb(one), 1))[0]
        for one in words
        if one not in STOP_WORDS
        and one not in COMPARISONS
        and one not in MODIFIERS
        and not denies(one)
    )


def list_set_apart(sentence: str) -> frozenset[str]:
    """Return the stems of what a sentence does not speak of: "beech" of "unlike beech"."""
    return list_stems(list_words(" ".join(PATTERNS["unlike"].findall(sentence))))


def list_meanings(word: str) -> list[tuple[str, int]]:
    """Return what a word stands for, and which side of it: "impairs" is the opposite of two."""
    first = FINDINGS.get(word, (stem_verb(word), 1))
    return [first, MORE_FINDINGS[word]] if word in MORE_FINDINGS else [first]
