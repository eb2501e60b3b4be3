"""Typed answers put together from the snippets by small models, without a key.

Nothing is understood here: yes or no follows the wording of the findings, names are phrases that
look and stand as answers do, and an ideal answer is made of the sentences that people would copy.
Whoever shows such an answer says that it was extracted.

Yes or no is a logistic regression. Its features are those by which the local judge reads a
direction (`judges/trained/direction/`), as a mean over the snippets, and what its head makes of
them. ``benchmarks/bioasq/extractive.py`` fits the weights on questions that people answered, and
measures them.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, Final, Self

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.bioasq.phase_b import read_weights
from deepera_graph.bioasq.phase_b.roles import (
    ExactAnswered,
    IdealAnswered,
    TypedAnswerTask,
    TypedBackend,
)
from deepera_graph.bioasq.phase_b.sentences import Told, rank
from deepera_graph.bioasq.phase_b.terms import (
    MOST_TERMS,
    Term,
    find_terms,
    synonyms_in,
    without_parts,
)
from deepera_graph.bioasq.questions import QuestionType
from deepera_graph.bioasq.settings import MAX_CANDIDATES, MAX_IDEAL_WORDS
from deepera_graph.errors import AnswerError
from deepera_graph.judges.trained.direction.model import DirectionModel
from deepera_graph.judges.trained.direction.model import describe as describe_direction
from deepera_graph.usage import Usage

YES = 0.5  # probability from which yes is said
_BEHIND = 1.5  # log odds behind the best name, beyond which a name is not in a list
_BEHIND_IN_SERIES = 3.0  # the same, of a name that a snippet joins to one of the list
_JOINT = re.compile(r"(?:,\s*(?:(?:and|or)\s)?|\s(?:and|or)\s)\s*")  # in lower case
_EDGE = re.compile(r"\b")
_LEAST_LISTED, _MOST_LISTED = 2, 30
_SENTENCES = {"yesno": 1, "factoid": 2, "list": 2, "summary": 4}  # of an ideal answer


def extract_exact(task: TypedAnswerTask) -> ExactAnswered:
    """Return yes or no, up to five candidates, or a list; without names if none was found."""
    if task["type"] == "yesno":
        return ExactAnswered(names=[_say(task)])
    terms = find_terms(task["question"], task["snippets"])
    return ExactAnswered(names=choose_names(task["type"], terms, task["snippets"]))


def choose_names(kind: QuestionType, terms: Sequence[Term], snippets: Sequence[str]) -> list[str]:
    """Return the best five candidates, or those of a list, each once, of the terms in order.

    Names of which one is a part of the other may both be candidates, but are one item of a list.
    """
    if kind == "factoid":
        return [one.text for one in terms[:MAX_CANDIDATES]]
    apart = without_parts(terms[:MOST_TERMS])[:_MOST_LISTED]
    listed = [
        one.text
        for place, one in enumerate(apart)
        if place < _LEAST_LISTED or one.score >= apart[0].score - _BEHIND
    ]
    beside = _find_joined([one.text for one in apart], snippets)
    joined = [
        one.text
        for one in apart
        if one.text not in listed
        and one.score >= apart[0].score - _BEHIND_IN_SERIES
        and not beside[one.text].isdisjoint(listed)
    ]
    return _without_synonyms([*listed, *joined], snippets)


def _find_joined(names: Sequence[str], snippets: Sequence[str]) -> Mapping[str, Set[str]]:
    """Return by name which others a snippet joins to it by a comma, "and" or "or"."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    lower = {one: one.lower() for one in names}
    any_name = tuple(lower.values())
    for text in map(str.lower, snippets):
        for begin, end in (joint.span() for joint in _JOINT.finditer(text)):
            if text.endswith(any_name, 0, begin) and text.startswith(any_name, end):
                left = (one for one in names if _ends_at(begin, lower[one], text))
                right = [one for one in names if _begins_at(end, lower[one], text)]
                for one, other in product(left, right):
                    found[one].add(other)
                    found[other].add(one)
    return found


def _ends_at(place: int, name: str, text: str) -> bool:
    return text.endswith(name, 0, place) and bool(_EDGE.match(text, place - len(name)))


def _begins_at(place: int, name: str, text: str) -> bool:
    return text.startswith(name, place) and bool(_EDGE.match(text, place + len(name)))


def _without_synonyms(names: Sequence[str], snippets: Sequence[str]) -> list[str]:
    """Leave out a short form whose long form is named too: a synonym counts as a false answer."""
    long_of = synonyms_in(snippets)
    lower = {one.lower() for one in names}
    return [one for one in names if long_of.get(one, "").lower() not in lower or one not in long_of]


def extract_ideal(task: TypedAnswerTask) -> IdealAnswered:
    """Return yes or no if that is asked, and the sentences that say most to the question."""
    ranked = rank(task["question"], task["snippets"])
    exact = task["exact"] or ([_say(task)] if task["type"] == "yesno" else [])
    text = join_sentences(task["type"], ranked, exact) or task["snippets"][0]
    return IdealAnswered(text=text)


def join_sentences(kind: QuestionType, ranked: Sequence[Told], exact: Sequence[str]) -> str:
    """Return an ideal answer of the best sentences, in the order in which the snippets have them.

    *exact* is the exact answer, with which that to a yes/no question begins. Empty without any
    sentence.
    """
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


def describe(
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
    """A logistic regression: how likely yes is.

    Attributes:
        bias: Log odds of yes without any feature.
        weights: Log odds by feature.
    """

    bias: float
    weights: Mapping[str, float]

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
    return model.weigh(describe(question, snippets, directions))


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
    """Return roles that put answers together from the snippets by rules, without any model.

    Yes or no follows the direction of the findings, names are those of the right kind that the
    snippets repeat, and the ideal answer is made of their sentences. It says so: the status of its
    answers is ``extracted``.
    """
    return TypedBackend(
        name=EXTRACTIVE,
        exact=_Extracts(lambda task: found if (found := extract_exact(task)).names else None),
        ideal=_Extracts(extract_ideal),
        status="extracted",
        spec={"kind": EXTRACTIVE},
    )
