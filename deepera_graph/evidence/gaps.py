"""What of a statement a work lacks: numbers, outcomes, and the population that it is of."""

import re
from collections.abc import Mapping

from deepera_graph.evidence.clauses import GENERAL, PATTERNS, list_denials, stems
from deepera_graph.judges.heuristic.topicality import same_meaning
from deepera_graph.judges.trained.direction.wording import sign_of
from deepera_graph.text.terms import missing_terms
from deepera_graph.text.words import content_words, stem_verb, words

_CAUSES = re.compile(
    r"\b(?:causes?|caused|causing|causal\w*|(?:leads?|led)\sto|results?\sin|prevents?|prevented)\b",
    re.IGNORECASE,
)
_GOES_ALONG = re.compile(
    r"\b(?:associated|associations?|correlat\w+|linked)\s(?:with|to|between)\b", re.IGNORECASE
)
_NO_RESULT = re.compile(
    r"\s*(?:(?:background|context|introduction)\b[^:.]{0,20}:"
    r"|(?:(?:objectives?|aims?|purpose)\b[^:.]{0,20}:\s*)?(?:we\s+(?:aimed|sought)|to\s+(?:assess"
    r"|determine|test|examine|evaluate|investigate|compare|study|explore))\b)",
    re.IGNORECASE,
)
# What may be so, where nothing is said of what was found: "mulch may prevent erosion".
_SUPPOSES = re.compile(
    r"\b(?:(?-i:may)|might|could|(?:is|are|was|were)\s+(?:thought|believed|supposed|expected|hypothesi[sz]ed)"
    r"|we\s+hypothesi[sz]ed?)\b",
    re.IGNORECASE,
)
_FOUND = re.compile(
    r"\d|\b(?:suggest|indicat|show|reveal|demonstrat|conclu|found|find|observ|report|result"
    r"|evidence|data|stud(?:y|ies)\b)",
    re.IGNORECASE,
)
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
    for what, kinds in (("population", _GROUPS), ("crop", _KINDS_OF_CROPS)):
        notes += _compare_kinds(what, *(_list_kinds(one, kinds) for one in (statement, text)))
    return notes


def list_shortfalls(statement: str, sentence: str) -> list[str]:
    """Say that a sentence is no result, or has a cause of a claim as an association."""
    notes = ["it is the aim or the background of the work, and no result"]
    notes = notes if _NO_RESULT.match(sentence) else []
    if supposes_more(statement, sentence):
        notes.append("it only says what may be so")
    linked = _GOES_ALONG.search(PATTERNS["nothing"].sub(" ", sentence))
    if _CAUSES.search(statement) and linked and not _CAUSES.search(sentence):
        notes.append("it has an association, and not a cause")
    return notes


def supposes_more(statement: str, sentence: str) -> bool:
    """Tell whether a sentence has as possible, and not as found, what a claim has as it is."""
    supposed = _SUPPOSES.search(sentence) and not _FOUND.search(sentence)
    return bool(supposed) and not _SUPPOSES.search(statement)


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


def _compare_kinds(what: str, here: frozenset[str], there: frozenset[str]) -> list[str]:
    """Say that a statement is of others than the work, where each names some."""
    extra, instead = here - there - {_PEOPLE}, there - here - {_PEOPLE}
    if extra and instead:
        return [f"another {what}: it is of {_list(instead)}, and not of {_list(extra)}"]
    if _PEOPLE in here and there and there <= _ANIMALS:
        return [f"another {what}: it is of {_list(there)}"]
    return []


def _list(groups: frozenset[str]) -> str:
    return ", ".join(sorted(groups))


def _list_kinds(text: str, kinds: Mapping[str, str]) -> frozenset[str]:
    return frozenset(kinds[one] for one in words(text) if one in kinds)
