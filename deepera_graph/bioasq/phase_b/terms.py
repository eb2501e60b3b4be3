"""Names and numbers in the snippets that may answer a factoid or a list question.

Every run of up to six words that could be a name is a candidate. Decision trees weigh how many
snippets name it, how near it stands to the words of the question, what stands before and after it,
and whether its form is that of what is asked for: an enzyme, a drug, a disease, a number with a
unit. ``benchmarks/bioasq/extractive.py`` fits them on questions that people answered.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from deepera_graph.bioasq.phase_b import read_weights
from deepera_graph.bioasq.phase_b.mentions import KINDS, LONGEST, Doubles, Mentions, Places
from deepera_graph.judges.trained.trees import Trees
from deepera_graph.text.words import rarity, stems

_NUMBER: Final = re.compile(
    r"(?<![\w.])(?:[<>≤≥~]\s?)?\d+(?:[.,]\d+)*"
    r"(?:\s?(?:-|–|to)\s?\d+(?:[.,]\d+)*)?"
    r"(?:\s?%|\s(?:(?:percent|per\s?cent|mg|g|kg|µg|μg|ng|ml|l|dl|mm|cm|nm|µm|μm|m|mmol|mol|h|"
    r"hours?|days?|weeks?|months?|years?|min|minutes?|s|seconds?|bp|kb|Mb|Gb|kDa|Da|genes?|"
    r"proteins?|exons?|chromosomes?|amino acids|residues?|patients|people|cases|fold|million|"
    r"billion)\b(?:/[A-Za-z]+|\s(?:per|a)\s\w+)?))?"
)
_ASKS_NUMBER: Final = re.compile(
    r"\bhow (?:many|much|often|long|large|high|old|common|big|frequent)|\bnumber of\b|"
    r"\bwhat (?:is|was) the (?:\w+ )?(?:percentage|proportion|rate|prevalence|incidence|frequency|"
    r"dose|dosage|size|length|weight|half-life|risk|ratio|age|mass|duration|sensitivity|"
    r"specificity|cut-?off)\b|\b(?:percentage|proportion)\b",
    re.IGNORECASE,
)
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_ASKS_YEAR: Final = re.compile(r"^(?:when\b|(?:in )?(?:which|what) year)", re.IGNORECASE)
_HEAD: Final = re.compile(
    r"\b(?:which|what|name|list)\b(?:\s+(?:is|are|was|were)\s+the)?\s+(?:the\s+)?"
    r"((?:[\w-]+\s+){0,5}?[\w-]+)",
    re.IGNORECASE,
)
_FORMS: Final = {  # of what a question asks for, how names of it look
    re.compile(
        r"gene|protein|enzyme|kinase|receptor|transcription factor|antigen|marker|target|mutation|"
        r"hormone|cytokine|channel|subunit|ligand|isoform|complex"
    ): re.compile(
        r"(?:\b[A-Z][A-Za-z]*-?\d+[A-Za-z0-9-]*\b|\b[A-Z]{2,}[a-z]?\d*\b|\w(?:ase|in|ogen|kine|"
        r"receptor|factor|globin)s?\b|\b[a-z][A-Z]\w+)"
    ),
    re.compile(
        r"drug|treatment|therap|inhibitor|medication|agent|antibod|compound|antibiotic|vaccine|"
        r"antidote|molecule|agonist|antagonist|blocker"
    ): re.compile(
        r"\w(?:mab|nib|tinib|ciclib|parib|vir|mycin|cillin|azole|statin|pril|sartan|olol|"
        r"gliptin|gliflozin|tide|zumab|ximab|platin|taxel|rubicin|oxacin|cycline|dipine|setron|"
        r"triptan|azepam|ine|one|ide|ol|ate|umab|cept|parin|xaban)s?\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"disease|disorder|syndrome|cancer|condition|infection|tumou?r|malignanc|symptom|sign|"
        r"effect|complication|phenotype"
    ): re.compile(
        r"(?:itis|osis|oma|emia|aemia|pathy|algia|uria|plegia|trophy|rrhea|penia|edema|sclerosis|"
        r"plasia|ectasia|syndrome|disease|disorder|cancer|carcinoma|infection|failure|nausea|rash|"
        r"pain|fever|swelling|cramps?|bleeding|fatigue|headache|dizziness)s?\b",
        re.IGNORECASE,
    ),
    re.compile(r"bacteri|virus|species|organism|pathogen|parasite|fung|vector|host"): re.compile(
        r"\b(?:[A-Z][a-z]+ [a-z]{3,}|\w+virus|[A-Z]\. [a-z]{3,}|\w+(?:coccus|bacter|ella|myces))\b"
    ),
    re.compile(r"who|author|scientist|country|city|where|company|institution"): re.compile(
        r"\b[A-Z][a-z]+\b"
    ),
    re.compile(r"chromosome|band|locus|location"): re.compile(
        r"\b(?:chromosome \d{1,2}|\d{1,2}[pq]\d+(?:\.\d+)?|chromosome [XY])\b", re.IGNORECASE
    ),
}  # fmt: skip
MOST_TERMS: Final = 60  # that are put in order
MOST_READ: Final = 50  # snippets; of more the first are read


class Term(NamedTuple):
    """A name or number that may answer, as it is written, and the log odds that it does."""

    score: float
    text: str


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a question.

    Attributes:
        names: As each is written most often.
        features: Of each, shape (n, n_features), in the order of `list_features`.
    """

    names: Sequence[str]
    features: Doubles


