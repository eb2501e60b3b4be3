"""Which sentences of the snippets make an ideal answer, by a linear model with named features.

It was fitted to the ROUGE-SU4 of each sentence with answers that people wrote;
``benchmarks/bioasq/extractive.py`` fits and measures it.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from deepera_graph.bioasq.phase_b.local.yes_no import WEIGHTS
from deepera_graph.text.words import split_sentences, stems, words

LEAST_WORDS: Final = 4  # of a sentence; a shorter one is a heading
MOST_SENTENCES: Final = 60  # that are weighed
_LONG: Final = 60  # words beyond which length makes no difference
_NUMBERS_IN_BRACKETS: Final = re.compile(r"\s*[(\[][^()\[\]]*\d[^()\[\]]*[)\]]")
_LABEL: Final = re.compile(r"[A-Z][A-Z /&]{3,40}:\s+")
_P_VALUE: Final = re.compile(r",?\s*\bp\s*[<>=≤≥]\s*0?[.·]\d+", re.IGNORECASE)
_AIMED_TEXT = """
    analyse:analysed analyze:analyzed ascertain:ascertained assess:assessed
    characterize:characterized clarify:clarified compare:compared define:defined
    describe:described determine:examined develop:developed discuss:discussed
    document:documented elucidate:examined establish:examined estimate:estimated
    evaluate:evaluated examine:examined explore:explored identify:looked_for
    investigate:investigated measure:measured observe:observed present:presented
    quantify:quantified report:reported review:reviewed study:studied test:tested
    validate:validated verify:verified
    """
_AIMED: Final = {
    verb: past.replace("_", " ")
    for verb, _, past in (one.partition(":") for one in _AIMED_TEXT.split())
}
_VERBS: Final = "|".join(_AIMED)
_AIM: Final = re.compile(  # "The aim of this study was to assess whether ...", "To assess ..."
    r"^(?:(?:therefore|thus|hence|here|accordingly),?\s+)?"
    r"(?:(?:the|this|our|an?)\s+(?:\w+[\s-]){0,6}?"
    r"(?:aims?|objectives?|purposes?|goals?|study|trial|investigation|analysis|paper|article|work|"
    r"research|review)\b[^.;:]{0,60}?\b"
    r"(?:(?:was|were|is|are)\s+(?:(?:designed|conducted|undertaken|performed|done|aimed|therefore)"
    r"\s+)*to|aim(?:s|ed)\s+to|sought\s+to|attempts?(?:ed)?\s+to)"
    r"|we\s+(?:\w+ly\s+)?(?:aim(?:ed)?|sought|wanted|wished|set out|attempted|"
    r"(?:undertook|conducted|performed)[^.;:]{0,40}?)\s+to"
    r"|to)\s+"
    r"(?:(?:further|prospectively|retrospectively|better|systematically|more)\s+)*"
    rf"(?P<verb>{_VERBS})\s+(?:and\s+(?:{_VERBS})\s+)?",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(  # what only says that something follows, or from which analysis
    r"(?:(?:in (?:this|the present|our|the current) (?:study|series|cohort|trial|analysis),?\s+)?"
    r"(?:our |the |these |this )?(?:\w+ )?"
    r"(?:results|findings|data|analys[ei]s|study|we|it was)\s+(?:also |clearly |further )?"
    r"(?:showed?|shows?|demonstrated?|indicated?|suggest(?:ed|s)?|revealed|found|observed|"
    r"confirm(?:ed)?|concluded?)\s+that\s+"
    r"|(?:however|moreover|furthermore|in addition|additionally|interestingly|finally|overall|also|"
    r"thus|therefore|similarly|in contrast|on the other hand|notably|surprisingly|nevertheless|"
    r"conversely),\s+"
    r"|(?:in|on|by|using|after|with|from)\s+(?:the\s+)?(?:a\s+)?(?:multi\w+|uni\w+|logistic|cox|"
    r"regression|bivariate|statistical|adjusted|subgroup|linear|stepwise)[^,]{0,60},\s+"
    r"|in (?:this|the present|our) (?:study|series),\s+)",
    re.IGNORECASE,
)
_RESPECTIVELY: Final = re.compile(r",?\s+respectively\b", re.IGNORECASE)
_LEAST_LEFT = 5  # words of a sentence after its lead is gone
_CUES: Final = {
    name: re.compile(one)  # of a sentence in lower case
    for name, one in {
        "concludes": r"conclu|suggest|indicat|demonstrat|reveal|found|show|support|confirm",
        "significant": r"significan",
        "links": r"associat|correlat|relat|predict",
        "negates": r"\b(?:no|not|nor|neither|without|never)\b",
        "aims": r"\b(?:aim|objective|purpose|to (?:determine|evaluate|assess|investigate|examine|"
        r"compare|test|study|explore|identify|analy[sz]e|describe|establish|find out))|hypothes|"
        r"whether|we (?:sought|evaluated|assessed|investigated|examined|tested|studied)",
        "we": r"\bwe\b|\bour\b",
        "hedges": r"\b(?:may|might|could|can|should|seem|appear)",
        "method": r"\b(?:were (?:recruited|enrolled|included|randomi[sz]ed|collected|measured|"
        r"analy[sz]ed|assigned|reviewed|performed|selected)|was (?:performed|measured|used)|using|"
        r"questionnaire|retrospective|prospective|database)\b",
        "compares": r"\b(?:higher|lower|greater|more|less|better|worse|increas|decreas|reduc|"
        r"improv|similar|differ)",
        "than": r"\b(?:than|compared|versus|vs)\b",
        "contrast": r"\b(?:however|although|but|whereas|despite|while)\b",
        "background": r"\b(?:remain|unclear|unknown|little is|has been|have been|is a common|"
        r"controvers|important)\b",
        "works": r"effective|safe|benefi|useful|feasible|accura|reliab",
    }.items()
}
Features = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence as it may stand in an answer, and what is known of it.

    Attributes:
        text: The sentence, without statistics in brackets and without a label.
        place: How many sentences stand before it.
        features: By name; empty if it is too short to tell anything.
    """

    text: str
    place: int
    features: Features


