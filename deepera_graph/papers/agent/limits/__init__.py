"""What a question asks of papers and does not want, how rules read it, and what breaks it.

A sentence breaks an exclusion if it says that the paper is about, uses or is tested on the thing.
Word forms, "schoolchildren", "honeybees", "GNNs" and a few other names of the thing count; all of
its words have to stand together, so that excluding "honey bees" leaves other bees. A sentence that
denies it ("without drones") or only compares with it ("than drones") does not count. The words are
in `words.toml`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from deepera_graph.errors import SettingsError
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.same_study import find_document, find_studies
from deepera_graph.literature.versions import tell_versions
from deepera_graph.papers.agent.limits.patterns import MANY, WORDS, any_of
from deepera_graph.papers.paper import list_set_fields
from deepera_graph.papers.results import Scope
from deepera_graph.text.words import STOP_WORDS, split_sentences, stem, stems, words

if TYPE_CHECKING:
    from langchain_core.documents import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a question asks for, and what it does not want; years are inclusive."""

    question: str
    topic: str  # what is searched for: the question without its limits
    exclude: tuple[str, ...] = ()  # must not be what it is about, uses or is tested on; as asked
    year_from: int | None = None
    year_to: int | None = None
    not_years: tuple[int, ...] = ()
    venues: tuple[str, ...] = ()  # only these
    not_venues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()  # only these kinds of documents: ``review``, ``trial`` ...
    not_types: tuple[str, ...] = ()
    better: tuple[str, ...] = ()  # what has to come out ahead, and of what: ``("A", "B")``
    notes: tuple[str, ...] = ()  # what could not be read, in words

    def narrow(self, scope: Scope, venues: Sequence[str] = ()) -> tuple[Scope, tuple[str, ...]]:
        """Return a scope with the question's years and venues in it, and notes on what was not."""
        # What the caller limited stays limited: the narrower of two limits holds. Limits that leave
        # no year are an error of `Scope`, unless the question alone causes it: then its years are
        # left out, with a note. A venue that the base does not know cannot be asked for.
        notes: list[str] = []
        low = max(filter(None, (scope.year_from, self.year_from)), default=None)
        high = min(filter(None, (scope.year_to, self.year_to)), default=None)
        if low is not None and high is not None and low > high:
            notes.append(f"no year is from {low} and up to {high}: the question's are left out")
            low, high = scope.year_from, scope.year_to
        known = {one.casefold(): one for one in venues}
        only = tuple(one for one in self.venues if one.casefold() in known)
        barred = tuple(one for one in self.not_venues if one.casefold() in known)
        unknown = [one for one in (*self.venues, *self.not_venues) if one.casefold() not in known]
        notes += [f"no paper of the base is from the venue {one!r}" for one in unknown]
        if scope.venues and only:
            asked = {one.casefold() for one in only}
            only = tuple(one for one in scope.venues if one.casefold() in asked)
            if not only:
                notes.append("the question's venues are not among those searched: left out")
        narrowed = replace(
            scope,
            year_from=low,
            year_to=high,
            venues=only or scope.venues,
            not_venues=tuple(dict.fromkeys((*scope.not_venues, *barred))),
        )
        return narrowed, tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the limits that are set, with question and topic, as JSON has them."""
        return list_set_fields(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Limits":
        """Return the limits of `to_dict`."""
        lists = {name: tuple(value) for name, value in plain.items() if isinstance(value, list)}
        return cls(**{**plain, **lists})


def check_limits(limits: Limits) -> Limits:
    """Return limits that were written by a model or a caller, or raise."""
    if limits.year_from and limits.year_to and limits.year_from > limits.year_to:
        raise SettingsError(f"no year is from {limits.year_from} and up to {limits.year_to}")
    if len(limits.better) not in (0, 2):
        raise SettingsError(f"a comparison has two sides, got {list(limits.better)!r}")
    return limits


_MATCHING: Mapping[str, Any] = WORDS["matching"]
_DENYING: Mapping[str, int] = _MATCHING["denying"]
_USED = frozenset(_MATCHING["used"])
_REACH = max(_DENYING.values())  # words before a phrase that may deny it
_GONE = re.compile(
    rf"^(?:\W*\w+){{0,3}}?\W*(?:{any_of(_MATCHING['gone'])}"
    rf"|(?:not|never)\s+(?:\w+\s+)?(?:{any_of(_MATCHING['used'])}))",
    re.I,
)
_GENERAL = frozenset(map(stem, _MATCHING["general"]))
_GENERAL_AFTER_TWO = frozenset(map(stem, _MATCHING["general_after_two"])) | _GENERAL
_COMPOUNDING = frozenset(_MATCHING["compounding"])
_SAME = {tuple(stems(one)): group for group in _MATCHING["same"] for one in group}
_SHORTEST_FIRST_PART = 3  # letters of what stands before a noun in a word written as one
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_ACRONYM = re.compile(r"[A-Z][A-Za-z]*[A-Z]s?|[A-Z]{2,}s?")
_LINKS = frozenset(_MATCHING["links"])
_FEWEST_INITIALS = 3  # "RL" may be anything


def says(sentence: str, phrase: str) -> bool | None:
    """Whether a sentence names an excluded thing as what the paper does; None: not at all."""
    # False: it only denies it, or compares with it.
    found = list(_WORD.finditer(sentence))
    plain = [" ".join(words(one[0])) or one[0].lower() for one in found]
    said = [
        not _is_denied(plain, start) and not _GONE.search(sentence[found[end - 1].end() :])
        for start, end in _places(plain, [one[0] for one in found], phrase)
    ]
    return any(said) if said else None


def goes_by_words(sentence: str, phrase: str, topic: str) -> bool:
    """Whether nearness in meaning says nothing: part of an excluded phrase is there without it."""
    # What is near "honey bees" is near to bees, which are asked for, or are named in the sentence.
    return not _parts(phrase).isdisjoint(_parts(topic) | _parts(sentence))


@lru_cache(maxsize=256)
def _parts(text: str) -> frozenset[str]:
    """Return the stems of a text, and those of nouns that end its words: "bee" of "honeybees"."""
    ends = [noun for one in words(text) for noun in _COMPOUNDING if _ends(one, (noun,))]
    return frozenset((*stems(text), *map(stem, ends)))


def _places(plain: Sequence[str], raw: Sequence[str], phrase: str) -> Iterator[tuple[int, int]]:
    """Yield where a phrase stands, as places of its first word and behind its last."""
    content = [(at, stem(one)) for at, one in enumerate(plain) if one not in STOP_WORDS]
    forms, initials, endings = _forms(phrase)
    for form in forms:
        n = len(form)
        for at in range(len(content) - n + 1):
            start, end = content[at][0], content[at + n - 1][0] + 1
            between = set(plain[start:end]) & STOP_WORDS
            if tuple(one for _, one in content[at : at + n]) == form and between <= _LINKS:
                yield start, end
    for at, word in enumerate(raw):
        if _ends(word.lower(), endings) or (initials and word.rstrip("s") == initials):
            yield at, at + 1
    if _ACRONYM.fullmatch(phrase):
        yield from _spelled_out(content, phrase.rstrip("s").lower(), plain)


@lru_cache(maxsize=256)
def _forms(phrase: str) -> tuple[frozenset[tuple[str, ...]], str, tuple[str, ...]]:
    """Return the stems that name a phrase, its initials, and the nouns that end compounds of it."""
    forms: set[tuple[str, ...]] = set()
    endings: list[str] = []
    for one in _SAME.get(tuple(stems(phrase)), (phrase,)):
        said = tuple(stems(one))
        forms |= {said, (stem("".join(words(one))),)}  # written as one, too: ``honeybee``
        if len(said) > 1 and said[-1] in (_GENERAL_AFTER_TWO if len(said) > 2 else _GENERAL):
            forms |= {said[:-1], (said[-1], *said[:-1])}
        elif len(said) > 1:
            forms.add((said[-1], *said[:-1]))
        endings += [one.lower()] if one.lower() in _COMPOUNDING else []
    initials = "".join(one[0] for one in words(phrase)).upper()
    forms.discard(())
    return (frozenset(forms), initials if len(initials) >= _FEWEST_INITIALS else "", tuple(endings))


def _ends(word: str, endings: Sequence[str]) -> bool:
    return any(
        word.endswith(one) and len(word) >= len(one) + _SHORTEST_FIRST_PART for one in endings
    )


def _spelled_out(
    content: Sequence[tuple[int, str]], initials: str, plain: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Yield where the content words in a row begin with the letters of an acronym."""
    n = len(initials)
    if n < _FEWEST_INITIALS:
        return
    for at in range(len(content) - n + 1):
        if "".join(plain[place][0] for place, _ in content[at : at + n]) == initials:
            yield content[at][0], content[at + n - 1][0] + 1