def find_terms(question: str, snippets: Sequence[str]) -> list[Term]:
    """Return what best answers a question, the best first; each once, whatever its case."""
    return order_terms(find_candidates(question, snippets), _shipped())


def order_terms(found: Candidates, trees: Trees) -> list[Term]:
    """Return the best candidates as trees weigh them, the best first; `MOST_TERMS`, and ties."""
    scores = trees.predict(found.features)
    last = len(scores) - min(len(scores), MOST_TERMS)
    least = np.partition(scores, last)[last] if len(scores) else 0.0
    best = np.flatnonzero(scores >= least).tolist()
    terms = [Term(float(scores[one]), found.names[one]) for one in best]
    return sorted(terms, key=lambda one: (-one.score, one.text.lower()))


@lru_cache(maxsize=1)
def _shipped() -> Trees:
    return Trees.from_dict(read_weights()["names"]["trees"])


def find_candidates(question: str, snippets: Sequence[str]) -> Candidates:
    """Return the candidates of a question in the order in which the snippets name them."""
    asked = {one: rarity(one) for one in stems(question)}
    found = Mentions.read(snippets[:MOST_READ], asked)
    if _ASKS_NUMBER.search(question):
        years = [bool(_YEAR.fullmatch(one)) for one in found.texts]
        found = found.of(np.flatnonzero(~np.array(years, np.bool_)))
    if not found.texts:
        return Candidates((), np.zeros((0, len(list_features()))))
    name, first = _group(found.texts)
    form, n_read = _form_asked(question), min(len(snippets), MOST_READ)
    written = found.of(first)
    table = np.hstack(
        [
            _describe_names(written, form),
            _count_longer(found, name, written)[:, None],
            _describe_spread(found.snippet, name, n_read),
            _describe_places(found.describe_places(np.array([*asked.values()])), name),
        ]
    )
    beside = table[:, [list_features().index(one) for one in _COMPARED]]
    best = np.maximum(beside.max(axis=0), 1e-9)
    asks = np.tile(_describe_question(question, form), (len(table), 1))
    return Candidates(written.texts, np.hstack([table, beside / best, asks]))


def _group(texts: Sequence[str]) -> tuple[Places, Places]:
    """Return the name of each text, whatever its case, and the text in which each is written.

    That is the first of the form that is there most often.
    """
    forms, names = dict[str, int](), dict[str, int]()
    form = np.array([forms.setdefault(one, len(forms)) for one in texts])
    keys = (" ".join(one.lower().split()) for one in forms)
    name = [names.setdefault(one, len(names)) for one in keys]
    first = np.empty(len(forms), np.int64)
    first[form[::-1]] = np.arange(len(texts))[::-1]  # of several the last stays
    count = np.bincount(form)
    best: dict[int, str] = {}
    for number, text in zip(name, forms, strict=True):
        other = best.setdefault(number, text)
        if other is not text:
            best[number] = max(
                (other, text),
                key=lambda one: (count[forms[one]], -sum(map(str.isupper, one)), one),
            )
    return np.array(name)[form], first[[forms[one] for one in best.values()]]


def _count_longer(found: Mentions, name: Places, written: Mentions) -> Doubles:
    """Return how often the commonest name that has one word more is there, beside each name."""
    count = np.bincount(name)
    names = np.full((len(found.tokens.asked) + 1, LONGEST + 1), -1)
    names[found.begin, found.end - found.begin] = name
    longer, apart = np.zeros(len(count)), np.flatnonzero(found.tokens.is_apart)
    after_first = apart[np.searchsorted(apart, written.begin, "right")]
    last = apart[np.searchsorted(apart, written.end, "left") - 1]
    for begin, end in ((after_first, written.end), (written.begin, last)):
        part = names[begin, np.maximum(end - begin, 0)]
        np.maximum.at(longer, part[part >= 0], count[part >= 0])
    return longer / count


_OF_NAME: Final = (
    *("words", "characters", "rarest", "commonest", "first word", "last word"),
    *("asked", "verbs and the like", "stop words", "ends in a general word"),
    *("capitals", "begins with a capital", "digits", "is a quantity", "has the form", "longer"),
)


