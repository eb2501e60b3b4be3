"""Sentences of scientific prose, each a verbatim slice of its text; words, stems, their rarity."""

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakSet

from deepera_graph.text.plain import read_lists

_TOKEN = re.compile(r"[^\W_]+(?:[-‐‑/'’.,][^\W_]+)*")
_NAME_WITH_NUMBER = re.compile(r"[A-Za-z]*[A-Z][A-Za-z]*[-‐‑](?:\d+[A-Za-z]?|[αβγδκλ])$")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*$")
_SPLIT_LABEL = re.compile(r"[\s/&,]+")
_SPLIT = re.compile(r"[-‐‑/'’.,]")
_GREEK_NAMES = "alpha beta gamma delta epsilon kappa lambda mu sigma tau omega"
_GREEK = str.maketrans(dict(zip("αβγδεκλμστω", _GREEK_NAMES.split(), strict=True)))
_LISTS = read_lists(__file__)
_SETS = {name: frozenset(text.split()) for name, text in _LISTS.items() if isinstance(text, str)}
_VERBS = {form: verb for verb, forms in _LISTS["irregular_verbs"].items() for form in forms.split()}
STOP_WORDS = _SETS["stop"]
_WEIGHT_IN_NAMES = 0.4  # of a word, so that two of them tell nothing
_WEIGHT_OF_ACCENT = 0.5  # of a word with letters that English has in a few loans alone
_FOREIGN_ENDING = re.compile(
    r"[a-zäöüß]{2,}iert|[A-Z]?[a-zäöüß]{4,}(?:ierung|keit|heit|schaft)"  # German
    # Spanish, Portuguese, Italian, French
    r"|(?!trinidad)[a-z]{3,}(?:idad|idade|amiento|zione|zioni|mente|eux)"
)
_ELISION = re.compile(r"\b(?:[lLdDnN]|[qQ]u|[dDnN]ell|[aA]ll|[sS]ull)['’](?=[a-zàâéèêîôû]{3})")
_WEIGHT_OF_ELISION = 0.6
_OPENING_MARK = re.compile("[¿¡]")
_ENGLISH = STOP_WORDS - _SETS["in_several"]
_MOST_OTHER_LETTERS = 0.3  # share of letters that are neither Latin nor Greek
# Longest first; a suffix goes only if at least so many letters remain.
_SUFFIXES = (
    ("izations", 3), ("isations", 3), ("ization", 3), ("isation", 3), ("ational", 4),
    ("ators", 4), ("ating", 4), ("ator", 4), ("ated", 4), ("ates", 4), ("ate", 4),
    ("fulness", 3), ("ousness", 3), ("iveness", 3), ("ations", 4), ("ation", 4), ("ative", 4),
    ("ement", 4), ("ments", 4), ("ment", 4), ("ities", 4), ("ically", 3), ("icity", 4),
    ("ness", 4), ("ance", 4), ("ence", 4), ("ancy", 4), ("ency", 4), ("able", 4), ("ible", 4),
    ("ized", 4), ("ised", 4), ("izing", 4), ("ising", 4), ("ize", 4), ("ise", 4), ("ity", 4),
    ("ical", 4), ("ally", 4), ("ular", 4), ("ious", 4), ("ive", 4), ("ous", 4), ("ion", 4),
    ("ing", 3), ("ant", 5), ("ent", 5), ("ied", 3), ("ies", 3), ("ic", 4), ("al", 4), ("ly", 4),
    ("ed", 3), ("er", 4), ("or", 5), ("is", 4), ("es", 4), ("e", 3), ("y", 3),
)  # fmt: skip
_VOWELS = frozenset("aeiouy")


def words(text: str) -> list[str]:
    """Return the words in order, in lower case, with numbers whole."""
    # ``IL-6`` and ``TGF-β`` become ``il6`` and ``tgfbeta``; other compounds are taken apart:
    # ``Li-ion`` gives ``li``, ``ion``. Sub- and superscripts become plain: ``CO₂`` gives ``co2``.
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    found: list[str] = []
    for token in _TOKEN.findall(text):
        if not token.isalnum():
            found.extend(_split_compound(token))
        elif token.isascii():
            found.append(token.lower())
        else:
            found.append(_to_plain(token))
    return found


def looks_english(text: str) -> bool:
    """Whether a question may be English: no other script, no more foreign words than its own."""
    # Words of other languages, their endings, accents and elisions count against it. What holds
    # nothing of the kind, such as a few names, may be English. Of other languages, those of
    # ``words.toml`` and of other scripts are told; a few nouns in one may pass.
    letters = [letter for letter in text if letter.isalpha()]
    n_other = sum(
        not unicodedata.name(letter, "").startswith(("LATIN", "GREEK", "MICRO"))
        for letter in letters
        if not letter.isascii()
    )
    if n_other > _MOST_OTHER_LETTERS * len(letters):
        return False
    found = [word for word in re.findall(r"[^\W_]+", text) if word.isalpha()]
    foreign = sum(_foreignness(word, is_first=not place) for place, word in enumerate(found))
    foreign += _WEIGHT_OF_ELISION * len(_ELISION.findall(text))
    foreign += len(_OPENING_MARK.findall(text))
    english = sum(word.lower() in _ENGLISH for word in found)
    return foreign < 1 or foreign <= english