def _is_denied(plain: Sequence[str], start: int) -> bool:
    """Whether the words before a place deny or compare what stands there."""
    for back, word in enumerate(reversed(plain[max(0, start - _REACH) : start])):
        if back < _DENYING.get(word, 0):
            return True
    before = plain[max(0, start - _REACH - 1) : start]
    if before and before[-1] == "not":
        return True
    nots = [
        at for at, word in enumerate(before) if word in ("not", "never") or word.endswith("n't")
    ]
    return bool(nots) and not _USED.isdisjoint(before[nots[-1] :])


def breaks_by_facts(paper: Mapping[str, Any], limits: Limits) -> tuple[str, str]:
    """Return the limit that year, venue or kind of a paper breaks, and its words that say so."""
    # Both are empty if it breaks none. One that does not say what kind it is breaks no `not_types`;
    # it breaks `types` if it has an abstract.
    year, venue = paper.get("year"), str(paper.get("venue") or "").casefold()
    if year in limits.not_years:
        return f"not from {year}", ""
    if year and limits.year_from and year < limits.year_from:
        return f"from {limits.year_from} on", ""
    if year and limits.year_to and year > limits.year_to:
        return f"up to {limits.year_to}", ""
    if venue and venue in {one.casefold() for one in limits.not_venues}:
        return f"not at {paper['venue']}", ""
    return _breaks_by_kind(paper, limits)


