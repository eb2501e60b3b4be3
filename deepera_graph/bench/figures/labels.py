"""Names as they may stand in a figure: not too long, and no formula."""


def label(text: str, *, longest: int = 32) -> str:
    """Return a name in one line of at most *longest* characters, in which `$` begins no formula."""
    line = " ".join(text.split())
    short = line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"
    return short.replace("$", r"\$")
