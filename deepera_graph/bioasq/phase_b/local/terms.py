"""Names and numbers in the snippets that may answer a factoid or a list question.

Every run of up to six words that could be a name is a candidate. Decision trees weigh how many
snippets name it, how near it stands to the words of the question, what stands before and after it,
and whether its form is that of what is asked for: an enzyme, a drug, a disease, a number with a
unit. ``benchmarks/bioasq/extractive.py`` fits them on questions that people answered.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepera_graph.bioasq.phase_b.local.yes_no import WEIGHTS
from deepera_graph.judges.trained.trees import Trees
from deepera_graph.text.terms import rarity
from deepera_graph.text.words import STOP_WORDS, split_sentences, stem, stems

Doubles = NDArray[np.float64]
_TOKEN: Final = re.compile(r"[^\W_]+(?:[-‐‑–/'’.+,](?=[^\W_])[^\W_]+)*[+%]?|[^\w\s]")
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
        r"(?:\b[A-Z][A-Za-z]*-?\d+[A-Za-z0-9-]*\b|\b[A-Z]{2,}[a-z]?\d*\b|\b\w+(?:ase|in|ogen|kine|"
        r"receptor|factor|globin)s?\b|\b[a-z][A-Z]\w+)"
    ),
    re.compile(
        r"drug|treatment|therap|inhibitor|medication|agent|antibod|compound|antibiotic|vaccine|"
        r"antidote|molecule|agonist|antagonist|blocker"
    ): re.compile(
        r"\b\w+(?:mab|nib|tinib|ciclib|parib|vir|mycin|cillin|azole|statin|pril|sartan|olol|"
        r"gliptin|gliflozin|tide|zumab|ximab|platin|taxel|rubicin|oxacin|cycline|dipine|setron|"
        r"triptan|azepam|ine|one|ide|ol|ate|umab|cept|parin|xaban)s?\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"disease|disorder|syndrome|cancer|condition|infection|tumou?r|malignanc|symptom|sign|"
        r"effect|complication|phenotype"
    ): re.compile(
        r"\b(?:\w*(?:itis|osis|oma|emia|aemia|pathy|algia|uria|plegia|trophy|rrhea|penia|edema|"
        r"sclerosis|plasia|ectasia)|\w*(?:syndrome|disease|disorder|cancer|carcinoma|infection|"
        r"failure|nausea|rash|pain|fever|swelling|cramps?|bleeding|fatigue|headache|dizziness))s?\b",
        re.IGNORECASE,
    ),
    re.compile(r"bacteri|virus|species|organism|pathogen|parasite|fung|vector|host"): re.compile(
        r"\b(?:[A-Z][a-z]+ [a-z]{3,}|\w+virus|[A-Z]\. [a-z]{3,}|\w+(?:coccus|bacter|ella|myces))\b"
    ),
    re.compile(r"who|author|scientist|country|city|where|company|institution"): re.compile(
        r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)*\b"
    ),
    re.compile(r"chromosome|band|locus|location"): re.compile(
        r"\b(?:chromosome \d{1,2}|\d{1,2}[pq]\d+(?:\.\d+)?|chromosome [XY])\b", re.IGNORECASE
    ),
}  # fmt: skip
_GENERAL_TEXT = """
    patient patients study studies result results analysis group groups effect effects case
    cases trial trials data finding findings use role type types number level levels
    expression treatment evidence method methods conclusion conclusions background objective
    aim assay assays control controls subject subjects participant participants adult adults
    child children woman women man men mouse mice rat rats cell cells year years month months
    week weeks day days hour hours minute minutes time change changes difference differences
    increase decrease rate rates risk report reports review literature author authors
    association model models development disease gene protein enzyme drug addition present
    total significant human humans people individual individuals volunteers sample samples
    presence absence adolescents infants elderly species function functions process activity
    form forms part parts example examples approach outcome outcomes response mechanism
    mechanisms factor factors most many several various different new novel other such further
    first second third important common possible major main high higher low lower alone member
    members nm µm μm mm cm mg kg ml mmol percent together overall mean median
    """
_GENERAL = frozenset(stem(one) for one in _GENERAL_TEXT.split()) | frozenset(_GENERAL_TEXT.split())
_BREAKERS_TEXT = """
    also including include includes included caused causes cause known called named termed due
    using used via however therefore thus e.g i.e et al may might can could reported observed
    shown showed show found find suggest suggests revealed identified associated compared
    based followed encode encodes encoded inhibit inhibits inhibited lies holds acts increased
    decreased reduced bind binds bound
    """
_BREAKERS = STOP_WORDS | frozenset(_BREAKERS_TEXT.split())
_ASIDE = _GENERAL | _BREAKERS
_LONGEST = 6  # words of a name
_LEAST = 2  # letters of a name that is no number
_FARTHEST = 12  # words; what is farther from the words of the question is as far
MOST_READ: Final = 50  # snippets; of more the first are read
_AROUND: Final = {  # what may stand before or after a name
    **dict.fromkeys((",", ";"), "comma"),
    **dict.fromkeys(("and", "or"), "and"),
    **dict.fromkeys((".", ":"), "stop"),
    **dict.fromkeys(("is", "are", "was", "were"), "is"),
    **{"the": "the", "of": "of", "(": "opens", ")": "closes"},
}
_KINDS: Final = tuple(dict.fromkeys(_AROUND.values()))


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


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence, and what is known of each of its tokens."""

    snippet: int
    text: str
    tokens: Sequence[re.Match[str]]
    low: Sequence[str]
    roots: Sequence[str]
    may_end: Sequence[bool]  # whether a name may begin or end here
    is_inside: Sequence[bool]  # whether it stands in brackets
    asked: Sequence[int]  # places of words of the question


