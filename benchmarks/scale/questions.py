"""Invented questions with invented passages, as many as are wanted.

``python questions.py 10000 30 > questions.jsonl``
"""

import json
import random
import sys
from collections.abc import Iterator

_CROPS = ("apples", "pears", "plums", "quinces", "medlars", "cherries")
_ACTS = ("Wax coating", "Cool storage", "Thin film", "Calcium dipping", "Shading", "Late picking")
_ENDS = ("firmness", "colour", "acidity", "weight", "sugar", "scald")
_SENTENCES = (
    "{act} changed the {end} of {crop} by {n}% (p < 0.0{m}).",
    "{crop} were kept for {n} days at {m} degrees before {end} was measured.",
    "We aimed to find out whether {act} has an effect on the {end} of {crop}.",
    "Whether {act} matters for {crop} has been debated for {n} years.",
    "{n} trees in {m} orchards were chosen at random, and half of them were left as they were.",
    "There was no difference in {end} between treated and untreated {crop} after {n} days.",
    "Growers in {m} regions were asked about {act} and what it costs.",
    "These findings suggest that {end} depends on more than {act} alone.",
)


def lines(n_questions: int, n_passages: int, seed: int = 0) -> Iterator[bytes]:
    """Yield input lines of `deepera rerank`; a passage has about 110 words."""
    chance = random.Random(seed)
    for number in range(n_questions):
        act, end, crop = chance.choice(_ACTS), chance.choice(_ENDS), chance.choice(_CROPS)
        line = {
            "id": f"q{number}",
            "question": f"Does {act.lower()} change the {end} of {crop} in storage {number}?",
            "passages": [
                {"id": f"p{place}", "text": _passage(chance), "score": 1 / (1 + place)}
                for place in range(n_passages)
            ],
        }
        yield json.dumps(line).encode() + b"\n"


def _passage(chance: random.Random) -> str:
    return " ".join(
        chance.choice(_SENTENCES).format(
            act=chance.choice(_ACTS),
            end=chance.choice(_ENDS),
            crop=chance.choice(_CROPS),
            n=chance.randint(2, 98),
            m=chance.randint(1, 9),
        )
        for _ in range(9)
    )


if __name__ == "__main__":
    sys.stdout.buffer.writelines(lines(int(sys.argv[1]), int(sys.argv[2])))
