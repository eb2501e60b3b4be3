"""Names and numbers in the snippets that may answer a factoid or a list question.

A noun phrase counts the more the more snippets have it, the nearer it stands to the words of the
question, and the more its form is that of what is asked for: an enzyme, a drug, a disease, a number
with a unit. There is no gazetteer and no model behind it.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from deepera_graph.text.rarity import rarity
from deepera_graph.text.words import STOP_WORDS, split_sentences, stem, stems

_TOKEN: Final = re.compile(r"[^\W_]+(?:[-‐‑–/'’.+,](?=[^\W_])[^\W_]+)*[+%]?|[^\w\s]")
_NUMBER: Final = re.compile(
    r"(?<![\w.])(?:[<>≤≥~]\s?)?\d+(?:[.,]\d+)*"
    r"(?:\s?(?:-|–|to)\s?\d+(?:[.,]\d+)*)?"
    r"(?:\s?%|\s(?:(?:percent|per\s?cent|mg|g|kg|µg|μg|ng|ml|l|dl|mm|cm|nm|µm|μm|m|mmol|mol|h|"
    r"hours?|days?|weeks?|months?|years?|min|minutes?|s|seconds?|bp|kb|Mb|Gb|kDa|Da|genes?|"
    r"proteins?|exons?|chromosomes?|amino acids|residues?|patients|people|cases|fold|million|"
    r"billion)\b(?:/[A-Za-z]+|\s(?:per|a)\s\w+)?))?"
)
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_ASKS_NUMBER: Final = re.compile(
    r"\bhow (?:many|much|often|long|large|high|old|common|big|frequent)|\bnumber of\b|"
    r"\bwhat (?:is|was) the (?:\w+ )?(?:percentage|proportion|rate|prevalence|incidence|frequency|"
    r"dose|dosage|size|length|weight|half-life|risk|ratio|age|mass|duration|sensitivity|"
    r"specificity|cut-?off)\b|\b(?:percentage|proportion)\b",
    re.IGNORECASE,
)
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
_VERB: Final = re.compile(r"^[a-z]{3,}(?:ed|izes?|ises?|ates?|fies|ify)$")
_NOT_VERBS_TEXT = """
    seed speed feed bleed need breed deed weed red bed fed substrate phosphate sulfate nitrate
    acetate citrate lactate glutamate aspartate pyruvate prostate carbonate methotrexate
    mycophenolate bisphosphonate rate state climate chocolate nucleate conjugate
    """
_NOT_VERBS = frozenset(_NOT_VERBS_TEXT.split())
_LONGEST = 6  # tokens of a name
_LEAST = 2  # letters of a name
_ALIKE = 0.6  # what a word in common with the best term, before it, is worth
_LISTED: Final = re.compile(r"\s*(?:[,;/]|,?\s+(?:and|or|as well as))\s*(?:the\s+)?")
_BESIDE = 0.1  # how much less is worth what is listed with a better term
_NEAR = 8  # tokens within which a word of the question counts


class Term(NamedTuple):
    """A name or number that may answer, as it is written, and how much speaks for it.

    `is_alike`: whether it stands somewhere after the same word as the best one.
    """

    score: float
    text: str
    is_alike: bool = False


class _Seen(NamedTuple):
    text: str
    snippet: int
    before: str  # the word before it, in lower case
    nearness: float
    sentence_share: float
    series: tuple[str, ...] = ()  # it and what it is listed with, in lower case


def find_terms(question: str, snippets: Sequence[str]) -> list[Term]:
    """Return what may answer a question, the best first; each once, whatever its case."""
    asked = set(stems(question))
    if _ASKS_YEAR.search(question.strip()):
        read = _find_matches(_YEAR, asked, snippets)
    elif _ASKS_NUMBER.search(question):
        read = _find_matches(_NUMBER, asked, snippets)
    else:
        read = _find_phrases(asked, snippets)
    seen: dict[str, list[_Seen]] = defaultdict(list)
    for one in read:
        seen[one.text.lower()].append(one)
    form = _form_asked(question)
    terms = [_weigh(found, form, len(snippets)) for found in seen.values()]
    ranked = sorted(terms, key=lambda one: (-one.score, one.text.lower()))
    if ranked:
        ranked = _favour_alike(_raise_series(ranked, seen), seen)
    return _without_parts(ranked)


def _raise_series(ranked: Sequence[Term], seen: Mapping[str, Sequence[_Seen]]) -> list[Term]:
    """Raise what is listed with a better term nearly to its score: both answer, or neither does."""
    scores = {one.text.lower(): one.score for one in ranked}
    best = {
        name: max(scores[other] for one in found for other in (*one.series, name))
        for name, found in seen.items()
    }
    raised = [Term(max(one.score, best[one.text.lower()] - _BESIDE), one.text) for one in ranked]
    return sorted(raised, key=lambda one: (-one.score, one.text.lower()))


def _favour_alike(ranked: Sequence[Term], seen: Mapping[str, Sequence[_Seen]]) -> list[Term]:
    """Raise terms that stand after the same word as the best: what is listed is told alike."""
    after = {one.before for one in seen[ranked[0].text.lower()]} - {"", ",", "and", "or"}
    alike = [any(each.before in after for each in seen[one.text.lower()]) for one in ranked]
    raised = [
        Term(one.score + _ALIKE * is_alike, one.text, is_alike)
        for one, is_alike in zip(ranked, alike, strict=True)
    ]
    return sorted(raised, key=lambda one: (-one.score, one.text.lower()))


def _form_asked(question: str) -> re.Pattern[str] | None:
    """Return how names look of the kind that a question asks for; None if that is not known."""
    found = _HEAD.search(question)
    head = (found[1] if found else question).lower()
    for kind, form in _FORMS.items():
        if kind.search(head):
            return form
    return next((form for kind, form in _FORMS.items() if kind.search(question.lower())), None)


def _find_matches(
    pattern: re.Pattern[str], asked: set[str], snippets: Sequence[str]
) -> Iterator[_Seen]:
    for number, snippet in enumerate(snippets):
        for sentence in split_sentences(snippet):
            share = len(asked.intersection(stems(sentence.text))) / (len(asked) or 1)
            for found in pattern.finditer(sentence.text):
                text = " ".join(found.group().split())
                around = sentence.text[max(0, found.start() - 60) : found.end() + 60]
                near = len(asked.intersection(stems(around))) / (len(asked) or 1)
                has_unit = bool(re.search(r"[A-Za-z%]", text)) or pattern is _YEAR
                yield _Seen(text, number, "", near + 0.3 * has_unit, share)


def _find_phrases(asked: set[str], snippets: Sequence[str]) -> Iterator[_Seen]:
    for number, snippet in enumerate(snippets):
        for sentence in split_sentences(snippet):
            tokens = [*_TOKEN.finditer(sentence.text)]
            roots = [stem(one.group().lower()) for one in tokens]
            share = len(asked.intersection(roots)) / (len(asked) or 1)
            places = [place for place, one in enumerate(roots) if one in asked]
            runs = [*_runs(sentence.text, tokens, roots, asked)]
            texts = [
                sentence.text[tokens[begin].start() : tokens[end - 1].end()] for begin, end in runs
            ]
            series = _series(sentence.text, tokens, runs)
            for (begin, end), text, listed in zip(runs, texts, series, strict=True):
                near = min(
                    (max(begin - place, place - end + 1, 1) for place in places), default=_NEAR
                )
                before = tokens[begin - 1].group().lower() if begin else ""
                with_it = tuple(texts[place].lower() for place in listed)
                yield _Seen(text, number, before, 1 / min(near, _NEAR), share, with_it)


def _series(
    text: str, tokens: Sequence[re.Match[str]], runs: Sequence[tuple[int, int]]
) -> list[list[int]]:
    """Return for each phrase the places of those it is listed with, as in ``a, b and c``."""
    groups: list[list[int]] = []
    for place, (begin, _) in enumerate(runs):
        last = tokens[runs[place - 1][1] - 1].end() if place else 0
        if place and _LISTED.fullmatch(text[last : tokens[begin].start()]):
            groups[-1].append(place)
        else:
            groups.append([place])
    return [group for group in groups for _ in group]


def _runs(
    text: str, tokens: Sequence[re.Match[str]], roots: Sequence[str], asked: set[str]
) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of noun phrases: words in a row without stop words, verbs and marks."""
    begin: int | None = None
    for place in range(len(tokens) + 1):
        within = place < len(tokens) and _is_in_name(tokens[place].group(), place)
        is_apart = (
            begin is not None
            and within
            and text[tokens[place - 1].end() : tokens[place].start()].strip() != ""
        )
        if begin is not None and (not within or is_apart):
            yield from _as_name(begin, place, tokens, roots, asked)
            begin = None
        if within and begin is None:
            begin = place