def _breaks_by_kind(paper: Mapping[str, Any], limits: Limits) -> tuple[str, str]:
    if not limits.types and not limits.not_types:
        return "", ""
    kinds = find_kinds(paper["title"], paper["abstract"], str(paper.get("venue") or ""))
    if paper.get("is_preprint"):
        kinds.setdefault("preprint", "")
    for kind in limits.not_types:
        if kind in kinds:
            return f"no {MANY[kind]}", kinds[kind]
    if limits.types and paper["abstract"] and kinds.keys().isdisjoint(limits.types):
        return f"only {name_kinds(limits.types)}", ""
    return "", ""


def name_kinds(kinds: Iterable[str]) -> str:
    """Return what is asked for with "only": ``trials or reviews``."""
    return " or ".join(MANY[one] for one in kinds)


def leave_out(
    passages: "Iterable[Document]", limits: Limits
) -> "tuple[list[Document], list[tuple[Document, str]]]":
    """Part passages from those that break a limit of years or kinds, with the limit of each."""
    # All passages of one study are read together, and share its year; see `breaks_by_facts`. A
    # study of which only pieces were found breaks no `types`: another piece may say its kind.
    given = list(passages)
    found = find_studies((one.id or "", one.metadata) for one in given)
    studies: dict[int, list[Document]] = defaultdict(list)
    for one, (number, _) in zip(given, found, strict=True):
        studies[number].append(one)
    broken = {number: _breaks(study, limits) for number, study in studies.items()}
    told = [(one, broken[number]) for one, (number, _) in zip(given, found, strict=True)]
    return [one for one, why in told if not why], [(one, why) for one, why in told if why]


