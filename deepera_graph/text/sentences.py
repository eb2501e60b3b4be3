"""Sentences of scientific prose, each a verbatim slice of its text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

LONGEST = 800
_LONGEST_HELD = 20_000  # characters
_STOP = re.compile(
    r"(?<![.!?…。])[.!?…。]++[\"'”’)\]]*+(?=\s|$|[A-Z])"  # a full stop, even with no space after it
    r"|\n[ \t]*\n"  # an empty line
    r"|\n(?=[ \t]*(?:[-*•–]|\d{1,2}[.)])[ \t])"  # a list item
)
_ABBREVIATIONS = """
    approx ca cf dr e.g eq eqs fig figs i.e no nos nr prof ref refs resp sect subsp suppl tab viz
    vol vs mr mrs ms st
    """
_ENDINGS = "al sp spp var inc ltd co dept jr etc"
_OPENERS = """
    A After All Although An And As At Both But Compared During Each For From Furthermore He Here
    However If In Is It Moreover Most Neither No Of On One Only Other Our Patients She Since Some
    Such That The Their Then There These They This Those Three Thus To Two Under Using We When
    Whereas While With
    """
_NEVER_LAST = frozenset(_ABBREVIATIONS.split())
_SELDOM_LAST = frozenset(_ENDINGS.split())
_OPENING_WORDS = frozenset(_OPENERS.split())
_BEFORE = 24
_NEXT_WORD = re.compile(r"[A-Za-z]+")
_GLUED = re.compile(r"(?:[a-z]{3}|[)\]%0-9])$")
_GLUED_NEXT = re.compile(r"(?:[A-Z][a-z]+|A)(?=[\s,])")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: `text` is exactly the source's ``[start:end]``, without white space around."""

    start: int
    end: int
    text: str


def split_sentences(text: str, *, longest: int = LONGEST) -> list[Sentence]:
    """Cut a text into sentences, in order.

    Abbreviations, initials, decimals and species names do not end a sentence; an empty line and a
    list item do. A sentence above *longest* characters, >= 2, is cut at a semicolon, a comma or a
    space. Takes time linear in the length. A blank text has none.
    """
    if len(text) > _LONGEST_HELD:
        return list(_split_all.__wrapped__(text, longest))
    return list(_split_all(text, longest))


@lru_cache(maxsize=64)  # a passage is read several times in turn
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
    if word in _NEVER_LAST or _is_list_number(before, word):
        return True
    if word in _SELDOM_LAST or _is_initial(word):
        following = _NEXT_WORD.match(rest)
        return bool(rest) and (following is None or following.group() not in _OPENING_WORDS)
    return False


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
