"""What one check found."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

Status = Literal["ok", "warn", "fail", "skipped"]
HIDDEN = "***"
_LONGEST = 240
_SHORTEST_SECRET = 4  # replacing anything shorter would eat ordinary words


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; both texts are one line.

    Attributes:
        name: What was looked at, e.g. ``"judgement cache"``.
        status: ``ok``; ``warn``, works but not as well as it could; ``fail``; ``skipped``, not
            looked at, or not installed and not needed.
        found: What is there.
        advice: What to do; empty if nothing is to be done.
    """

    name: str
    status: Status
    found: str
    advice: str = ""

    def without(self, secrets: Sequence[str]) -> "Finding":
        """Return the same finding, with *secrets* and what a terminal would obey taken out."""
        return replace(self, found=_clean(self.found, secrets), advice=_clean(self.advice, secrets))

    def to_dict(self) -> dict[str, str]:
        """Return plain data."""
        return asdict(self)


def _clean(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    text = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
