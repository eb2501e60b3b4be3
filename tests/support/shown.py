"""What a page shows, beside what is printed: seconds differ, and scores in their last digit.

The third digit of the local judge's scores differs between processors, as its card says: so of two
digits the last may be one off.
"""

import re

_SECONDS = re.compile(r"judged in [\d.]+(?= s|$)")  # a line may end there
# a score stands after a rank, its name, or an id; lines are escaped
_BEFORE = r"(?:(?<=\d\\\.\\ )|(?<=score\\ )|(?<=\w=))"
_SCORE = re.compile(_BEFORE + r"0\\\.(\d\d)(?![\d%])")


def without_seconds(line: str) -> str:
    """A line that tells how long something took, with one time."""
    return _SECONDS.sub("judged in 0.6", line)


def is_shown(printed: list[str], shown: list[str]) -> bool:
    """Whether lines are those that are shown; three dots stand for any number of lines."""
    lines = (
        ".*" if line == "..." else _SCORE.sub(_match_score, re.escape(without_seconds(line)))
        for line in shown
    )
    return bool(re.fullmatch("\n".join(lines), "\n".join(map(without_seconds, printed)), re.DOTALL))


def _match_score(shown: re.Match[str]) -> str:
    hundredths = int(shown[1])
    near = (f"{one / 100:.2f}" for one in range(hundredths - 1, hundredths + 2))
    return f"(?:{'|'.join(map(re.escape, near))})"