def trim(sentence: str) -> str:
    """Return a sentence as an answer takes it.

    Numbers in brackets, p values, the label of its section and what leads in ("however", "our
    results show that") are left out; an aim becomes what the study did.
    """
    bare = _P_VALUE.sub("", _NUMBERS_IN_BRACKETS.sub("", _cut(_LABEL, sentence)))
    bare = " ".join(bare.split()).replace(" ,", ",").replace(" .", ".")
    aim = _AIM.match(bare)
    if aim:
        return f"The study {_AIMED[aim['verb'].lower()]} {bare[aim.end() :]}"
    for _ in range(2):
        rest = _cut(_LEAD, bare)
        if rest != bare and len(rest.split()) >= _LEAST_LEFT:
            bare = f"{rest[0].upper()}{rest[1:]}"
    return _RESPECTIVELY.sub("", bare)


def _cut(beginning: "re.Pattern[str]", text: str) -> str:
    found = beginning.match(text)
    return text[found.end() :] if found else text


def describe(question: str, snippets: Sequence[str]) -> list[Told]:
    """Return the sentences of all snippets in order, each once, with their features."""
    asked = set(stems(question))
    asked_pairs = _pairs(words(question))
    n_snippets, found = len(snippets), []
    seen: set[str] = set()
    for number, snippet in enumerate(snippets):
        sentences = split_sentences(snippet)
        for place, sentence in enumerate(sentences):
            text = trim(sentence.text)
            if text.lower() in seen or len(words(text)) < LEAST_WORDS:
                continue
            seen.add(text.lower())
            found.append((text, sentence.text, number, place, len(sentences)))
    found = found[:MOST_SENTENCES]
    frequency = Counter(one for text, *_ in found for one in set(stems(text)))
    return [
        Told(
            text,
            order,
            {
                **_describe_words(text, whole, asked, asked_pairs, frequency),
                **_describe_place(number, place, n_snippets, n_sentences, order / len(found)),
                "few sentences": float(len(found) < LEAST_WORDS),
            },
        )
        for order, (text, whole, number, place, n_sentences) in enumerate(found)
    ]


def _describe_words(
    text: str,
    whole: str,
    asked: set[str],
    asked_pairs: set[tuple[str, str]],
    frequency: Mapping[str, int],
) -> dict[str, float]:
    own, tokens, plain = set(stems(text)), words(text), text.lower()
    n_words = min(_LONG, len(tokens)) / 30
    shared = len(asked & own)
    pairs = _pairs(tokens)
    both = len(pairs & asked_pairs)
    found = {
        "names the question": shared / (len(asked) or 1),
        "share of the question": shared / (len(own) or 1),
        "pairs of the question": 2 * both / (len(pairs) + len(asked_pairs) or 1),
        "length": n_words,
        "length squared": n_words**2,
        "repeated words": sum(frequency[one] for one in own) / (len(own) or 1),
        "numbers": _share_of_numbers(tokens),
        "numbers before trimming": _share_of_numbers(words(whole)),
    }
    return found | {name: float(min(2, len(one.findall(plain)))) for name, one in _CUES.items()}


def _describe_place(
    number: int, place: int, n_snippets: int, n_sentences: int, order: float
) -> dict[str, float]:
    return {
        "snippet": number / (n_snippets - 1) if n_snippets > 1 else 1.0,
        "in its snippet": place / (n_sentences - 1) if n_sentences > 1 else 0.5,
        "in the last snippet": float(number == n_snippets - 1),
        "in the first snippet": float(number == 0),
        "last of its snippet": float(place == n_sentences - 1),
        "order": order,
    }


def _share_of_numbers(tokens: Sequence[str]) -> float:
    with_digit = sum(not one.isalpha() and any(map(str.isdigit, one)) for one in tokens)
    return with_digit / (len(tokens) or 1)


def _pairs(tokens: Sequence[str]) -> set[tuple[str, str]]:
    """Return pairs of words with at most four between, as ROUGE-SU4 counts them."""
    return {
        (one, other) for place, one in enumerate(tokens) for other in tokens[place + 1 : place + 6]
    }


@lru_cache(maxsize=1)
def _shipped() -> Mapping[str, float]:
    weights: Mapping[str, float] = json.loads(WEIGHTS.read_text(encoding="utf-8"))["sentences"][
        "weights"
    ]
    return weights


def rank(question: str, snippets: Sequence[str]) -> list[Told]:
    """Return the sentences of the snippets, best first."""
    return order_told(describe(question, snippets), _shipped())


def order_told(told: Sequence[Told], weights: Mapping[str, float]) -> list[Told]:
    """Return sentences as weights have them, best first."""

    def weigh(one: Told) -> float:
        return sum(weights.get(name, 0.0) * value for name, value in one.features.items())

    return sorted(told, key=weigh, reverse=True)
