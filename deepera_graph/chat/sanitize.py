"""Foreign text made safe to show: what cannot be seen, or would steer the model, stands out.

One character takes the place of one, so that offsets into the text stay true.
"""

import re
import unicodedata

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # control, format, surrogates, separators
# Letters and marks without a shape of their own (Default_Ignorable_Code_Point of Unicode 15.1,
# DerivedCoreProperties.txt, as far as `_UNSEEN` leaves them out), and the blank Braille cell.
_SHAPELESS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
    "|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]"  # one of these chooses a shape, more hide a text
)
# What chat templates and models take for the bounds of a message, a thought or a tool call.
_TOKEN_NAMES = (
    "s|bos|eos|unk|pad|sop|eop|im_start|im_end|think|thinking|thought|reasoning|system|user|"
    "assistant|human|tool|tools|function|tool_calls?|tool_responses?|function_calls?|"
    "start_of_turn|end_of_turn|end_of_text|start_header_id|end_header_id|eot_id|"
    "instructions?|answer|passage|evidence|document|documents|context"
)
_ANGLE = re.compile(rf"<(?=[|｜]|/?(?:{_TOKEN_NAMES})\b[^<>\n]{{0,40}}>|</?SYS>>)", re.IGNORECASE)
_SQUARE = re.compile(
    r"\[(?=/?(?:INST|SYSTEM_PROMPT|THINK|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS|gMASK|SYS)\])",
    re.IGNORECASE,
)
_RULE = re.compile("[=＝]{5,}")  # what our own marker lines begin with
_ORDINARY = re.compile(r"(?:[\n -;>-Z\\-~]|=(?!=)|< )*+")  # printable ASCII of which no rule speaks
_INSTEAD = "\ufffd"


def sanitize(text: str) -> str:
    """Replace control, direction and unseen characters, break the tokens of chat templates.

    Line breaks stay; white space of other kinds becomes a space. A rule of equals signs, as in our
    marker lines, becomes one of dashes.
    """
    if _ORDINARY.fullmatch(text):
        return text
    seen = "".join(
        one if one == "\n" or unicodedata.category(one) not in _UNSEEN else _stand_in(one)
        for one in text
    )
    shaped = _SHAPELESS.sub(_INSTEAD, seen)
    ruled = _RULE.sub(lambda rule: "-" * len(rule.group()), shaped)
    return _SQUARE.sub("［", _ANGLE.sub("‹", ruled))


def sanitize_line(text: str) -> str:
    """Return the text as `sanitize` does, in one line."""
    return " ".join(sanitize(text).split())


def _stand_in(unseen: str) -> str:
    """A tab, a carriage return and a page break are white space like any other."""
    return " " if unseen.isspace() else _INSTEAD
