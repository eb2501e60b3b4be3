"""Why a passage scored as it did, in a few words."""

import re

from deepera_graph.backends.local.cues import CUE_NAMES, words_of_cue
from deepera_graph.backends.local.grounding import CUE_WEIGHTS, Reading, Sought
from deepera_graph.backends.local.measures import Study
from deepera_graph.text.words import words

GROUNDED = 0.5
_TELLING = ("direction", "relation", "mechanism", "report")
_FAINT = frozenset(("least", "most", "same", "more", "less", "later", "earlier", "older"))
_NUMBER = re.compile(
    r"\b[pP]\s?[<>=≤≥]\s?\d?[.·]\d+|\b(?:OR|RR|HR|aOR)\b[^\d;]{0,4}\d+[.·]\d+|\d+(?:[.·]\d+)?\s?%"
)
_INSTEAD = {
    "aim": "an aim",
    "intention": "an aim",
    "method": "a method",
    "background": "background",
    "speculation": "a supposition",
}


def reason(study: Study, kind: Sought) -> str:
    """Say what the best sentence states and how much of the question the passage names.

    For instance ``states a result: 'decreased', p = 0.02; names 5 of 6 question terms``.
    """
    topic = study.topic
    named = f"names {topic.n_found} of {topic.n_terms} question terms"
    stated = _stated(study.best) if kind in ("result", "figure") else f"read for a {kind}"
    return f"{stated}; {named}"


def _stated(reading: Reading) -> str:
    if reading.grounding < GROUNDED:
        return _lacking(reading)
    signs = _signs(reading)
    return f"states a result: {', '.join(signs)}" if signs else "states a result"


def _signs(reading: Reading) -> list[str]:
    found = words(reading.sentence.text)
    told = [word for cue in _TELLING for word in found if word in words_of_cue(cue)]
    telling = [word for word in told if word not in _FAINT] or told
    number = _NUMBER.search(reading.sentence.text)
    return [f"'{word}'" for word in telling[:1]] + ([number.group()] if number else [])


def _lacking(reading: Reading) -> str:
    pulls = {
        _INSTEAD[name]: CUE_WEIGHTS[name] * count
        for name, count in zip(CUE_NAMES, reading.cues, strict=True)
        if count and name in _INSTEAD
    }
    if not pulls:
        return "states no result"
    return f"states no result, reads like {min(pulls, key=pulls.__getitem__)}"
