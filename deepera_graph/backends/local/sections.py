"""What a passage's section label says about it."""

import re

_RULES = tuple(
    (re.compile(pattern, re.IGNORECASE), weight)
    for pattern, weight in (
        (r"result|finding|outcomes?$", 0.5),
        (r"conclu|discussion|abstract$|summary", 0.0),
        (r"method|material|design|procedure|participants|statistical|setting|protocol", -1.5),
        (r"background|introduction|objective|\baims?\b|purpose|related work|rationale", -1.5),
        (r"reference|acknowledg|competing|contribution|abbreviation|funding|supporting", -3.0),
    )
)


def section_weight(section: str) -> float:
    """Log odds that a section label adds to evidence; 0 for none or one that says nothing.

    Source:
        Set by hand.
    """
    last = section.rsplit(".", maxsplit=1)[-1]
    return next((weight for pattern, weight in _RULES if pattern.search(last)), 0.0)
