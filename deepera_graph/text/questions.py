"""What a question looks like, and in words what passages say to it: directions, positions."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from deepera_graph.schema import FOR_MANY, Direction
from deepera_graph.text.plain import read_lists
from deepera_graph.text.words import STOP_WORDS, words

_WORDS = {name: text.split() for name, text in read_lists(__file__).items()}
_ANY = {name: f"(?:{'|'.join(found)})" for name, found in _WORDS.items()}
_ASKING = re.compile(rf"{_ANY['asking']}\b", re.IGNORECASE)
_YES_OR_NO = re.compile(
    rf"(?:^|[:;,.?!–—]\s+|\s-\s+){_ANY['auxiliary']}(?:n['’]t)?\s+\w", re.IGNORECASE
)
_LEAST_CLAIM = 4  # words; fewer are keywords
_WORD = re.compile(r"[^\W_][\w'’&./-]*")
_LINKS = frozenset(_WORDS["links"])
_LOOSE_LINKS = _LINKS.union(_WORDS["loose_links"])
_MOST_LINKS = 2  # as in "University of the West Indies"
_OPENERS = STOP_WORDS.union(_WORDS["openers"])
_BRACKETS = re.compile(r"(?<!\s)\s*\([^)]*\)")
_QUOTED = re.compile(r"[\"“]([^\"“”]{2,80})[\"”]")
_BETWEEN = re.compile(r"\s(?:and|or|in|on|at|from|for|with|to|&)\s", re.IGNORECASE)
_ARTICLE = re.compile(r"^(?:the|an?) ")
_POSSESSIVE = re.compile(r"['’]s?$")


def looks_like_claim(question: str) -> bool:
    """Tell whether a question is a claim to be checked: no question mark, no asking word first."""
    text = question.strip()
    return not text.endswith(("?", "？", "؟")) and not _ASKING.match(text)


def asks_yes_or_no(question: str) -> bool:
    """Tell whether yes or no answers a question, as in ``Does A affect B?``, ``A: is it B?``."""
    # A claim of four words or more is answered so, too.
    text = question.strip()
    if looks_like_claim(text):
        return len(text.split()) >= _LEAST_CLAIM
    return _YES_OR_NO.search(text) is not None


_VERBS = _WORDS["verbs"]
_STATES = {f"{verb}s": verb for verb in _VERBS} | {"reaches": "reach", "causes": "cause"}
_SUBORDINATE = re.compile(rf"[,;:()]|\b{_ANY['subordinate']}\b", re.IGNORECASE)
_MOST_WORDS = 20


def ask_claim(claim: str) -> str:
    """Return a short claim of one clause as a question, ``A prevents B`` as ``Does A prevent B?``.

    ``A is B`` becomes ``Is A B?`` only where a participle follows (*associated*, *caused*), as
    elsewhere it is not known where A ends. Empty for what cannot be rewritten, and for a question.
    """
    text = claim.strip().rstrip(".")
    found = text.split()
    is_short = len(found) + 1 >= _LEAST_CLAIM and len(found) <= _MOST_WORDS
    if not looks_like_claim(claim) or not is_short or _SUBORDINATE.search(text):
        return ""
    places = [place for place, word in enumerate(found) if place and _is_verb(found, place)]
    if len(places) != 1:
        return ""
    [place] = places
    subject, rest = " ".join(_start_small(found[:place])), " ".join(found[place + 1 :])
    verb = found[place]
    if verb in _BEING:
        return f"{verb.capitalize()} {subject} {rest}?" if rest else ""
    base = _STATES.get(verb, verb)
    return f"{'Does' if verb in _STATES else 'Do'} {subject} {base} {rest}?" if rest else ""


_BEING = ("is", "are", "was", "were")


def _is_verb(found: list[str], place: int) -> bool:
    word = found[place]
    if word in _BEING:
        return place + 1 < len(found) and found[place + 1].endswith("ed")
    return word in _STATES or (word in _VERBS and found[place - 1].endswith("s"))


def _start_small(subject: list[str]) -> list[str]:
    """Write the first word small, unless it is a name or an abbreviation for all that is known."""
    first, *others = subject
    is_plain = first[0].isupper() and first[1:].islower() and len(first) > 1
    return [first.lower() if is_plain else first, *others]


_FOR_ONE: Mapping[Direction, str] = {
    "supports": "supports",
    "contradicts": "contradicts",
    "no_difference": "no difference",
    "mixed": "mixed",
    "unclear": "unclear",
}


def count_positions(positions: Iterable[str]) -> dict[str, int]:
    """Count positions, the most frequent first; those of the same words in any order are one."""
    found: dict[tuple[str, ...], list[str]] = {}
    for one in filter(None, positions):
        found.setdefault(tuple(sorted(re.findall(r"\w+", one.casefold()))), []).append(one)
    return {said[0]: len(said) for said in sorted(found.values(), key=len, reverse=True)}


def name_direction(direction: Direction | None) -> str:
    """Return a direction in words, e.g. ``no difference``; empty for None."""
    return _FOR_ONE[direction] if direction else ""


def count_directions(directions: Iterable[Direction | None]) -> dict[Direction, int]:
    """Count directions, in the order of `Direction`; those that do not occur are left out."""
    found = Counter(directions)
    return {one: found[one] for one in _FOR_ONE if found[one]}


def describe_directions(
    counts: Mapping[Direction, int], positions: Mapping[str, int] | None = None
) -> str:
    """Return e.g. ``3 support, 1 contradicts, 1 no difference``; empty if nothing is counted.

    Positions come after them: ``2 say kinesin-3 faster, 1 says no difference in speed``.
    """
    directions = (
        f"{n} {_FOR_ONE[one] if n == 1 else FOR_MANY.get(one, _FOR_ONE[one])}"
        for one, n in counts.items()
    )
    said = (f"{n} {'says' if n == 1 else 'say'} {one}" for one, n in (positions or {}).items())
    return ", ".join((*directions, *said))


class Name(NamedTuple):
    """A name as it is written, and where it begins."""

    start: int
    text: str


def find_names(text: str, *, loose: bool = False) -> Iterator[Name]:
    """Yield names in a text: words with a capital or a digit in a row, ``University of Leeds``."""
    # Stop words that open a name are no part of it. Numbers alone are no name. What opens a
    # sentence may be taken for one. A *loose* reading joins by more prepositions, as titles of
    # works do: ``Lost in Marl``.
    joining = _LOOSE_LINKS if loose else _LINKS
    run: list[re.Match[str]] = []
    links: list[re.Match[str]] = []
    for word in _WORD.finditer(text):
        before = (links or run or [word])[-1]
        joined = not run or (text[before.end() : word.start()] in (" ", "\n") and _goes_on(before))
        if run and joined and word.group() in joining and len(links) < _MOST_LINKS:
            links.append(word)
        elif word.group()[0].isupper() or word.group()[0].isdigit():
            if not joined:
                yield from _as_name(text, run)
                run = []
            run.append(word)
            links = []
        else:
            yield from _as_name(text, run)
            run, links = [], []
    yield from _as_name(text, run)


def _goes_on(word: re.Match[str]) -> bool:
    """Whether a name may go on after a word: not after a full stop, unless of an initial."""
    return not word.group().endswith(".") or len(word.group()) <= len("Jr.")


def _as_name(text: str, run: list[re.Match[str]]) -> Iterator[Name]:
    rest = [*run]
    while rest and rest[0].group().lower().rstrip(".'’") in _OPENERS:
        rest.pop(0)
    if rest:
        start = rest[0].start()
        written = _POSSESSIVE.sub("", text[start : rest[-1].end()].rstrip(".-/"))
        if as_words(written) and not all(one.group().isdigit() for one in rest):
            yield Name(start, written)


def question_names(question: str) -> list[str]:
    """Return the names and quoted titles of a question, in order, each once."""
    # One with ``and``, ``or`` or a preposition in it comes whole and in parts: ``Venus and Mars``
    # may be one thing or two.
    found: dict[str, str] = {}
    written = [one.text for one in find_names(question, loose=True)] + _QUOTED.findall(question)
    for name in written:
        for part in (name, *_BETWEEN.split(name)):
            bare = as_words(part)
            if bare and not bare.isdigit() and bare not in STOP_WORDS:
                found.setdefault(bare, part)
    return [*found.values()]


def without_brackets(title: str) -> str:
    """Return a title without what tells it from others of its name: ``Brand (play)`` is Brand."""
    end = title.rfind(")") + 1  # so that every bracket that opens is closed somewhere
    return (_BRACKETS.sub("", title[:end]) + title[end:]).strip() or title.strip()


def as_words(name: str) -> str:
    """Return a name's words in lower case, without an article, to be compared."""
    return _ARTICLE.sub("", " ".join(words(name)))


def contains_words(text: str, name: str) -> bool:
    """Tell whether the words of a name stand in a row in a text; both as `as_words` gives them."""
    return f" {name} " in f" {text} "
