"""What of a statement a work lacks: numbers, and the population that it is of."""

import re

from deepera_graph.text.terms import missing_terms
from deepera_graph.text.words import words

_PEOPLE = "people"
_POPULATIONS = """
    children,child,paediatric,pediatric adolescents,adolescent,teenagers infants,infant,newborns
    adults,adult women,woman,female,females,pregnant men,man,male,males mice,mouse,murine rats,rat
    dogs,dog cats,cat pigs,pig,porcine monkeys,monkey,macaques elderly,older athletes,athlete
    people,humans,human,patients,participants,persons,volunteers
    """
_GROUPS = {word: one.split(",")[0] for one in _POPULATIONS.split() for word in one.split(",")}
_ANIMALS = frozenset(["mice", "rats", "dogs", "cats", "pigs", "monkeys"])


def find_gaps(statement: str, text: str) -> list[str]:
    """Say which numbers and populations of a statement the text of a work does not have."""
    missing = [term for term in missing_terms(statement, text) if re.search(r"\d", term)]
    notes = [f"not in what was read: {', '.join(missing)}"] if missing else []
    return [*notes, *_compare_populations(_populations(statement), _populations(text))]


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


def _populations(text: str) -> frozenset[str]:
    return frozenset(_GROUPS[one] for one in words(text) if one in _GROUPS)
