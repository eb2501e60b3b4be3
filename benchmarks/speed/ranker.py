"""A ranker behind one call: a question and its passages in, codes out, best first.

All rankers have their own defaults but for three things: as many results are asked for as there are
relevant passages at most (ten), what may run at once is as much as they let themselves be told, and
a call may take as long as it takes. Each is made once and asked several questions, in one event
loop, as in a service.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata

TOP_N = 10
CALL_SECONDS = 600.0
KEY = "not-needed"
Passages = Mapping[str, str]
Rank = Callable[[str, Passages], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Ranker:
    """A ranker: the packages it needs, and how it is made.

    Attributes:
        name: As the table shows it.
        packages: Without them it is skipped.
        make: Takes the URL of the server and how many calls it serves at once.
        in_turn: Whether each of its calls needs the answer of the one before.
    """

    name: str
    packages: tuple[str, ...]
    make: Callable[[str, int], Rank]
    in_turn: bool = False

    def missing(self) -> str:
        """Return the first package that is not installed, or an empty text."""
        for package in self.packages:
            try:
                metadata.version(package)
            except metadata.PackageNotFoundError:
                return package
        return ""

    @property
    def versions(self) -> list[str]:
        """Names and versions of the packages measured."""
        return [f"{package} {metadata.version(package)}" for package in self.packages]
