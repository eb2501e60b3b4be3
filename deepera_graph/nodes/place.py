"""Where a quote stands in its passage, and whether a window passes by it."""

from typing import Literal

from deepera_graph.state import JudgementRecord, Span
from deepera_graph.text.quotes import find_quote

Found = Literal["verbatim", "normalised", "not_found"]


def passes(text: str, judgement: JudgementRecord, lowest: float, *, needs_evidence: bool) -> bool:
    """Whether the verdict on a window of a text reaches a score, and shows evidence if it must."""
    score = judgement["score"]
    if score is None or score < lowest:
        return False
    return not needs_evidence or bool(judgement["quote"] and placed(text, judgement)[1])


def placed(text: str, judgement: JudgementRecord) -> tuple[Found, Span | None]:
    """Find a quote in the window it was read in: word for word, or but for typography."""
    quote, start, end = judgement["quote"], judgement["start"], judgement["end"]
    place = text.find(quote, start, end)
    if place >= 0:
        return "verbatim", [place, place + len(quote)]
    found = find_quote(text, quote, start=start, end=end)
    if found.start is None or found.end is None:
        return found.status, None
    return found.status, [found.start, found.end]
