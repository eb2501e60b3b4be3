"""Typed answers put together from the snippets by small models, without a key.

Nothing is understood here: yes or no follows the wording of the findings, names are phrases that
look and stand as answers do, and an ideal answer is made of the sentences that people would copy.
Whoever shows such an answer says that it was extracted.

Yes or no is a logistic regression. Its features are those by which the local judge reads a
direction (`judges/trained/direction/`), as a mean over the snippets, and what its head makes of
them. The sentences are put in order by a linear model, fitted to the ROUGE-SU4 of each with answers
that people wrote. ``benchmarks/bioasq/extractive.py`` fits the weights on questions that people
answered, and measures them.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Final, Self

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.bioasq.phase_b import compile_lines, read_weights
from deepera_graph.bioasq.phase_b.roles import (
    ExactAnswered,
    IdealAnswered,
    TypedAnswerTask,
    TypedBackend,
)
from deepera_graph.bioasq.phase_b.terms import choose_names, find_terms
from deepera_graph.bioasq.questions import QuestionType
from deepera_graph.bioasq.settings import MAX_IDEAL_WORDS
from deepera_graph.errors import AnswerError
from deepera_graph.judges.trained.direction.model import DirectionModel
from deepera_graph.judges.trained.direction.model import describe as describe_direction
from deepera_graph.text.plain import read_lists
from deepera_graph.text.words import STOP_WORDS, split_sentences, stem, stems, words
from deepera_graph.usage import Usage

YES = 0.5  # probability from which yes is said
_SENTENCES = {"yesno": 1, "factoid": 2, "list": 2, "summary": 4}  # of an ideal answer
LEAST_WORDS: Final = 4  # of a sentence; a shorter one is a heading
MOST_SENTENCES: Final = 60  # that are weighed
_LONG: Final = 60  # words beyond which length makes no difference
_NUMBERS_IN_BRACKETS: Final = re.compile(r"\s*[(\[][^()\[\]]*\d[^()\[\]]*[)\]]")
_LABEL: Final = re.compile(r"[A-Z][A-Z /&]{3,40}:\s+")
_P_VALUE: Final = re.compile(r",?\s*\bp\s*[<>=≤≥]\s*0?[.·]\d+", re.IGNORECASE)
_COMPARING: Final = frozenset("<>=≤≥")
_WORDS: Final = read_lists(__file__, "words.toml")
_AIMED: Final[Mapping[str, str]] = _WORDS["aims"]
_AIM: Final = compile_lines(_WORDS["sentences"]["aim"], verbs="|".join(_AIMED))
_LEAD: Final = compile_lines(_WORDS["sentences"]["lead"])
_RESPECTIVELY: Final = re.compile(r",?\s+respectively\b", re.IGNORECASE)
_LEAST_LEFT = 5  # words of a sentence after its lead is gone


Features = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence as it may stand in an answer, and what is known of it."""

    text: str  # the sentence, without statistics in brackets and without a label
    place: int  # how many sentences stand before it
    features: Features  # by name; empty if it is too short to tell anything


def extract_exact(task: TypedAnswerTask) -> ExactAnswered:
    """Return yes or no, up to five candidates, or a list; without names if none was found."""
    if task["type"] == "yesno":
        return ExactAnswered(names=[_say(task)])
    terms = find_terms(task["question"], task["snippets"])
    return ExactAnswered(names=choose_names(task["type"], terms, task["snippets"]))


def extract_ideal(task: TypedAnswerTask) -> IdealAnswered:
    """Return yes or no if that is asked, and the sentences that say most to the question."""
    ranked = rank_sentences(task["question"], task["snippets"])
    exact = task["exact"] or ([_say(task)] if task["type"] == "yesno" else [])
    text = join_sentences(task["type"], ranked, exact) or task["snippets"][0]
    return IdealAnswered(text=text)


def join_sentences(kind: QuestionType, ranked: Sequence[Told], exact: Sequence[str]) -> str:
    """Return an ideal answer of the best sentences, in the order that the snippets have them in."""
    # *exact* is the exact answer, with which that to a yes/no question begins. Empty without any
    # sentence.
    chosen = sorted(ranked[: _SENTENCES[kind]], key=lambda one: one.place)
    texts = [f"{exact[0].capitalize()}."] if chosen and kind == "yesno" and exact else []
    for one in chosen:
        if texts and sum(len(text.split()) for text in (*texts, one.text)) > MAX_IDEAL_WORDS:
            break
        texts.append(one.text)
    return " ".join(texts)


def _say(task: TypedAnswerTask) -> str:
    return "yes" if probability_of_yes(task["question"], task["snippets"]) >= YES else "no"