def _breaks(study: "Sequence[Document]", limits: Limits) -> str:
    known = [Citation.of(one.metadata, one.id or "") for one in study]
    whole = known[0].borrow(known[1:])
    text = "\n\n".join(one.page_content for one in study)
    year = int(whole.year) if whole.year else None
    paper = {"title": whole.title, "abstract": text, "venue": whole.venue, "year": year}
    paper |= {"is_preprint": all(one.kind == "preprint" for one in tell_versions(known))}
    is_whole = any(not find_document(one.id or "", one.metadata) for one in study)
    return breaks_by_facts(paper, limits if is_whole else replace(limits, types=()))[0]


def find_kinds(title: str, abstract: str, venue: str) -> dict[str, str]:
    """Return the kinds of documents that a paper says it is, each with the words that say so."""
    kinds: dict[str, str] = {}
    for kind, (of_title, of_text, venues) in _KINDS.items():
        if of_title.search(title):
            kinds[kind] = title
        elif found := of_text.search(abstract):
            kinds[kind] = _sentence_of(found, abstract)
        elif venue.casefold().strip() in venues:
            kinds[kind] = venue
    for kind, (among, said) in _PARTS.items():
        if among in kinds and (words := _words_of_part(said, _KINDS[among], title, abstract)):
            kinds[kind] = words
    return kinds


def _words_of_part(said: "re.Pattern[str]", whole: "_Patterns", title: str, abstract: str) -> str:
    """Return the words of a paper by which it is part of a kind: a trial that is randomised."""
    of_title, of_text, _ = whole
    if (found := of_title.search(title)) and said.search(found[0]):
        return title
    finds = (one for one in of_text.finditer(abstract) if said.search(one[0]))
    return next((_sentence_of(one, abstract) for one in finds), "")


def _sentence_of(found: "re.Match[str]", text: str) -> str:
    return next(one.text for one in split_sentences(text) if one.end >= found.end())


_Patterns = tuple["re.Pattern[str]", "re.Pattern[str]", Any]  # of titles, of texts; and venues


def _kind_patterns(said: Mapping[str, Any]) -> _Patterns:
    of_trials, of_types = (WORDS["adjectives"][name] for name in ("of_trials", "of_types"))
    adjectives = rf"(?:(?:{any_of([*of_types, *of_trials])}),?\s+)*"
    signs = [sign for one in _WHOLE_KINDS.values() for sign in one["signs"]]
    title = re.compile(  # also the second of two kinds: "a systematic review and meta-analysis"
        rf"(?:^|[:.?!]\s|\s-\s)\s*{adjectives}(?:(?:{any_of(signs)})\s+(?:and|with)\s+{adjectives})?"
        rf"(?:{any_of(said['signs'])})(?=\s*$|\s*[:.,]|\s+(?:of|on|and|with|for|in|about|to)\b)",
        re.I,
    )
    led = (
        rf"|(?:{any_of(said['leads'])}|(?-i:{any_of(said['opening'])}))\s+(?:(?:{any_of(of_trials)}),?\s+(?:and\s+)?)+"
        rf"(?:{any_of(said['signs'])})"
        if "leads" in said
        else ""
    )
    return title, re.compile(any_of(said["text"]) + led, re.I), said.get("venues", ())


def _part_pattern(said: Mapping[str, Any]) -> tuple[str, "re.Pattern[str]"]:
    behind = "".join(rf"(?<!{re.escape(one)})" for one in said["not_behind"])
    return said["among"], re.compile(rf"{behind}(?:{any_of(said['words'])})", re.I)


_WHOLE_KINDS = {kind: said for kind, said in WORDS["types"].items() if "among" not in said}
_KINDS = {kind: _kind_patterns(said) for kind, said in _WHOLE_KINDS.items()}
_PARTS = {kind: _part_pattern(said) for kind, said in WORDS["types"].items() if "among" in said}
