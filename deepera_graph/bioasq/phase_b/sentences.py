"""Which sentences of the snippets make an ideal answer, by a linear model with named features.

It was fitted to the ROUGE-SU4 of each sentence with answers that people wrote;
``benchmarks/bioasq/extractive.py`` fits and measures it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from deepera_graph.bioasq.phase_b import read_weights
from deepera_graph.text.plain import read_lists
from deepera_graph.text.words import STOP_WORDS, split_sentences, stem, stems, words

LEAST_WORDS: Final = 4  # of a sentence; a shorter one is a heading
MOST_SENTENCES: Final = 60  # that are weighed
_LONG: Final = 60  # words beyond which length makes no difference
_NUMBERS_IN_BRACKETS: Final = re.compile(r"\s*[(\[][^()\[\]]*\d[^()\[\]]*[)\]]")
_LABEL: Final = re.compile(r"[A-Z][A-Z /&]{3,40}:\s+")
_P_VALUE: Final = re.compile(r",?\s*\bp\s*[<>=≤≥]\s*0?[.·]\d+", re.IGNORECASE)
_COMPARING: Final = frozenset("<>=≤≥")
_WORDS: Final = read_lists(__file__, "words.toml")
_AIMED: Final[Mapping[str, str]] = _WORDS["aims"]
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


def _begun_by(beginnings: str) -> str:
    """Return a pattern of words that begin so; it looks at their first letters only, first."""
    rests: dict[str, list[str]] = {}
    for one in beginnings.split():
        rests.setdefault(one[0], []).append(one[1:])
    found = (rf"{first}(?<=\b{first})(?:{'|'.join(rest)})" for first, rest in rests.items())
    return f"(?:{'|'.join(found)})"


_CUES: Final = {
    name: re.compile(one)  # of a sentence in lower case
    for name, one in {
        "concludes": r"conclu|suggest|indicat|demonstrat|reveal|found|show|support|confirm",
        "significant": r"significan",
        "links": r"associat|correlat|relat|predict",
        "negates": _begun_by("no not nor neither without never") + r"\b",
        "aims": r"\b(?:aim|objective|purpose|to (?:determine|evaluate|assess|investigate|examine|"
        r"compare|test|study|explore|identify|analy[sz]e|describe|establish|find out))|hypothes|"
        r"whether|we (?:sought|evaluated|assessed|investigated|examined|tested|studied)",
        "we": _begun_by("we our") + r"\b",
        "hedges": _begun_by("may might could can should seem appear"),
        "method": r"\b(?:were (?:recruited|enrolled|included|randomi[sz]ed|collected|measured|"
        r"analy[sz]ed|assigned|reviewed|performed|selected)|was (?:performed|measured|used)|using|"
        r"questionnaire|retrospective|prospective|database)\b",
        "compares": _begun_by(
            "higher lower greater more less better worse increas decreas reduc improv similar "
            "differ"
        ),
        "than": _begun_by("than compared versus vs") + r"\b",
        "contrast": _begun_by("however although but whereas despite while") + r"\b",
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
    bare = _cut(_LABEL, sentence)
    bare = _NUMBERS_IN_BRACKETS.sub("", bare) if "(" in bare or "[" in bare else bare
    bare = bare if _COMPARING.isdisjoint(bare) else _P_VALUE.sub("", bare)
    bare = " ".join(bare.split()).replace(" ,", ",").replace(" .", ".")
    aim = _AIM.match(bare)
    if aim:
        return f"The study {_AIMED[aim['verb'].lower()]} {bare[aim.end() :]}"
    for _ in range(2):
        rest = _cut(_LEAD, bare)
        if rest != bare and len(rest.split()) >= _LEAST_LEFT:
            bare = f"{rest[0].upper()}{rest[1:]}"
    return _RESPECTIVELY.sub("", bare) if "respectively" in bare.lower() else bare


def _cut(beginning: "re.Pattern[str]", text: str) -> str:
    found = beginning.match(text)
    return text[found.end() :] if found else text


def describe(question: str, snippets: Sequence[str]) -> list[Told]:
    """Return the sentences of all snippets in order, each once, with their features."""
    asked = set(stems(question))
    asked_pairs = _pairs(words(question))
    found = list(islice(_list_sentences(snippets), MOST_SENTENCES))
    frequency = Counter(root for one in found for root in one.roots)
    return [
        Told(
            one.text,
            order,
            {
                **_describe_words(one, asked, asked_pairs, frequency),
                **_describe_place(one, len(snippets), order / len(found)),
                "few sentences": float(len(found) < LEAST_WORDS),
            },
        )
        for order, one in enumerate(found)
    ]


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str  # as an answer takes it
    words: Sequence[str]
    roots: Set[str]
    whole: str
    snippet: int
    place: int  # in the snippet
    n_sentences: int  # of the snippet


def _list_sentences(snippets: Sequence[str]) -> Iterator[_Sentence]:
    """Yield the sentences of all snippets in order, each once, without those of few words."""
    seen: set[str] = set()
    for number, snippet in enumerate(snippets):
        sentences = split_sentences(snippet)
        for place, sentence in enumerate(sentences):
            text = trim(sentence.text)
            own = words(text)
            if text.lower() in seen or len(own) < LEAST_WORDS:
                continue
            seen.add(text.lower())
            roots = {stem(one) for one in own if one not in STOP_WORDS}
            yield _Sentence(text, own, roots, sentence.text, number, place, len(sentences))


def _describe_words(
    one: _Sentence,
    asked: set[str],
    asked_pairs: set[tuple[str, str]],
    frequency: Mapping[str, int],
) -> dict[str, float]:
    own, plain = one.roots, one.text.lower()
    n_words = min(_LONG, len(one.words)) / 30
    shared = len(asked & own)
    pairs = _pairs(one.words)
    both = len(pairs & asked_pairs)
    whole = one.words if one.whole == one.text else words(one.whole)
    found = {
        "names the question": shared / (len(asked) or 1),
        "share of the question": shared / (len(own) or 1),
        "pairs of the question": 2 * both / (len(pairs) + len(asked_pairs) or 1),
        "length": n_words,
        "length squared": n_words**2,
        "repeated words": sum(frequency[root] for root in own) / (len(own) or 1),
        "numbers": _share_of_numbers(one.words),
        "numbers before trimming": _share_of_numbers(whole),
    }
    return found | {name: float(min(2, len(cue.findall(plain)))) for name, cue in _CUES.items()}


def _describe_place(one: _Sentence, n_snippets: int, order: float) -> dict[str, float]:
    number, place, n_sentences = one.snippet, one.place, one.n_sentences
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
    found = (zip(tokens, tokens[apart:], strict=False) for apart in range(1, 6))
    return set(chain.from_iterable(found))


def rank(question: str, snippets: Sequence[str]) -> list[Told]:
    """Return the sentences of the snippets, best first."""
    return order_told(describe(question, snippets), read_weights()["sentences"]["weights"])


def order_told(told: Sequence[Told], weights: Mapping[str, float]) -> list[Told]:
    """Return sentences as weights have them, best first."""

    def weigh(one: Told) -> float:
        return sum(weights.get(name, 0.0) * value for name, value in one.features.items())

    return sorted(told, key=weigh, reverse=True)