class _Mention(NamedTuple):
    sentence: _Sentence
    begin: int
    end: int

    @property
    def text(self) -> str:
        tokens = self.sentence.tokens
        return self.sentence.text[tokens[self.begin].start() : tokens[self.end - 1].end()]


def find_terms(question: str, snippets: Sequence[str]) -> list[Term]:
    """Return what may answer a question, the best first; each once, whatever its case."""
    return order_terms(find_candidates(question, snippets), _shipped())


def order_terms(found: Candidates, trees: Trees) -> list[Term]:
    """Return candidates as trees weigh them, the best first."""
    scores = trees.predict(found.features).tolist()
    terms = [Term(*one) for one in zip(scores, found.names, strict=True)]
    return sorted(terms, key=lambda one: (-one.score, one.text.lower()))


@lru_cache(maxsize=1)
def _shipped() -> Trees:
    return Trees.from_dict(json.loads(WEIGHTS.read_text(encoding="utf-8"))["names"]["trees"])


def find_candidates(question: str, snippets: Sequence[str]) -> Candidates:
    """Return the candidates of a question in the order in which the snippets name them."""
    asked = {one: rarity(one) for one in stems(question)}
    seen = _collect_mentions(snippets[:MOST_READ], asked)
    if _ASKS_NUMBER.search(question):
        seen = {name: found for name, found in seen.items() if not _YEAR.fullmatch(name)}
    if not seen:
        return Candidates((), np.zeros((0, len(list_features()))))
    form, n_read = _form_asked(question), min(len(snippets), MOST_READ)
    longer = _count_longer(seen)
    names = [_write(found) for found in seen.values()]
    own = [
        [*_describe_name(name, found[0], form), longer[key] / len(found)]
        for name, (key, found) in zip(names, seen.items(), strict=True)
    ]
    spread = [_describe_spread(found, n_read) for found in seen.values()]
    places = [_describe_places(found, asked) for found in seen.values()]
    table = np.array([[*a, *b, *c] for a, b, c in zip(own, spread, places, strict=True)])
    beside = table[:, [list_features().index(name) for name in _COMPARED]]
    best = np.maximum(beside.max(axis=0), 1e-9)
    asks = np.tile(_describe_question(question, form), (len(names), 1))
    return Candidates(names, np.hstack([table, beside / best, asks]))


def _collect_mentions(
    snippets: Sequence[str], asked: Mapping[str, float]
) -> Mapping[str, Sequence[_Mention]]:
    seen: defaultdict[str, list[_Mention]] = defaultdict(list)
    for number, snippet in enumerate(snippets):
        for sentence in _read_sentences(number, snippet, asked):
            for one in _list_mentions(sentence, asked):
                seen[" ".join(one.text.lower().split())].append(one)
    return seen


def _read_sentences(number: int, snippet: str, asked: Mapping[str, float]) -> Iterator[_Sentence]:
    for sentence in split_sentences(snippet):
        tokens = [*_TOKEN.finditer(sentence.text)]
        low = [one.group().lower() for one in tokens]
        roots = [_stem(one) if one[0].isalnum() else "" for one in low]
        may_end = [one[0].isalnum() and one not in _BREAKERS for one in low]
        depths = np.cumsum([(one in "([") - (one in ")]") for one in low])
        places = [place for place, one in enumerate(roots) if one in asked]
        is_inside = (depths > 0).tolist()
        yield _Sentence(number, sentence.text, tokens, low, roots, may_end, is_inside, places)


