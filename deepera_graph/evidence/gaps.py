"""What of a statement a work lacks: numbers, outcomes, and the population that it is of."""

import re
from collections.abc import Mapping

from deepera_graph.evidence.clauses import GENERAL, PATTERNS, list_denials, stems
from deepera_graph.judges.heuristic.topicality import same_meaning
from deepera_graph.judges.trained.direction.wording import sign_of
from deepera_graph.text.terms import missing_terms
from deepera_graph.text.words import content_words, stem_verb, words

_PEOPLE = "people"
_SHORTEST = 3  # letters of a word that names something
_POPULATIONS = """
    children,child,paediatric,pediatric adolescents,adolescent,teenagers infants,infant,newborns
    adults,adult women,woman,female,females,pregnant men,man,male,males mice,mouse,murine rats,rat
    dogs,dog cats,cat pigs,pig,porcine monkeys,monkey,macaques elderly,older athletes,athlete
    people,humans,human,patients,participants,persons,volunteers
    """
_CROPS = """
    wheat maize,corn rice barley oats,oat rye sorghum millet soybean,soybeans,soya potato,potatoes
    tomato,tomatoes cotton rapeseed,canola sunflower,sunflowers sugarcane cassava
    """


def _name_kinds(lists: str) -> dict[str, str]:
    return {word: one.split(",")[0] for one in lists.split() for word in one.split(",")}


_GROUPS, _KINDS_OF_CROPS = _name_kinds(_POPULATIONS), _name_kinds(_CROPS)
_ANIMALS = frozenset(["mice", "rats", "dogs", "cats", "pigs", "monkeys"])


def find_gaps(statement: str, text: str) -> list[str]:
    """Say which numbers, outcomes and populations of a statement a work does not have."""
    missing = [term for term in missing_terms(statement, text) if re.search(r"\d", term)]
    missing += _list_unnamed(statement, text)
    notes = [f"not in what was read: {', '.join(missing)}"] if missing else []
    for kinds in (_GROUPS, _KINDS_OF_CROPS):
        notes += _compare_populations(*(_list_kinds(one, kinds) for one in (statement, text)))
    return notes


def _list_unnamed(statement: str, text: str) -> list[str]:
    """Return what a statement says that nothing changes of, and the text has no word of."""
    there = set(map(same_meaning, stems(text)))
    missing: list[str] = []
    for said in list_denials(statement):
        heads = filter(None, map(_list_names, PATTERNS["within"].split(said)))
        named = {one: stem_verb(one) for one in next(heads, ())}
        if named and there.isdisjoint(map(same_meaning, named.values())):
            missing += [one for one in named if one.isalpha() and one not in missing]
    return missing


def _list_names(text: str) -> list[str]:
    words_of = (one for one in content_words(text) if len(one) >= _SHORTEST)
    named = [one for one in words_of if not sign_of(one) and not one[0].isdigit()]
    return [one for one in named if stem_verb(one) not in GENERAL]


def _compare_populations(here: frozenset[str], there: frozenset[str]) -> list[str]:
    """Say that a statement is of others than the work, where each names some."""
    extra, instead = here - there - {_PEOPLE}, there - here - {_PEOPLE}
    if extra and instead:
        return [f"another population: it is of {_list(instead)}, and not of {_list(extra)}"]
    if _PEOPLE in here and there and there <= _ANIMALS:
        return [f"another population: it is of {_list(there)}"]
    return []


def _list(groups: frozenset[str]) -> str:
    return ", ".join(sorted(groups))


def _list_kinds(text: str, kinds: Mapping[str, str]) -> frozenset[str]:
    return frozenset(kinds[one] for one in words(text) if one in kinds)
