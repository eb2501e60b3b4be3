"""Terms of a text: numbers, units and names, and which of them a summary may take over."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from deepera_graph.text.drift.parts import AMOUNTS, APART, NO_AMOUNT, WORD
from deepera_graph.text.plain import read_lists
from deepera_graph.text.words import STOP_WORDS

_WORDS: Final = read_lists(__file__)
_ONES: Final = {word: number for number, word in enumerate(_WORDS["ones"].split())}
_TENS: Final = {word: 10 * number for number, word in enumerate(_WORDS["tens"].split(), start=2)}
_ANY: Final = "|".join([*_TENS, *sorted(_ONES, key=len, reverse=True)])
SPELT: Final = (
    rf"(?:(?:{_ANY}|a)[\s-]hundred(?:(?:[\s-]and)?[\s-](?:{_ANY})(?:-(?:{_ANY}))?)?"
    rf"|(?:{'|'.join(_TENS)})(?:[\s-](?:{'|'.join(_ONES)}))?|(?:{'|'.join(_ONES)}))\b"
)
_SPELT_NUMBER = re.compile(rf"\b{SPELT}", re.IGNORECASE)


def read_spelt(words: str) -> int:
    """Return the number that words say which `SPELT` matches, in any capitals."""
    total = 0
    for word in re.split(r"[\s-]+", words.lower().strip()):
        if word == "hundred":
            total *= 100
        elif word != "and":
            total += 1 if word == "a" else _TENS.get(word, _ONES.get(word, 0))
    return total


def write_numbers(text: str) -> str:
    """Write numbers in words as digits."""
    return _SPELT_NUMBER.sub(lambda found: str(read_spelt(found.group())), text)


_REACH = 200  # characters from a word of change to its amount, at most
_UNSEEN = re.compile(r"[\u00ad\u200b-\u200d\u2060\ufeff]\s*")
_LINE_END = re.compile(r"(?<=[^\W\d_])-\s*\n\s*(?=[^\W_])")
_SIGNS = str.maketrans(dict.fromkeys("‐‑‒–—−⁻", "-") | dict.fromkeys("’ʼ", "'"))
_PRINTED = str.maketrans(
    dict.fromkeys("º˚", "°") | {one: unicodedata.normalize("NFKC", one) for one in "ﬀﬁﬂﬃﬄ"}
)
_VALUES = {word: str(value) for word, value in _ONES.items() if 2 <= value <= 12}
_GREEK_SET = frozenset(_WORDS["greek"].values())
_GREEK = str.maketrans(_WORDS["greek"])
_UNIT = r"""(?:(?:[fpnμµumcdkMGT]?(?:m|g|[lL]|mol|M|s|Hz|Pa|J|W|V|A|eV|Da|bp|b|cal|Bq|Sv|Gy|N|C|K
    |U|IU|bar|pc|yr)|°\s?[CF]?|[%‰]|min|hr?s?|d|wk|rpm|pp[mbt]|dB|mmHg|ha|(?i:percent|per\scent
    |fold|times|hundred|thousand|[mbtr]+illion|(?:milli|micro|nano|kilo|centi|mega)?(?:gram|met(?:er
    |re)|lit(?:er|re)|mole|volt|watt|joule|dalton|second)s?|(?:minute|hour|day|week|month|year
    |decade|degree|tonne|hectare|dollar)s?))(?:[²³]|⁻[¹²³]|\^?[-−]?[123])?(?![^\W_]))"""
_OF = r"(?:\s(?:CO[₂2]|[A-Z][a-z]?)(?=/|\sper\s|\s\w++(?:⁻|\^?[-−])[¹²³1-3]))?"  # ``kg N ha−1``
_SAME_UNIT: Mapping[str, str] = _WORDS["same_unit"]
_POWER = "[⁺⁻]?[⁰¹²³⁴-⁹]+"
_TOKEN = re.compile(
    rf"""(?:(?P<compare>[<>=≤≥])\s*)?(?P<number>(?:(?<![\w)\]%°])[-‒–−])?
        (?:[1-9]\d{{0,2}}(?:\s\d{{3}})++(?!\d) | \d++)(?:[.,:]\d++)*+
        (?:{_POWER}|\^[-+−]?\d++|[eE][-+−]?\d++(?![^\W_]))?+
      | (?<!\w)[-−]?\.\d++ | (?i:\b(?:{"|".join(_VALUES)})(?=\b|fold)))
      (?:[\s‐‑‒–-]{{0,2}}(?P<unit>{_UNIT}(?:{_OF}(?:/|\sper\s|[\s·](?=\w++(?:⁻|\^?[-−]))){_UNIT})*)
      | (?![^\W\d_⁰¹²³⁴-⁹]))
  | (?P<name>\d*+[^\W\d_⁰¹²³⁴-⁹][^\W_]*+(?:\.\d++|[-'‐‑‒–’][^\W_]++)*+)""",
    re.VERBOSE,
)
# 12·5 as The Lancet prints it, and no product as in 3·10⁶.
_RAISED_POINT = re.compile(rf"(?<=\d)[·⋅∙](?=\d)(?!10(?:\^|{_POWER}))")
_LINKS = frozenset(_WORDS["links"].split())
_GAP = re.compile(r"[\s,;/()±×–−-]*")
_SYMBOL = re.compile(r"[A-Za-z]\s?[<>=≤≥]")
_INITIAL = re.compile(r"[A-Z]\. [a-z]")
_PLURAL = re.compile(r"(?<=[a-z]{2})s$|(?<=[A-Z]{2})s$")
_SHORT: Mapping[str, str] = _WORDS["short"]
_SHARE_OF_NOTHING = re.compile(r"[%‰](?:(?<=(?<![\d\s]).)|(?<=(?<![\d\s])\s.))")  # no number before
_OPENING = re.compile(r"[.!?;:…\n][\s\"'(\[“‘*•–-]*(?:\(?\d{1,2}[.)]\s+)?$")
_SUBSTANCE = re.compile(
    r"(?:[^bs]ium|[lnrt]ase|mycin|cillin|mab|nib|vir|azole|statin|pril|sartan|olol|oxide|idine"
    r"|amide|coccus|bacter|bacillus|ella|virus|myces)$"
)
_EPITHET = re.compile(r"[a-z]{2,}(?:us|um|is|[ei]i|ae|ens|ans|li|ana|ata|ica|osa)$")


def missing_terms(summary: str, passage: str) -> list[str]:
    """List the terms of a summary that do not occur in the passage, in order, each once."""
    # A term is a number with its sign, comparison and unit, or a word with a digit, a capital or a
    # Greek letter. Numbers match whole (``5`` is not in ``15``), ``1,200`` as ``1200`` and ``two``
    # as ``2``; one that the passage has only with other units or comparisons is missing. A sign may
    # be said in words, ``fell by 5%`` for ``-5%``, and ``12·5`` is ``12.5``. Names keep
    # their case, but ``RNAs`` is ``RNA`` and a first capital alone may be small in the passage. A
    # compound may be put together from parts of the passage, though ``IL-8`` not from ``IL`` and
    # ``8``. A plain word that opens a sentence is a term only if it ends like the name of a
    # substance or organism. Takes time linear in the lengths.
    # Source: Summaries that change entities or numbers are a way to fail that a study of DeepEra
    # names.
    known = _Known(passage)
    before: _Token | None = None
    missing: dict[str, None] = {}
    text = _clean_text(summary)
    for token in _read_tokens(text):
        genus, epithet = token.species or ("", "")
        if before and genus and epithet not in known.species.get(genus, (epithet,)):
            missing[text[before.start : token.end]] = None
        if not token.values and not known.has_name(token.parts, _opens_sentence(text, token.start)):
            missing[token.text] = None
        if token.values and not (known.has_number(token, before) or known.has_signed(token, text)):
            missing[token.text] = None
        before = token
    return list(missing)


class _Token(NamedTuple):
    """A number or a name in a text, in the form that is compared."""

    start: int
    end: int
    text: str
    values: tuple[str, ...]  # of a number; of ``1 200``, which may be two numbers, all three
    parts: tuple[str, ...]  # of a name; of a number its first value
    compare: str
    unit: str  # in ``5 and 10 mg`` that of both
    has_unit: bool  # beside it
    species: tuple[str, str] | None  # genus and epithet, with the token before


class _Known:
    """What a passage has: names, units and comparisons of its numbers, epithets by genus."""

    def __init__(self, passage: str) -> None:
        self.text = text = _clean_text(passage)
        self.names = set(_SHARE_OF_NOTHING.findall(text))
        self.units: dict[str, set[str]] = defaultdict(set)
        self.comparisons: dict[str, set[str]] = defaultdict(set)
        self.species: dict[str, set[str]] = defaultdict(set)
        for variant in {text, _LINE_END.sub("-", text), _LINE_END.sub("", text)}:
            self._add(variant)
        plain = " ".join(text.lower().split())
        self.names.update(short for short, long in _SHORT.items() if long in plain)
        self.small = {name.lower() for name in self.names}

    def _add(self, text: str) -> None:
        before: _Token | None = None
        for token in _read_tokens(text):
            parts = token.parts
            if len(parts) == 1:
                self.names.add(parts[0])
            else:
                self.names.update("".join(parts[start:end]) for start, end in _list_runs(parts))
            if before and text[before.end : token.start].isspace():
                self.names.add(before.parts[-1] + parts[0])
            if token.species:
                genus, epithet = token.species
                self.species[genus].add(epithet)
                self.species[genus[0]].add(epithet)
                self.names.add(genus[0])
            for value in token.values:
                self.units[value].add(token.unit)
                self.comparisons[value].update(token.compare)
            before = token

    def has_number(self, token: _Token, before: _Token | None) -> bool:
        value, *pieces = token.values
        if value not in self.units:
            after_name = before is not None and before.parts[-1] + value in self.names
            return after_name or (bool(pieces) and self.units.keys() >= set(pieces))
        seen, compared, unit = self.units[value], self.comparisons[value], token.unit
        if compared and token.compare and token.compare not in compared:
            return False
        loose = unit in self.names or not token.has_unit
        return not unit or unit in seen or ("" in seen and loose)

    def has_signed(self, token: _Token, text: str) -> bool:
        """Whether a number is in both, with its sign in words in one and in digits in the other."""
        value = token.values[0]
        if value.startswith("-"):
            units = self.signed.get(value, ())
            return bool(units) and (not token.unit or token.unit in units)
        if f"-{value}" not in self.units:
            return False
        signed = _find_signed(text, token)
        return any(self.has_number(token._replace(values=(one,)), None) for one in signed)

    @cached_property
    def signed(self) -> Mapping[str, set[str]]:
        """Units by numbers that words say are less: ``-5`` of "fell by 5%"."""
        found: dict[str, set[str]] = defaultdict(set)
        for token in _read_tokens(self.text):
            for value in _find_signed(self.text, token):
                found[value].add(token.unit)
        return found

    def has_name(self, parts: Sequence[str], opens: bool) -> bool:
        reached = {0}
        for start, end in _list_runs(parts):
            alone = end - start < len(parts) and end - start == 1 and _is_bound(parts[start])
            if start in reached and not alone and self._has(parts[start:end], opens and not start):
                reached.add(end)
        return len(parts) in reached

    def _has(self, run: Sequence[str], opens: bool) -> bool:
        name = "".join(run)
        if name in self.names or (name.islower() and name.isalpha() and _GREEK_SET.isdisjoint(run)):
            return True
        if not name.istitle():
            return False
        if opens and name.isalpha() and not _SUBSTANCE.search(name):
            return True
        return len(name) > 1 and (name.lower() in self.small or name.lower() in STOP_WORDS)


def _clean_text(text: str) -> str:
    text = _UNSEEN.sub("", unicodedata.normalize("NFC", text).translate(_PRINTED))
    text = _RAISED_POINT.sub(".", text)
    return re.sub(r"\s+", lambda blank: "\n" if "\n" in blank[0] else " ", text)


def _read_tokens(text: str) -> list[_Token]:
    """Return the tokens, in order."""
    found = list(_TOKEN.finditer(text))
    units: list[str] = []
    unit, start = "", len(text)
    for one in reversed(found):
        if one["unit"]:
            unit = _normalise_unit(one["unit"])
        elif not (one["number"] or one["name"] in _LINKS) or not _GAP.fullmatch(
            text, one.end(), start
        ):
            unit = ""
        units.append(unit)
        start = one.start()
    tokens: list[_Token] = []
    for place, (one, unit) in enumerate(zip(found, reversed(units), strict=True)):
        values = _parse_number(one["number"].lower()) if one["number"] else ()
        token = _Token(
            *one.span(),
            text=one.group(),
            values=values,
            parts=values[:1] if one["number"] else _split_name(one["name"]),
            compare=one["compare"] or "",
            unit=unit,
            has_unit=bool(one["unit"]),
            species=_find_species(text, found[place - 1], one) if place else None,
        )
        tokens.append(token)
    return tokens


def _find_signed(text: str, token: _Token) -> tuple[str, ...]:
    """Return ``-5`` for the 5 of "fell by 5" or of "differed by 5"; else nothing."""
    if not token.values or token.values[0].startswith("-"):
        return ()
    sign = _read_sign(text, token.start, token.end)
    return (f"-{token.values[0]}",) if sign is not None and sign <= 0 else ()


def _read_sign(text: str, start: int, end: int) -> int | None:
    """Return the sign that words give to the number at ``[start:end]``; 0 leaves it open."""
    # "Lowered by 5%" and "5% lower" say -5%: the word right behind it, or else the last before it
    # in its clause. None if no word does, or if the number is no amount of a change.
    behind = WORD.match(text, end + 1)
    if behind and behind.group().lower() in AMOUNTS:
        return AMOUNTS[behind.group().lower()]
    before = APART.split(text[max(0, start - _REACH) : start])[-1]
    in_brackets = before.rfind("(") > before.rfind(")")
    if not in_brackets and NO_AMOUNT.search(before):
        return None
    words = (one.group().lower() for one in WORD.finditer(before))
    signs = [AMOUNTS[one] for one in words if one in AMOUNTS]
    return signs[-1] if signs else None


@lru_cache(maxsize=4096)
def _normalise_unit(unit: str) -> str:
    unit = re.sub(rf"{_OF}\s*(?:/|\sper\s)\s*|{_OF}$", "/", unit)
    unit = unicodedata.normalize("NFKC", unit.translate(_SIGNS))
    unit = re.sub(r"(?:\s[A-Z]\w*)?[\s·](\w+?)\^?-(?:1|([23]))\b", r"/\1\2", unit).replace("^", "")
    return "/".join(map(_normalise_one, unit.strip("/").split("/")))


def _normalise_one(unit: str) -> str:
    if len(unit) > 3:
        unit = unit.lower().removesuffix("s")
    return _SAME_UNIT.get(
        unit, unit.replace("° ", "°").replace("l", "L") if len(unit) < 3 else unit
    )


@lru_cache(maxsize=4096)
def _parse_number(number: str) -> tuple[str, ...]:
    value = re.sub(_POWER, lambda raised: "^" + unicodedata.normalize("NFKC", raised[0]), number)
    value = "".join(value.translate(_SIGNS).split())
    if re.fullmatch(r"-?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", value):
        value = value.replace(",", "")
    value = _VALUES.get(value, re.sub(r"^(-?)\.", r"\g<1>0.", value))
    pieces = number.split()
    return (value, *pieces) if len(pieces) > 1 else (value,) if value else ()


@lru_cache(maxsize=4096)
def _split_name(written: str) -> tuple[str, ...]:
    name = unicodedata.normalize("NFKC", written.translate(_SIGNS)).translate(_GREEK)
    parts = [part for part in re.split("[-']", name) if part and part != "s"] or [name]
    return tuple(part if part.lower() in STOP_WORDS else _PLURAL.sub("", part) for part in parts)


def _list_runs(parts: Sequence[str]) -> Iterator[tuple[int, int]]:
    for end in range(1, len(parts) + 1):
        yield from ((start, end) for start in range(max(0, end - 4), end))


def _is_bound(part: str) -> bool:
    return not part.isalpha() or part in _GREEK_SET or (len(part) < 3 and not part.islower())


def _opens_sentence(text: str, start: int) -> bool:
    """Tell whether a capital may be no name: it opens a sentence or is the symbol in P < 5."""
    if _INITIAL.match(text, start):
        return False
    before = text[start - 24 : start] if start >= 24 else "\n" + text[:start]
    return bool(_OPENING.search(before) or _SYMBOL.match(text, start))


def _find_species(text: str, before: re.Match[str], token: re.Match[str]) -> tuple[str, str] | None:
    genus, epithet = before.group(), token.group()
    between = ". " if len(genus) == 1 else " "
    if not genus.istitle() or text[before.end() : token.start()] != between:
        return None
    if not STOP_WORDS.isdisjoint((genus.lower(), epithet)):
        return None
    return (genus, epithet) if _EPITHET.match(epithet) else None
