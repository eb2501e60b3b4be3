"""What a question looks like: whether yes or no answers it, whether it is a claim."""

import re

_AUXILIARY = (
    r"(?:is|are|was|were|do|does|did|can|could|should|would|will|has|have|had|may|might|must)"
    r"(?:n['’]t)?"
)
_ASKING = re.compile(
    r"(?:who|what|when|where|which|why|how|whose|is|are|was|were|does|do|did|can|could|should|"
    r"would|will|has|have|had|may|might)\b",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(rf"(?:^|[:;,.?!–—]\s+|\s-\s+){_AUXILIARY}\s+\w", re.IGNORECASE)
_LEAST_CLAIM = 4  # words; fewer are keywords


def looks_like_claim(question: str) -> bool:
    """Tell whether a question is a claim to be checked: no question mark, no asking word first."""
    text = question.strip()
    return not text.endswith(("?", "？", "؟")) and not _ASKING.match(text)


def asks_yes_or_no(question: str) -> bool:
    """Tell whether yes or no answers a question, as in ``Does A affect B?``, ``A: is it B?``.

    A claim of four words or more is answered so, too.
    """
    text = question.strip()
    if looks_like_claim(text):
        return len(text.split()) >= _LEAST_CLAIM
    return _YES_OR_NO.search(text) is not None
