"""Yes or no from the snippets: a logistic regression over counts of what they say.

What is asked (its verb and its kind), how often the snippets negate, find no difference, find a
significant one, compare and hedge, their p values, and what the direction head of the local judge
(`judges/trained/direction/`) makes of the snippet and of each sentence. All weights have names;
``benchmarks/bioasq/extractive.py`` fits and measures them.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Self

from deepera_graph.judges.trained.direction.model import DirectionModel
from deepera_graph.text.words import split_sentences, stems

WEIGHTS: Final = Path(__file__).parent / "weights.json"
MOST_SENTENCES: Final = 40  # whose direction is read, of the last snippets
_AUXILIARY: Final = (
    "is|are|was|were|does|do|did|can|could|should|will|would|has|have|may|might|must"
)
_ASKS: Final = re.compile(rf"(?:^|[:.;?,–—-]\s*)({_AUXILIARY})\b")


def _patterns(**kinds: str) -> dict[str, re.Pattern[str]]:
    return {name.replace("_", " "): re.compile(one) for name, one in kinds.items()}


_ASKED: Final = _patterns(
    necessary=r"necess|need|mandatory|required|indispens|essential|obligatory|warrant|justif",
    still=r"\bstill\b|any role|there a role|there any",
    always=r"always|routine|all ",
    affect=r"affect|influenc|impact|chang|alter|effect of|modif|role in|differ|make a difference",
    linked=r"associat|relat|correlat|link|risk factor",
    predicts=r"predict|prognos|marker|indicator",
    improves=r"improv|benefi|better|superior|enhanc|advantage|reduc|prevent|protect|help",
    works=r"safe|feasib|effective|efficac|useful|reliab|valid|possible|accura",
    harms=r"harm|worse|adverse|compromis|impair|contraindic|danger|risk of",
    same=r"differ|same|equal|comparable|similar|equivalent",
    should=r"should|recommend",
    enough=r"enough|sufficient|adequate|appropriate|optimal|best|ideal|gold standard",
    new=r"new|alternative|option",
    really=r"really|true|truly|myth|fact or|real\b",
    causes=r"cause|lead to|result in|contribut|due to",
    exists=r"is there|are there|exist",
    compares=r"than|versus|compared|\bor\b",
    increases=r"increas|higher|more|greater|rais",
    decreases=r"decreas|lower|less|reduc|fewer",
)
_SAID: Final = _patterns(
    negates=r"\b(?:no|not|nor|neither|without|never|cannot|none|did not|n't)\b",
    finds_none=r"(?:no|not|non)[- ](?:\w+ ){0,3}(?:significan|differ|associat|correlat|chang|"
    r"effect|affect|improv|influenc)",
    finds_no_difference=r"no (?:\w+ ){0,4}differen|not (?:\w+ ){0,2}differ|similar|comparable|"
    r"equivalen|identical|unchanged|the same",
    significant=r"significant",
    finds_significant=r"(?<!not )(?<!no )(?<!statistically )significant(?:ly)? (?:\w+ ){0,2}"
    r"(?:higher|lower|greater|more|less|better|increas|decreas|reduc|improv|associat|correlat|"
    r"differ)|statistically significant|was significant|were significant",
    up=r"increas|higher|greater|more |rose|elevat",
    down=r"decreas|lower|less |reduc|fewer|declin",
    good=r"improv|better|benefi|effective|success",
    bad=r"worse|poor|complicat|fail|advers",
    linked=r"associated with|correlat|predict",
    only=r"\bonly\b|\bfew\b|\bsmall\b|minor",
    but=r"however|although|\bbut\b|despite|whereas",
    hedges=r"\bmay\b|might|could|suggest",
    all=r"\ball\b|most|major|high",
    percent=r"%",
    ratio=r"odds ratio|\bor\b ?[=:]|hazard|\bhr\b|\brr\b",
    interval=r"confidence|\bci\b",
    patients=r"patient",
    years=r"year",
)
_P_VALUE: Final = re.compile(r"\bp\s*([<>=≤≥])\s*(0?[.·]\d+|1\.0+)")
_SIGNIFICANT: Final = 0.05
_MOST: Final = 5  # of anything that is counted


def describe(
    question: str, snippets: Sequence[str], directions: DirectionModel
) -> dict[str, float]:
    """Return the named features of a question with its snippets, at least one, in their order.

    The last snippet counts by itself, too: of an abstract it is the one with results.
    """
    found = _describe_question(question)
    whole = " ".join(snippets)
    for name, text in (("last", snippets[-1]), ("all", whole)):
        found |= {f"{name}: {one}": value for one, value in _describe_text(text).items()}
    return found | _describe_directions(question, snippets[-1], whole, directions)


def _describe_question(question: str) -> dict[str, float]:
    asked = question.lower()
    verbs = _ASKS.findall(asked)
    found = {f"verb: {verbs[-1] if verbs else 'none'}": 1.0}
    found["has a topic"] = float(":" in asked or ". " in asked)
    found |= {f"asks: {name}": 1.0 for name, one in _ASKED.items() if one.search(asked)}
    return found


def _describe_text(text: str) -> dict[str, float]:
    plain, found = text.lower(), {}
    n_sentences = max(1, len(split_sentences(text)))
    for name, one in _SAID.items():
        n_found = len(one.findall(plain))
        found[name] = min(n_found, _MOST) / _MOST
        found[f"{name}, a sentence"] = min(2.0, n_found / n_sentences)
    values = [(sign, float(value.replace("·", "."))) for sign, value in _P_VALUE.findall(plain)]
    n_small = sum(sign in "<≤" or (sign == "=" and value < _SIGNIFICANT) for sign, value in values)
    n_large = len(values) - n_small
    found["small p"] = min(n_small, _MOST) / _MOST
    found["large p"] = min(n_large, _MOST) / _MOST
    found["small p against large"] = (n_small - n_large) / (1 + len(values))
    found["sentences"] = min(40, n_sentences) / 20
    return found


def _describe_directions(
    question: str, last: str, whole: str, directions: DirectionModel
) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, text in (("last", last), ("all", whole)):
        likely = directions.probabilities(question, text)
        found |= {f"{name} {one}": value for one, value in likely.items()}
        odds = (likely["supports"] + 0.02) / (1 - likely["supports"] + 0.02)
        found[f"{name}, log odds"] = math.log(odds)
    texts = [one.text for one in split_sentences(last)][:MOST_SENTENCES] or [last]
    read = [directions.probabilities(question, one) for one in texts]
    asked = set(stems(question))
    shares = [len(asked.intersection(stems(one))) + 0.3 for one in texts]
    yes = [one["supports"] for one in read]
    found["sentences support, mean"] = sum(yes) / len(yes)
    found["sentences support, most"] = max(yes)
    found["sentences support, least"] = min(yes)
    found["first sentence supports"], found["last sentence supports"] = yes[0], yes[-1]
    found["no difference, most"] = max(one["no_difference"] for one in read)
    for way in ("supports", "no_difference", "contradicts"):
        weighed = sum(share * row[way] for share, row in zip(shares, read, strict=True))
        found[f"sentences near the question {way}"] = weighed / sum(shares)
    return found


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
    def load(cls, path: Path = WEIGHTS) -> Self:
        """Read the weights that were shipped."""
        return cls.of(json.loads(path.read_text(encoding="utf-8"))["yes_no"])

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
    return YesNoModel.load(), DirectionModel.load()


def probability_of_yes(question: str, snippets: Sequence[str]) -> float:
    """Return how likely yes is by the shipped weights, in (0, 1); at least one snippet."""
    model, directions = _shipped()
    return model.weigh(describe(question, snippets, directions))