def _is_in_name(word: str, place: int) -> bool:
    plain = word.lower()
    if not word[0].isalnum() or plain in _BREAKERS:
        return False
    if _VERB.match(plain) and plain not in _NOT_VERBS:
        return False
    return not (place > 0 and plain.endswith("ly") and len(plain) > 4)


def _as_name(
    begin: int,
    end: int,
    tokens: Sequence[re.Match[str]],
    roots: Sequence[str],
    asked: set[str],
) -> Iterator[tuple[int, int]]:
    """Yield a phrase without numbers, general words and words of the question at its ends."""

    def is_empty(place: int) -> bool:
        word = tokens[place].group()
        is_general = roots[place] in _GENERAL or word.lower() in _GENERAL
        return roots[place] in asked or is_general or word.replace(".", "").isdigit()

    def is_numbered(place: int) -> bool:  # as in ``chromosome 17``
        return place + 1 < end and tokens[place + 1].group().isdigit()

    while begin < end and is_empty(begin) and not is_numbered(begin):
        begin += 1
    while end > begin and is_empty(end - 1) and not tokens[end - 1].group().isdigit():
        end -= 1
    letters = sum(len(tokens[place].group()) for place in range(begin, end))
    if begin < end <= begin + _LONGEST and letters >= _LEAST:
        yield begin, end


def _weigh(found: Sequence[_Seen], form: re.Pattern[str] | None, n_snippets: int) -> Term:
    """Return a term with its score, in the form in which it is written most often."""
    written: dict[str, int] = defaultdict(int)
    for one in found:
        written[one.text] += 1
    text = max(written, key=lambda one: (written[one], -sum(map(str.isupper, one)), one))
    n_with = len({one.snippet for one in found})
    spread = math.log1p(n_with) / math.log1p(max(2, n_snippets))
    rare = max((rarity(one) for one in stems(text)), default=0.5)
    fits = 0.0 if form is None else float(bool(form.search(text)))
    near = max(one.nearness for one in found)
    share = max(one.sentence_share for one in found)
    return Term(spread + 0.8 * near + 0.8 * share + fits + 0.4 * rare, text)


def _without_parts(ranked: Sequence[Term]) -> list[Term]:
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