_LEAST: Final = 0.02  # of a probability, before the logarithm
_ODDS: Final = 5.0  # log odds that weigh as much as a probability of 1


def describe_support(
    question: str, snippets: Sequence[str], directions: DirectionModel
) -> dict[str, float]:
    """Return the named features of a question with its snippets, at least one."""
    found: defaultdict[str, float] = defaultdict(float)
    share = 1 / len(snippets)
    for snippet in snippets:
        told = describe_direction(question, snippet)
        for name, value in told.items():
            found[name] += share * value
        likely = directions.weigh(told)
        for way, value in likely.items():
            found[f"mean: {way}"] += share * value
            found[f"most: {way}"] = max(found[f"most: {way}"], value)
        yes = likely["supports"]
        found["mean: log odds"] += share * math.log((yes + _LEAST) / (1 - yes + _LEAST)) / _ODDS
        found["share that supports"] += share * (2 * yes >= 1)
    return dict(found)


@dataclass(frozen=True, slots=True)
class YesNoModel:
    """A logistic regression: how likely yes is."""

    bias: float  # log odds of yes without any feature
    weights: Mapping[str, float]  # log odds by feature

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return the model of plain data."""
        return cls(float(plain["bias"]), dict(plain["weights"]))

    def weigh(self, described: Mapping[str, float]) -> float:
        """Return how likely yes is, in (0, 1)."""
        known = ((self.weights.get(name, 0.0), value) for name, value in described.items())
        odds = self.bias + sum(weight * value for weight, value in known)
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, odds))))


@lru_cache(maxsize=1)
def _shipped() -> tuple[YesNoModel, DirectionModel]:
    return YesNoModel.of(read_weights()["yes_no"]), DirectionModel.load()


def probability_of_yes(question: str, snippets: Sequence[str]) -> float:
    """Return how likely yes is by the shipped weights, in (0, 1); at least one snippet."""
    model, directions = _shipped()
    return model.weigh(describe_support(question, snippets, directions))


def _read_cue(cue: str | Mapping[str, str]) -> re.Pattern[str]:
    """Compile a cue; of words, or their beginnings, it looks at the first letters only, first."""
    if isinstance(cue, str):
        return re.compile("".join(cue.splitlines()))
    [(kind, listed)] = cue.items()
    rests: dict[str, list[str]] = {}
    for one in listed.split():
        rests.setdefault(one[0], []).append(one[1:])
    found = (rf"{first}(?<=\b{first})(?:{'|'.join(rest)})" for first, rest in rests.items())
    return re.compile(f"(?:{'|'.join(found)})" + (r"\b" if kind == "words" else ""))


_CUES: Final = {name: _read_cue(cue) for name, cue in _WORDS["cues"].items()}


def trim(sentence: str) -> str:
    """Return a sentence as an answer takes it."""
    # Numbers in brackets, p values, the label of its section and what leads in ("however", "our
    # results show that") are left out; an aim becomes what the study did.
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


def describe_sentences(question: str, snippets: Sequence[str]) -> list[Told]:
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


def rank_sentences(question: str, snippets: Sequence[str]) -> list[Told]:
    """Return the sentences of the snippets, best first."""
    return order_told(
        describe_sentences(question, snippets), read_weights()["sentences"]["weights"]
    )


def order_told(told: Sequence[Told], weights: Mapping[str, float]) -> list[Told]:
    """Return sentences as weights have them, best first."""

    def weigh(one: Told) -> float:
        return sum(weights.get(name, 0.0) * value for name, value in one.features.items())

    return sorted(told, key=weigh, reverse=True)


EXTRACTIVE = "extractive"


class _Extracts(Runnable[TypedAnswerTask, Any]):
    """A role played by a function of the task; it costs nothing."""

    def __init__(self, extract: Callable[[TypedAnswerTask], Any]) -> None:
        self._extract = extract

    def invoke(
        self, input: TypedAnswerTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        found = self._extract(input)
        if found is None:
            raise AnswerError("the snippets name nothing of the kind asked for", usage=Usage())
        return found.model_copy(update={"usage": Usage()})


def extractive_backend() -> TypedBackend:
    """Return roles that put answers together from the snippets by rules, without any model."""
    # Yes or no follows the direction of the findings, names are those of the right kind that the
    # snippets repeat, and the ideal answer is made of their sentences. It says so: the status of
    # its answers is ``extracted``.
    return TypedBackend(
        name=EXTRACTIVE,
        exact=_Extracts(lambda task: found if (found := extract_exact(task)).names else None),
        ideal=_Extracts(extract_ideal),
        status="extracted",
        spec={"kind": EXTRACTIVE},
    )