def _foreignness(word: str, *, is_first: bool) -> float:
    """Return how much a word speaks for another language, in [0, 1]; names say nothing."""
    plain = word.lower() if is_first and word.istitle() else word
    if _FOREIGN_ENDING.fullmatch(plain):
        return 1.0
    if not plain.islower():
        return 0.0
    if plain in _SETS["foreign"]:
        return 1.0
    if plain in _SETS["in_names"]:
        return _WEIGHT_IN_NAMES
    has_accent = word.islower() and any("à" <= letter <= "ÿ" for letter in word)
    return _WEIGHT_OF_ACCENT * (has_accent and word not in _SETS["loans"])


def content_words(text: str) -> list[str]:
    """Return the words that are no stop words, in order."""
    return [word for word in words(text) if word not in STOP_WORDS]


def stems(text: str) -> list[str]:
    """Return the stems of the content words, in order, with repetitions."""
    return [stem(word) for word in words(text) if word not in STOP_WORDS]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return what the forms of a word share: ``infect`` for infection, infected, infects."""
    # A few endings are cut off, plural and derivation alike, so that a stem is no word but a key.
    # Words with a digit and words of up to three letters stay as they are.
    if len(word) <= 3 or not word.isalpha():
        return word
    word = _to_singular(_to_american(_LISTS["irregular"].get(word, word)))
    for _ in range(2):
        word = _remove_suffix(word)
    return _remove_double(word)


def stem_verb(word: str) -> str:
    """Return the stem of a word, or of the irregular verb it is a form of: ``keep`` for kept."""
    # What was trained on stems goes by `stem` alone, to which keep and kept are two words.
    return stem(_VERBS.get(word, word))


def is_general(word: str) -> bool:
    """Whether a word is a number or common in questions of any science."""
    return word[0].isdigit() or stem(word) in GENERAL_STEMS


def rarity(stem: str) -> float:
    """Weight of a stem: 0 for one found in every document, 1 for one the table does not know."""
    # Source: Inverse document frequency, Robertson and Sparck Jones (1976), scaled to [0, 1]; the
    # counts are those of ``term_counts.json``, which names its documents.
    n_documents, counts = _count_stems()
    n_with = counts.get(stem, 0)
    return math.log((n_documents + 1) / (n_with + 1)) / math.log(n_documents + 1)


@cache
def _count_stems() -> tuple[int, Mapping[str, int]]:
    table = json.loads(Path(__file__).with_name("term_counts.json").read_text(encoding="utf-8"))
    return table["documents"], table["counts"]


def _split_compound(token: str) -> list[str]:
    if _NAME_WITH_NUMBER.match(token):
        return [_to_plain(_SPLIT.sub("", token))]
    if _NUMBER.match(token):
        return [token]
    return [_to_plain(part) for part in _SPLIT.split(token) if part not in ("s", "t")]


def _to_plain(token: str) -> str:
    token = token.lower()
    if token.isascii():
        return token
    token = unicodedata.normalize("NFKD", token.translate(_GREEK))
    return "".join(letter for letter in token if not unicodedata.combining(letter))


def _to_american(word: str) -> str:
    word = word.replace("ae", "e").replace("oe", "e").replace("yz", "ys")
    return word.replace("our", "or") if len(word) > 5 else word


def _to_singular(word: str) -> str:
    if word.endswith(("ss", "us", "is")) or not word.endswith("s"):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "ches", "shes", "xes", "zes", "ses")):
        return word[:-2]
    return word[:-1]


def _remove_suffix(word: str) -> str:
    for suffix, least in _SUFFIXES:
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            if len(rest) >= least and not _VOWELS.isdisjoint(rest):
                return rest
    return word


def _remove_double(word: str) -> str:
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in _VOWELS:
        return word[:-1]
    return word


GENERAL_STEMS = frozenset(map(stem, _SETS["general"]))


MOST_TEXTS = 512  # passages of some questions
MOST_SENTENCES = 2048
LONGEST_HELD = 5_000  # characters: what is made of all texts held takes some megabytes

OtherP = ParamSpec("OtherP")
MadeT = TypeVar("MadeT")
_HOLDS: "WeakSet[Any]" = WeakSet()


def held(
    most: int = MOST_TEXTS,
) -> Callable[
    [Callable[Concatenate[str, OtherP], MadeT]], Callable[Concatenate[str, OtherP], MadeT]
]:
    """Hold what a function makes of the *most* texts asked for lately, the same object for all."""
    # What it makes must not be changed. Longer texts than `LONGEST_HELD` are not held.

    def hold_what_is_made(
        make: Callable[Concatenate[str, OtherP], MadeT],
    ) -> Callable[Concatenate[str, OtherP], MadeT]:
        hold: Any = lru_cache(maxsize=most)(make)
        _HOLDS.add(hold)

        @wraps(make)
        def find(text: str, /, *args: OtherP.args, **kwargs: OtherP.kwargs) -> MadeT:
            use: Callable[Concatenate[str, OtherP], MadeT] = (
                hold if len(text) <= LONGEST_HELD else make
            )
            return use(text, *args, **kwargs)

        return find

    return hold_what_is_made


def forget_all() -> None:
    """Let go of all that is held, as a new process begins."""
    for hold in list(_HOLDS):
        hold.cache_clear()


LONGEST = 800
_STOP = re.compile(
    r"(?<![.!?…。])[.!?…。]++[\"'”’)\]]*+(?=\s|$|[A-Z])"  # a full stop, even with no space after it
    r"|\n[ \t]*\n"  # an empty line
    r"|\n(?=[ \t]*(?:[-*•–]|\d{1,2}[.)])[ \t])"  # a list item
)
_BEFORE = 24
_NEXT_WORD = re.compile(r"[A-Za-z]+")
_UNIT = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d+)?\s?[VAWJKNTFCLmgshd]\Z")  # ``at 1.9 V.``
_GLUED = re.compile(r"(?:[a-z]{3}|[)\]%0-9])$")
_GLUED_NEXT = re.compile(r"(?:[A-Z][a-z]+|A)(?=[\s,])")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: `text` is exactly the source's ``[start:end]``, without white space around."""

    start: int
    end: int
    text: str


