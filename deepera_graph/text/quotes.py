"""Where a quote stands in a text, or that it does not stand there."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

FEWEST_WORDS = 3
FEWEST_CHARACTERS = 15
_MOST_TRIES = 1000
_NEAR = 12
_FORMS = """
    -‐‑‒–—―⸺⁃−﹘﹣－ '‘’‚‛ʼʹʻˈ′‵`´＇ "“”„‟«»″‶＂ °º˚ ~∼～˜ ·⋅∙ *∗ Δ∆ ≤⩽ ≥⩾
    """  # the first of each group stands for all
_COMMON = {form: forms[0] for forms in _FORMS.split() for form in forms}
_COMMON |= dict.fromkeys("\n\r\v\f\x85\u2028\u2029", "\n")
_COMMON |= {"\u00ad": "\u00ad"}  # a soft hyphen stays for `_LAYOUT`; other format characters go
_OTHER_MEANING = ("<super>", "<sub>", "<fraction>", "<circle>")
_LAYOUT = re.compile(
    r"""
    (?=[-\s\u00ad']) (?:                                              # for speed
    (?P<soft> (?<=[^\W\d_]) (?: -\s++ | \u00ad\s*+ ) (?=[^\W\d_]) )      # inhi-\nbition
  | (?P<hard> (?<=\w) (?: -++ | \s++-++\s++ | -[^\S\n]*+\n\s*+ ) (?=\w) )  # IL-6, 10 - 15, IL-\n6
  | (?P<nothing> \u00ad | \s++ (?: $ | (?=[][(){}<>=≤≥±×%°/~≈] | [,;:.?!](?:\s|$)) )
               | (?<=[][(){}<>=≤≥±×%°/~≈]) \s++ )                        # p < 0.05, ( n )
  | (?P<space> \s{2,} | [^\S ] )
  | (?P<mark> '' ) )
    """,
    re.VERBOSE,
)
_WRITTEN = {"soft": "", "hard": "", "nothing": "", "space": " ", "mark": '"'}
_CUT = re.compile(
    r"""
    \w [-'/]? \0 [-'/]? [\w\u0300-\u036f]           # he|art, non-|inferior, does|n't, mg|/kg
  | [^\W\d_] (?: -\s+\0 | \0-\s+ ) [^\W\d_]         # inhi-\n|bition
  | \w \0 [+⁺⁻₊₋^]                                  # CD4|+, 10|⁻², 10|^6
  | [\w^] [-+^⁺⁻] \0 \w                             # 10^-|6
  | \d (?: \s*-\s*\0\s* | \s*\0\s*-\s* ) \d         # 10 - |15
  | \d [.,:·]? \0 [.,:·]? \d                        # 5|.2
  | (?<!\d) \d{1,3} [ ]? \0 [ ]? \d{3} (?!\d)       # 1 |200
  | (?: [-+$€£¥#] | (?<!\w)\. | [<>≤≥±≈~]\s* ) \0 \.?\d  # -|5, < |5
  | \d \0 \s* (?: [%‰°±] | [×x]\s*10 )              # 5| %
    """,
    re.VERBOSE,
)
# An em dash, unlike a hyphen, parts what it stands between; so do letters written without spaces.
_PARTING = re.compile(r"[—―⸺\u0e00-\u0eff\u2e80-\u9fff]|--+")
_WORD = re.compile(r"[^\W_]\S*")
_TELLING = re.compile(r"[^\W\d_]{3}|\d")
_AROUND = " \t\r\n\u00a0\"'“”„‟«»‘’‚‛`"
_ENDING = _AROUND + ".…,;:"


@dataclass(frozen=True, slots=True)
class FoundQuote:
    """A quote's place: the text's ``[start:end]``; both None if it was not found."""

    status: Literal["verbatim", "normalised", "not_found"]
    start: int | None
    end: int | None


_NOT_FOUND = FoundQuote("not_found", None, None)


def find_quote(
    text: str, quote: str, *, start: int = 0, end: int | None = None, any_length: bool = False
) -> FoundQuote:
    """Find the first place where a text says what a quote says, between two of its offsets.

    ``verbatim``: the place is the quote, but for white space around it. ``normalised``: it is the
    quote but for white space, hyphens at line ends, the form of dashes, quotation marks, ligatures
    and other Unicode variants, and quotation marks, an ellipsis or a full stop around the quote.
    Case, words, digits, superscripts and punctuation count, so an ellipsis inside is not skipped.

    A place never begins or ends inside a word, compound (``non-inferior``) or number (``5`` in
    ``15``, ``5.2``, ``-5``, ``5%``, ``5-10``). A quote needs `FEWEST_WORDS` words or
    `FEWEST_CHARACTERS` characters, and in them a number or three letters in a row. Takes time
    linear in the lengths: after 1000 places that read alike but do not fit, it is not found.

    Args:
        text: What is quoted from; the words around ``[start:end]`` are seen too.
        quote: What is said to stand there.
        start: First offset allowed, in [0, len(text)].
        end: Offset after the last one allowed, in [start, len(text)]; None for the text's end.
        any_length: Whether a quote of a single word will do.

    Raises:
        ValueError: *start* or *end* is out of range.
    """
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise ValueError(f"start and end must lie in [0, {len(text)}], got {start} and {end}")
    if not (any_length or _says_enough(quote)):
        return _NOT_FOUND
    for place in _find_verbatim(text, quote.strip(), start, end):
        return FoundQuote("verbatim", *place)
    core = quote.strip(_AROUND)
    for wanted in (quote.strip(), core, core.lstrip("….").strip(_ENDING)):
        for place in _find_normalised(text, wanted, start, end):
            return FoundQuote("normalised", *place)
    return _NOT_FOUND


def _says_enough(quote: str) -> bool:
    core = quote.strip(_ENDING)
    long_enough = len(_WORD.findall(core)) >= FEWEST_WORDS or len(core) >= FEWEST_CHARACTERS
    return long_enough and bool(_TELLING.search(core))


def _find_verbatim(text: str, quote: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for place in _places(text, quote, start, end):
        if _is_whole(text, place, place + len(quote)):
            yield place, place + len(quote)


def _find_normalised(text: str, quote: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    page, wanted = _read_page(text[start:end]), _read_page.__wrapped__(quote)
    for place in _places(page.text, wanted.text, 0, len(page.text)):
        span = page.layout.back(place, place + len(wanted.text))
        span = span and page.characters.back(*span)
        if span is None or not _has_same_hyphens(page, wanted, place):
            continue
        if _is_whole(text, span[0] + start, span[1] + start):
            yield span[0] + start, span[1] + start


def _places(text: str, quote: str, start: int, end: int) -> Iterator[int]:
    place = text.find(quote, start, end) if quote else -1
    for _ in range(_MOST_TRIES):
        if place < 0:
            return
        yield place
        place = text.find(quote, place + 1, end)


def _is_whole(text: str, start: int, end: int) -> bool:
    return not (_is_cut(text, start) or _is_cut(text, end))


def _is_cut(text: str, place: int) -> bool:
    return _cuts(text[max(0, place - _NEAR) : place], text[place : place + _NEAR])


@lru_cache(maxsize=1024)  # a text that repeats itself has many places alike
def _cuts(before: str, after: str) -> bool:
    plain = [
        _rewrite_characters(_PARTING.sub(" - ", part))[0].replace("\u00ad", "")
        for part in (before, after)
    ]
    return bool(_CUT.search("\0".join(plain)))


@dataclass(frozen=True, slots=True)
class _Pieces:
    """A rewritten text's pieces: where each begins, new and old, and whether it is a copy."""

    new: list[int]
    old: list[int]
    copied: list[bool]

    def back(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the old ``[start:end]``; None if it would cut a replacement."""
        first = bisect_right(self.new, start) - 1
        last = bisect_left(self.new, end) - 1
        if not (self.copied[first] or start == self.new[first]):
            return None
        if last + 1 < len(self.new) and self.new[last + 1] == end:
            return self._old(first, start), self.old[last + 1]
        return (self._old(first, start), self._old(last, end)) if self.copied[last] else None

    def _old(self, piece: int, place: int) -> int:
        return self.old[piece] + place - self.new[piece]


@dataclass(frozen=True, slots=True)
class _Page:
    """A text in its plain form, the way back, and where hyphens were taken out."""

    text: str
    characters: _Pieces
    layout: _Pieces
    soft: list[int]
    hard: list[int]


@lru_cache(maxsize=8)
def _read_page(text: str) -> _Page:
    plain, characters = _rewrite_characters(text)
    hyphens: dict[str, list[int]] = {"soft": [], "hard": []}

    def write(found: "re.Match[str]", place: int) -> str:
        kind = found.lastgroup or ""
        if kind in hyphens:
            hyphens[kind].append(place)
        return _WRITTEN[kind]

    plain, layout = _rewrite(plain, _LAYOUT, write)
    return _Page(plain, characters, layout, hyphens["soft"], hyphens["hard"])


def _rewrite_characters(text: str) -> tuple[str, _Pieces]:
    forms = {character: _rewrite_character(character) for character in set(text)}
    text = text.translate({ord(old): new for old, new in forms.items() if len(new) == 1})
    several = re.escape("\0" + "".join(old for old, new in forms.items() if len(new) != 1))
    return _rewrite(text, re.compile(f"[{several}]"), lambda found, _: forms[found.group()])


@lru_cache(maxsize=4096)
def _rewrite_character(character: str) -> str:
    """Return the common form of a character; none for one that cannot be seen."""
    if character in _COMMON or (character.isascii() and character.isprintable()):
        return _COMMON.get(character, character)
    if character.isspace():
        return " "
    if unicodedata.category(character) in ("Cf", "Cc") or "\ufe00" <= character <= "\ufe0f":
        return ""
    if unicodedata.decomposition(character).startswith(_OTHER_MEANING):
        return character
    if "\uac00" <= character <= "\ud7a3":  # a Korean syllable is left whole
        return character
    written = unicodedata.normalize("NFKD", character)
    return character if " " in written else "".join(_COMMON.get(one, one) for one in written)


def _rewrite(
    text: str, pattern: "re.Pattern[str]", write: Callable[["re.Match[str]", int], str]
) -> tuple[str, _Pieces]:
    parts: list[str] = []
    new, old, copied = [0], [0], [True]
    place = done = 0
    for found in pattern.finditer(text):
        begin, end = found.span()
        place += begin - done
        written = write(found, place)
        parts += (text[done:begin], written)
        new += (place, place + len(written))
        old += (begin, end)
        copied += (False, True)
        place += len(written)
        done = end
    return "".join([*parts, text[done:]]), _Pieces(new, old, copied)


def _has_same_hyphens(page: _Page, wanted: _Page, place: int) -> bool:
    """Check that a hyphen missing on one side may be one of a line end on the other."""
    end = place + len(wanted.text)
    soft, hard = _places_between(page.soft, place, end), _places_between(page.hard, place, end)
    return hard - set(wanted.hard) <= set(wanted.soft) and set(wanted.hard) - hard <= soft


def _places_between(places: list[int], start: int, end: int) -> set[int]:
    return {one - start for one in places[bisect_right(places, start) : bisect_left(places, end)]}
