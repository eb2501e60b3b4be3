"""Names in texts and questions: runs of words with capitals; titles, and texts that name them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from deepera_graph.text.words import STOP_WORDS, words

_WORD = re.compile(r"[^\W_][\w'’&./-]*")
_LINKS_TEXT = "of the de la le du del der den van von di da and a al el y e bin ibn &"
_LINKS = frozenset(_LINKS_TEXT.split())
_LOOSE_TEXT = "in on for to at no or from with"
_LOOSE_LINKS = _LINKS.union(_LOOSE_TEXT.split())  # as in titles of works
_MOST_LINKS = 2  # as in "University of the West Indies"
_OPENERS_TEXT = "name moreover furthermore since besides according known notable"
_OPENERS = STOP_WORDS.union(_OPENERS_TEXT.split())  # words that open a sentence and no name
_BRACKETS = re.compile(r"(?<!\s)\s*\([^)]*\)")
_QUOTED = re.compile(r"[\"“]([^\"“”]{2,80})[\"”]")
_BETWEEN = re.compile(r"\s(?:and|or|in|on|at|from|for|with|to|&)\s", re.IGNORECASE)
_ARTICLE = re.compile(r"^(?:the|an?) ")
_POSSESSIVE = re.compile(r"['’]s?$")


class Name(NamedTuple):
    """A name as it is written, and where it begins."""

    start: int
    text: str


def find_names(text: str, *, loose: bool = False) -> Iterator[Name]:
    """Yield the names of a text: words with a capital or a digit in a row, ``University of Leeds``.

    Stop words that open a name are no part of it. Numbers alone are no name. What opens a sentence
    may be taken for one. A *loose* reading joins by more prepositions, as titles of works do:
    ``Lost in Marl``.
    """
    joining = _LOOSE_LINKS if loose else _LINKS
    run: list[re.Match[str]] = []
    links: list[re.Match[str]] = []
    for word in _WORD.finditer(text):
        before = (links or run or [word])[-1]
        joined = not run or (text[before.end() : word.start()] in (" ", "\n") and _goes_on(before))
        if run and joined and word.group() in joining and len(links) < _MOST_LINKS:
            links.append(word)
        elif _has_capital(word.group()):
            if not joined:
                yield from _as_name(text, run)
                run = []
            run.append(word)
            links = []
        else:
            yield from _as_name(text, run)
            run, links = [], []
    yield from _as_name(text, run)


def _has_capital(word: str) -> bool:
    return word[0].isupper() or word[0].isdigit()


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
    """Return the names and quoted titles of a question, in order, each once.

    One with ``and``, ``or`` or a preposition in it comes whole and in parts: ``Venus and Mars`` may
    be one thing or two.
    """
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
