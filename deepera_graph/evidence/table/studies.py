"""Of how many a study is, and how it was made; by rules."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from deepera_graph.text.terms import SPELT, read_spelt
from deepera_graph.text.words import split_sentences

Span = tuple[int, int]  # of the text, [start, end)
_COUNT = (
    rf"(?P<n>(?<![\w.,])\d{{1,3}}(?:[,\s\u00a0\u2009\u202f]\d{{3}})+\b|(?<![\w.,–-])\d+\b"
    rf"|\b{SPELT})(?![.,]\d|\s?%|-)"
)
_PEOPLE = (
    "patients|participants|adults|adolescents|teenagers|children|pupils|students|women|men|people"
    "|persons|individuals|subjects|volunteers|infants|newborns|residents|households|families|nurses"
    "|physicians|teachers|workers|drivers|runners|athletes|smokers|veterans|survivors|boys|girls"
    "|mothers|respondents|employees|couples"
)
_ANIMALS = (
    "mice|rats|dogs|cats|cows|calves|pigs|piglets|sheep|lambs|horses|hens|chickens|birds|fish"
    "|rabbits|monkeys|cattle|heifers|bees|colonies"
)
_THINGS = (
    "plots|fields|sites|ponds|lakes|streams|forests|stands|meadows|orchards|farms|trees|plants|pots"
    "|cities|roofs|streets|schools|classes|hospitals|beams|cylinders|specimens|samples|discs|panels"
    "|cells|films|implants|teeth|eyes|soils|lamps|greenhouses|villages|districts|items"
)
_SIZE = re.compile(
    r"(?<![\w])[nN]\s*=\s*(?P<n>\d{1,3}(?:[,\s]\d{3})+\b|\d+)\b"
    r"(?P<each>\s*(?:per|each|in\s+each))?"
)
_CASES = re.compile(
    rf"{_COUNT}\s+(?:\w+\s+){{0,5}}?(?:cases|patients)\b[^.;]{{0,40}}?\band\s+(?P<m>\d[\d,]*)\s+"
    r"(?:\w+\s+){0,2}controls\b"
)
_DONE = re.compile(
    rf"(?:\bIn|\b[Ww]e\s+(?:\w+ly\s+)?\w+(?:ed|ew|ook|ept))\s+(?:all\s+)?{_COUNT}\s+(?:[\w-]+\s+){{0,2}}?"
    r"(?!studies|trials|times|groups|types|kinds|years|weeks|days|months|hours|minutes)[a-z]+s\b"
)
_COUNTED = [
    re.compile(rf"{_COUNT}\s+(?:(?!of\b|and\b|to\b)[\w-]+\s+){{0,3}}?(?:{nouns})\b", re.IGNORECASE)
    for nouns in (_PEOPLE, _ANIMALS, _THINGS)
] + [_DONE]
_N_LIVING = 2  # of these kinds
_DESIGNS: tuple[tuple[str, str], ...] = (
    ("meta-analysis", r"meta-?\s?analy\w+"),
    ("systematic review", r"systematic(?:ally)?\s+review\w*"),
    ("crossover trial", r"cross-?over"),
    ("cluster-randomised trial", r"cluster-?\s?randomi[sz]ed"),
    ("randomised trial", r"randomi[sz]ed|randomly\s+(?:assigned|allocated)|RCT\b"),
    ("case-control", r"case[-–\s]control"),
    ("cohort", r"cohort(?!s)|(?:were|was)?\s*followed\s+for\b"),
    ("cross-sectional", r"cross-?\s?sectional|surveys?\b|questionnaires?\s+(?:of|among|in)"),
    (
        "before-after",
        r"before[-\s](?:and[-\s])?after\s+(?:study|design|trial|comparison)|pre-?post",
    ),
    ("time series", r"(?:interrupted\s+)?time[-\s]series"),
    ("field experiment", r"field\s+(?:experiments?|trials?)"),
    ("laboratory experiment", r"laboratory\s+(?:experiments?|stud\w+)|in\s+vitro"),
    (
        "animal experiment",
        r"\b(?:in|of)\s+(?:\w+\s+)?(?:mice|rats|rabbits|zebrafish)\b|^(?:mice|rats)\b",
    ),
    ("case report", r"case\s+(?:report|series)"),
    ("observational", r"observational(?!\s+studies\b)"),
    ("experiment", r"\bexperiments?\b"),
)
_FOUND = [
    (name, re.compile(rf"(?<!non-)(?<!non)(?:{said})", re.IGNORECASE)) for name, said in _DESIGNS
]
# What is said of studies that are not there: "randomised trials are needed".
_AHEAD = re.compile(
    r"\b(?:(?:call|need|wait)\w*\s+for|needs?|require|future|further|before|until|lack\s+of)"
    r"\s+(?:[\w-]+,?\s+){0,3}$",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"(?:\s+[\w-]+){0,4}\s+(?:are|is|remain)\s+(?:\w+\s+)?"
    r"(?:needed|required|warranted|lacking|missing|scarce|rare|few)\b",
    re.IGNORECASE,
)
_OF_STUDIES = ("meta-analysis", "systematic review")
_LEAST_THINGS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencePart:
    """A value, and the place of the text that it is taken from."""

    value: str
    span: Span


def find_design(text: str) -> SentencePart | None:
    """Return how a study was made, in the first words that say so; None if none do."""
    for name, pattern in _FOUND:
        for found in pattern.finditer(text):
            if not _is_wanted(text, found):
                return SentencePart(value=name, span=found.span())
    return None


def _is_wanted(text: str, found: re.Match[str]) -> bool:
    """Tell whether a sentence says of such a study that it is not there yet."""
    begin = max(text.rfind(". ", 0, found.start()), text.rfind("\n", 0, found.start())) + 1
    end = text.find(". ", found.end())
    before, after = text[begin : found.start()], text[found.end() : None if end < 0 else end]
    return bool(_AHEAD.search(before) or _BEHIND.match(after))


def find_size(text: str) -> SentencePart | None:
    """Return of how many a study is: told as such, people, animals, then what was measured."""
    if found := _CASES.search(text):
        total = _to_int(found["n"]) + _to_int(found["m"])
        return SentencePart(value=str(total), span=found.span())
    design = find_design(text)
    is_of_studies = design is not None and design.value in _OF_STUDIES
    counted = _COUNTED[:_N_LIVING] if is_of_studies else _COUNTED
    return next(chain(_read_sizes(text), _count_nouns(text, counted)), None)


def _read_sizes(text: str) -> Iterator[SentencePart]:
    """Yield a size that is told as ``n = 20``, of several in a sentence their sum."""
    for sentence in split_sentences(text):
        found = list(_SIZE.finditer(sentence.text))
        if not found or any(one["each"] for one in found):
            continue
        spans = found[0].start() + sentence.start, found[-1].end() + sentence.start
        yield SentencePart(value=str(sum(_to_int(one["n"]) for one in found)), span=spans)


def _count_nouns(text: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[SentencePart]:
    """Yield the largest count of each kind that is a size."""
    for pattern in patterns:
        found = [one for one in pattern.finditer(text) if _is_size(text, one)]
        of_many = [one for one in found if _to_int(one["n"]) >= _LEAST_THINGS]
        if of_many:
            best = max(of_many, key=lambda one: _to_int(one["n"]))
            yield SentencePart(value=str(_to_int(best["n"])), span=best.span())


def _is_size(text: str, found: re.Match[str]) -> bool:
    """Tell a size from a year, a time and a dose."""
    inner = text[found.end("n") : found.end()]
    is_time = re.match(
        r"\s*(?:years?|weeks?|days?|months?|hours?|minutes?|mg|g|kg|km|m|mm|ml)\b", inner
    )
    before = text[max(0, found.start() - 6) : found.start()]
    is_year = re.search(r"\b(?:in|since|of)\s*$", before) and re.fullmatch(
        r"(?:19|20)\d\d", found["n"]
    )
    return not is_time and not is_year


def _to_int(said: str) -> int:
    digits = re.sub(r"[,\s]", "", said)
    return int(digits) if digits.isdigit() else read_spelt(said)
