"""Invented questions and passages of realistic length, the same on any machine.

A passage is about 100 tokens long (400 characters, five sentences) and holds a code by which the
server knows it again.
"""

import re
from dataclasses import dataclass
from random import Random

CODE = re.compile(r"\bQ\d{3}-\d{4}\b")
WARM_UP = 0  # number of the question that is asked before the clock starts
WARM_UP_PASSAGES = 4
_SHARE_RELEVANT = 5  # one passage in five
_MOST_RELEVANT = 10
_TREATMENTS = (
    "wax coating", "blue light", "salt priming", "cold plasma", "biochar", "shade netting",
    "root pruning", "silicon spray", "mild drought", "grafting",
)  # fmt: skip
_OUTCOMES = (
    "firmness", "seedling height", "leaf area", "sugar content", "germination", "fruit weight",
    "root mass", "spore count", "oil yield", "shelf life",
)  # fmt: skip
_SPECIES = (
    "apples", "barley", "tomatoes", "mountain pine", "chickpeas", "oyster mushrooms", "olives",
    "sugar beet", "lettuce", "strawberries",
)  # fmt: skip
_OPENINGS = (
    "How {treatment} acts on {outcome} of {species} has been argued about since the first reports.",
    "Growers of {species} look for ways to change {outcome} that need no new equipment.",
    "Reports on {species} under {treatment} differ between regions, seasons and laboratories.",
    "Interest in {treatment} has grown with the cost of storing and moving {species}.",
)
_METHODS = (
    "Plots were laid out in {n} blocks and sampled every {k} days by two people.",
    "We followed {n} lots over {k} weeks and kept all other conditions the same.",
    "Samples came from {n} farms, and each was measured {k} times with one instrument.",
    "A greenhouse trial with {n} trays a group ran for {k} weeks under natural light.",
)
_FINDINGS = (
    "In series {code}, {treatment} raised {outcome} of {species} by {n}% against {k}% in controls.",
    "Under {treatment}, {outcome} of {species} in series {code} was {n}% higher (p < 0.0{k}).",
)
_OTHERS = (
    "In series {code}, only the colour of {species} was noted, by eye, on {n} occasions.",
    "Series {code} shows how the {n} instruments drifted over {k} days without any {species}.",
    "Series {code} will be used to plan {n} further trials with {species} in the next {k} years.",
)
_CLOSINGS = (
    "Differences between sites were small, and the groups came in the same order at all of them.",
    "Costs were not part of the analysis, and the data of the first season are given apart.",
    "Two lots were lost to frost and are not counted in any of the tables that follow.",
    "Weather was close to the mean of the last {n} years, with one wet week in the middle.",
)
_ENDINGS = (
    "All records are kept by the station and can be had on request.",
    "The same staff took part from the first day to the last.",
    "Further work should cover more than {k} varieties.",
    "Readers are referred to the tables for the details.",
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with passages of known worth.

    Attributes:
        text: What is asked.
        entities: Its entities, as an intent names them.
        passages: Text by code, in first-stage order; every text holds its own code.
        worth: Relevance by code, in [0, 1], all different; those that count are above 0.8.
    """

    text: str
    entities: str
    passages: dict[str, str]
    worth: dict[str, float]

    @property
    def relevant(self) -> set[str]:
        """Codes of the passages that answer the question."""
        return {code for code, worth in self.worth.items() if worth > 0.8}


def make_question(seed: int, number: int, n_passages: int) -> Question:
    """Write question *number*: one passage in five is relevant, but ten at most."""
    random = Random(f"{seed} {number} {n_passages}")
    words = {
        "treatment": random.choice(_TREATMENTS),
        "outcome": random.choice(_OUTCOMES),
        "species": random.choice(_SPECIES),
    }
    text = "Does {treatment} change {outcome} of {species} in trial {number}?"
    codes = [f"Q{number:03}-{place:04}" for place in range(1, n_passages + 1)]
    n_relevant = min(_MOST_RELEVANT, max(1, n_passages // _SHARE_RELEVANT))
    relevant = set(random.sample(codes, n_relevant))
    worth = {
        code: (0.85 if code in relevant else 0.05) + place / n_passages / 10
        for place, code in enumerate(random.sample(codes, n_passages))
    }
    return Question(
        text.format(number=number, **words),
        f"treatment: {words['treatment']}; organism: {words['species']}",
        {code: _passage(random, code, words, code in relevant) for code in codes},
        worth,
    )


def make_questions(seed: int, n_questions: int, n_passages: int) -> list[Question]:
    """Write the question of the warm-up and those that are measured, in this order."""
    measured = [make_question(seed, number, n_passages) for number in range(1, n_questions + 1)]
    return [make_question(seed, WARM_UP, WARM_UP_PASSAGES), *measured]


def _passage(random: Random, code: str, words: dict[str, str], is_relevant: bool) -> str:
    parts = (_OPENINGS, _METHODS, _FINDINGS if is_relevant else _OTHERS, _CLOSINGS, _ENDINGS)
    return " ".join(
        random.choice(part).format(
            code=code, n=random.randint(12, 48), k=random.randint(2, 9), **words
        )
        for part in parts
    )
