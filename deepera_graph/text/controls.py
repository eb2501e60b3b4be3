"""Characters that a terminal or a page obeys instead of showing them: no text may carry them out.

Escape sequences change the title of a terminal, its colours and what stands above; overrides of
the direction of writing show a text in another order than it is read in. What is shown or exported
has neither. Joiners and the marks of a direction, which scripts need, stay.

Source: ECMA-48, 5.3 to 5.6; Unicode Technical Report 36, 3.5; https://trojansource.codes.
"""

import re

_INSTEAD = "\ufffd"
# C0 but for tabs and the ends of lines, DEL and C1; embeddings, overrides and isolates.
_OBEYED = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")


def replace_controls(text: str) -> str:
    """Return a text that shows a mark in place of each of these characters."""
    return _OBEYED.sub(_INSTEAD, text)


def in_one_line(text: str) -> str:
    """Return a text as `replace_controls` does, in one line."""
    return replace_controls(" ".join(text.split()))


def escape_controls(text: str) -> str:
    """Return JSON that means the same, with an escape in place of each of these characters."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