def _describe_names(written: Mentions, form: re.Pattern[str] | None) -> Doubles:
    tokens, first, last = written.tokens, written.begin, written.end - 1
    n_words = written.end - written.begin
    n_characters = np.array([*map(len, written.texts)])
    inside = np.minimum(first[:, None] + np.arange(LONGEST), last[:, None])
    rare = tokens.rarity[inside]
    quantities = [one[0].isdigit() and bool(_NUMBER.fullmatch(one)) for one in written.texts]
    has_form: Any = -1
    if form is not None:
        is_of_words = " " in form.pattern or any("_" in one for one in written.texts)
        has_form = (
            [bool(form.search(one)) for one in written.texts] if is_of_words else written.have(form)
        )
    return np.column_stack(
        [
            *(n_words, n_characters, rare.max(axis=1), rare.min(axis=1)),
            *(tokens.rarity[first], tokens.rarity[last]),
            *(written.sum(tokens.asked >= 0) / n_words, written.sum(tokens.is_breaker) / n_words),
            *(written.sum(tokens.is_stop), tokens.is_general[last]),
            *(written.sum(tokens.capitals) / n_characters, tokens.is_capital[first]),
            *(written.sum(tokens.has_digit) > 0, quantities),
            np.broadcast_to(has_form, len(n_words)),
        ]
    )


_OF_SPREAD: Final = ("mentions", "snippets", "share of snippets", "all snippets", "first snippet")


def _describe_spread(snippet: Places, name: Places, n_read: int) -> Doubles:
    count = np.bincount(name)
    is_in = np.zeros((len(count), n_read), np.bool_)
    is_in[name, snippet] = True
    n_having = is_in.sum(axis=1)
    everywhere = np.full(len(count), n_read)
    return np.column_stack(
        [np.log1p(count), n_having, n_having / n_read, everywhere, is_in.argmax(axis=1)]
    )


_OF_PLACE: Final = (
    *("near", "place", "open before", "open after", "in brackets"),
    *(f"{kind} {side}" for side in ("before", "after") for kind in KINDS),
    *("named beside", "named beside, most", "close, most"),
)


def _describe_places(places: Doubles, name: Places) -> Doubles:
    """Return the mean over all mentions, and the most of some."""
    count = np.bincount(name)
    sums = [np.bincount(name, column) for column in places.T[:-1]]
    most = np.zeros((len(count), 2))
    np.maximum.at(most, name, places[:, -2:])
    return np.hstack([np.column_stack(sums) / count[:, None], most])


_COMPARED: Final = ("mentions", "close, most")  # beside the best of all candidates
_OF_QUESTION: Final = ("asks for several", "asks for a number", "asks for a year", "asks for")
_SEVERAL: Final = re.compile(r"\b(?:are|were|list|all)\b", re.IGNORECASE)


def _describe_question(question: str, form: re.Pattern[str] | None) -> list[float]:
    return [
        bool(_SEVERAL.search(question)),
        bool(_ASKS_NUMBER.search(question)),
        bool(_ASKS_YEAR.search(question.strip())),
        -1 if form is None else [*_FORMS.values()].index(form),
    ]


def list_features() -> tuple[str, ...]:
    """Return the names of the features of a candidate, in their order."""
    compared = (f"{one} beside the best" for one in _COMPARED)
    return (*_OF_NAME, *_OF_SPREAD, *_OF_PLACE, *compared, *_OF_QUESTION)


def _form_asked(question: str) -> re.Pattern[str] | None:
    """Return how names look of the kind that a question asks for; None if that is not known."""
    found = _HEAD.search(question)
    head = (found[1] if found else question).lower()
    for kind, form in _FORMS.items():
        if kind.search(head):
            return form
    return next((form for kind, form in _FORMS.items() if kind.search(question.lower())), None)


def without_parts(ranked: Sequence[Term]) -> list[Term]:
    """Leave out a term whose words are all in a better one, or that has all words of a better."""
    kept: list[tuple[frozenset[str], Term]] = []
    for one in ranked:
        own = frozenset(one.text.lower().split())
        if not any(own <= other or other <= own for other, _ in kept):
            kept.append((own, one))
    return [one for _, one in kept]


def synonyms_in(snippets: Sequence[str]) -> Mapping[str, str]:
    """Return short forms with the long ones before them: ``{"TNF": "tumor necrosis factor"}``."""
    found: dict[str, str] = {}
    for snippet in snippets:
        for match in re.finditer(r"\(([A-Z][A-Za-z0-9-]{1,9})\)", snippet):
            short = match[1]
            before = snippet[: match.start()].split()[-len(short) :]
            initials = "".join(one[0] for one in before if one).lower()
            letters = re.sub(r"[^a-z]", "", short.lower())
            for skip in range(len(before)):
                if letters and initials[skip:] == letters:
                    found[short] = " ".join(before[skip:])
                    break
    return found
