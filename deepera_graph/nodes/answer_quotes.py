"""What an answer puts in quotation marks, looked for in the kept passages."""

import re
from collections.abc import Sequence

from deepera_graph.state import AnswerQuote
from deepera_graph.text.quotes import FEWEST_WORDS, find_quote

_QUOTED = re.compile(r'"([^"\n]+)"|“([^”\n]+)”|„([^“”\n]+)[“”]|«([^»\n]+)»')
_PLACE = {"verbatim": 0, "normalised": 1, "not_found": 2}


def answer_quotes(text: str, passages: Sequence[tuple[str, str]]) -> list[AnswerQuote]:
    """Return what an answer quotes, in order, each with the passage that says it best.

    A single term in quotation marks is no quote: it takes `FEWEST_WORDS` words.

    Args:
        text: The answer.
        passages: Ids and texts of the kept passages, best first.
    """
    quotes = ("".join(filter(None, match.groups())) for match in _QUOTED.finditer(text))
    return [_found(one, passages) for one in quotes if len(one.split()) >= FEWEST_WORDS]


def _found(quote: str, passages: Sequence[tuple[str, str]]) -> AnswerQuote:
    places = [(find_quote(text, quote), id) for id, text in passages]
    place, id = min(places, key=lambda one: _PLACE[one[0].status])
    if place.start is None or place.end is None:
        return {"text": quote, "id": None, "span": None, "status": "not_found"}
    return {"text": quote, "id": id, "span": [place.start, place.end], "status": place.status}