def split_sentences(text: str, *, longest: int = LONGEST) -> list[Sentence]:
    """Cut a text into sentences, in order."""
    # Abbreviations, initials, decimals and species names do not end a sentence; an empty line and a
    # list item do. A sentence above *longest* characters, >= 2, is cut at a semicolon, a comma or a
    # space. Takes time linear in the length. A blank text has none.
    return list(_split_all(text, longest))


@held()  # all passages of a question are read several times
def _split_all(text: str, longest: int) -> tuple[Sentence, ...]:
    sentences: list[Sentence] = []
    start = 0
    for end in _find_ends(text):
        for piece_start, piece_end in _cut_long(text, start, end, longest):
            sentence = _strip_sentence(text, piece_start, piece_end)
            if sentence.text:
                sentences.append(sentence)
        start = end
    return tuple(sentences)


def drop_label(sentence: str) -> str:
    """Return a sentence without the name of its part of an abstract: ``Conclusions: ...``."""
    head, colon, rest = sentence.partition(": ")
    named = _SPLIT_LABEL.split(head.strip().lower())
    is_label = named[-1] in _SETS["labels"] and head.strip()[:1].isupper()
    is_label = is_label and _SETS["labels"].union(_SETS["label_links"]).issuperset(named)
    return rest.lstrip() if colon and is_label and rest.strip() else sentence


def _find_ends(text: str) -> Iterator[int]:
    start = 0
    for stop in _STOP.finditer(text):
        if _is_end(text, start, stop):
            yield stop.end()
            start = stop.end()
    yield len(text)


def _is_end(text: str, start: int, stop: "re.Match[str]") -> bool:
    begin, end = stop.span()
    mark = text[begin]
    if mark == "\n":
        return True
    before = text[max(start, begin - _BEFORE) : begin]
    after = text[end : end + _BEFORE]
    if after[:1].isalpha():
        return bool(_GLUED.search(before) and _GLUED_NEXT.match(after))
    rest = after.lstrip()
    if rest[:1].islower():
        return False
    return mark != "." or not _is_abbreviation(before, rest)


def _is_abbreviation(before: str, rest: str) -> bool:
    last = before.rsplit(maxsplit=1)[-1:] or [""]
    word = last[0].lstrip("([\"'“‘").lower()
    if word in _SETS["never_last"] or _is_list_number(before, word):
        return True
    is_named = bool(_UNIT.search(before)) or _ends_a_name(before)
    if word in _SETS["seldom_last"] or (_is_initial(word) and not is_named):
        following = _NEXT_WORD.match(rest)
        return bool(rest) and (following is None or following.group() not in _SETS["openers"])
    return False


def _ends_a_name(before: str) -> bool:
    return before.split()[-2:-1] != [] and before.split()[-2].lower() in _SETS["lettered"]


def _is_initial(word: str) -> bool:
    if len(word) > 1 and word[1] != ".":
        return False
    return bool(word) and all(len(part) == 1 and part.isalpha() for part in word.split("."))


def _is_list_number(before: str, word: str) -> bool:
    return len(word) <= 2 and word.isdigit() and before.strip() == word


def _cut_long(text: str, start: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
    while end - start > longest:
        cut = _find_cut(text, start + longest // 2, start + longest)
        yield start, cut
        start = cut
    yield start, end


def _find_cut(text: str, start: int, end: int) -> int:
    for mark in ("; ", ", ", " "):
        place = text.rfind(mark, start, end)
        if place >= 0:
            return place + len(mark)
    return end


def _strip_sentence(text: str, start: int, end: int) -> Sentence:
    piece = text[start:end].rstrip()
    n_characters = len(piece)
    piece = piece.lstrip()
    start += n_characters - len(piece)
    return Sentence(start, start + len(piece), piece)