_stem = lru_cache(maxsize=32_768)(stem)


def _list_mentions(read: _Sentence, asked: Mapping[str, float]) -> Iterator[_Mention]:
    """Yield all runs of words that may be a name: not only general words and such as are asked."""
    tells = [
        not _ASIDE.intersection((one, word)) and not all(part in asked for part in stems(word))
        for one, word in zip(read.roots, read.low, strict=True)
    ]
    for begin in range(len(read.low)):
        for end in range(begin + 1, min(len(read.low), begin + _LONGEST) + 1):
            if not (read.may_end[begin] and read.low[end - 1][0].isalnum()):
                break
            one = _Mention(read, begin, end)
            if read.may_end[end - 1] and any(tells[begin:end]) and _is_long(one.text):
                yield one


def _is_long(name: str) -> bool:
    return len(name) >= _LEAST or name.isdigit()


def _write(found: Sequence[_Mention]) -> str:
    """Return a name in the form in which it is written most often."""
    written = Counter(one.text for one in found)
    return max(written, key=lambda one: (written[one], -sum(map(str.isupper, one)), one))


def _count_longer(seen: Mapping[str, Sequence[_Mention]]) -> Mapping[str, int]:
    """Return how often the commonest name that has one word more is there, by name."""
    longer: defaultdict[str, int] = defaultdict(int)
    for name, found in seen.items():
        for part in (name.partition(" ")[2], name.rpartition(" ")[0]):
            longer[part] = max(longer[part], len(found))
    return longer


_OF_NAME: Final = (
    *("words", "characters", "rarest", "commonest", "first word", "last word"),
    *("asked", "verbs and the like", "stop words", "ends in a general word"),
    *("capitals", "begins with a capital", "digits", "is a quantity", "has the form", "longer"),
)


def _describe_name(name: str, one: _Mention, form: re.Pattern[str] | None) -> list[float]:
    read, inside = one.sentence, slice(one.begin, one.end)
    low, roots, n_words = read.low[inside], read.roots[inside], one.end - one.begin
    rare = [_rarity(root) for root in roots]
    n_asked = sum(one.begin <= place < one.end for place in read.asked)
    return [
        *(n_words, len(name), max(rare), min(rare), rare[0], rare[-1]),
        *(n_asked / n_words, sum(word in _BREAKERS for word in low) / n_words),
        sum(word in STOP_WORDS for word in low),
        low[-1] in _GENERAL or roots[-1] in _GENERAL,
        *(sum(map(str.isupper, name)) / len(name), name[0].isupper()),
        any(map(str.isdigit, name)),
        bool(_NUMBER.fullmatch(name)),
        -1 if form is None else bool(form.search(name)),
    ]


_rarity = lru_cache(maxsize=32_768)(rarity)
_OF_SPREAD: Final = ("mentions", "snippets", "share of snippets", "all snippets", "first snippet")


def _describe_spread(found: Sequence[_Mention], n_read: int) -> list[float]:
    having = {one.sentence.snippet for one in found}
    n_having = len(having)
    return [math.log1p(len(found)), n_having, n_having / n_read, n_read, min(having)]


_OF_PLACE: Final = (
    *("near", "place", "open before", "open after", "in brackets"),
    *(f"{kind} {side}" for side in ("before", "after") for kind in _KINDS),
    *("named beside", "named beside, most", "close, most"),
)


def _describe_places(found: Sequence[_Mention], asked: Mapping[str, float]) -> list[float]:
    """Return the mean over all mentions, and the most of some."""
    rows = np.array([_describe_place(one, asked) for one in found])
    return [*rows.mean(axis=0)[:-1].tolist(), *rows.max(axis=0)[-2:].tolist()]


def _describe_place(one: _Mention, asked: Mapping[str, float]) -> list[float]:
    read, begin, end = one.sentence, one.begin, one.end
    total = sum(asked.values()) or 1.0
    apart = {
        place: max(begin - place, place - end + 1)
        for place in read.asked
        if not begin <= place < end
    }
    beside = sum(asked[root] for root in {read.roots[place] for place in apart}) / total
    close = sum(asked[read.roots[place]] / (1 + far) for place, far in apart.items()) / total
    before = read.low[begin - 1] if begin else "."
    after = read.low[end] if end < len(read.low) else "."
    return [
        1 / min([*apart.values(), _FARTHEST]),
        begin / len(read.low),
        bool(begin) and read.may_end[begin - 1],
        end < len(read.low) and read.may_end[end],
        read.is_inside[begin],
        *(_AROUND.get(word) == kind for word in (before, after) for kind in _KINDS),
        beside,
        close,
    ]


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
