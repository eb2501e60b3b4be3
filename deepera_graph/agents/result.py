"""What the results of all agents say of the way they came about."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deepera_graph.usage import HasUsage


class AgentResult(HasUsage):
    """What an agent found, with what went wrong, what it cost and how it was made."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def problems(self) -> Sequence[str]:
            """All that went wrong on the way, in words."""

        @property
        def seconds(self) -> float:
            """How long it took."""

        @property
        def manifest(self) -> Mapping[str, Any]:
            """Who worked, with which settings and versions."""

    def plain_end(self) -> dict[str, Any]:
        """Return the end of the plain form: problems, usage, seconds and manifest."""
        return {
            "problems": list(self.problems),
            "usage": {name: used.record() for name, used in self.usage.items()},
            "seconds": self.seconds,
            "manifest": dict(self.manifest),
        }
