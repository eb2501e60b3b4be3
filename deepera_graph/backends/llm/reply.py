"""What came back from a model."""

from dataclasses import dataclass, replace

from deepera_graph.usage import Usage


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model.

    Attributes:
        text: What it said: its text, or the arguments of its tool call.
        usage: What it cost, failed attempts before it included.
        refusal: Why it refused; empty if it did not.
        cut_off: Whether it ended at the limit of its tokens.
    """

    text: str
    usage: Usage
    refusal: str = ""
    cut_off: bool = False

    def costing(self, more: Usage) -> "Reply":
        """Return the same reply with *more* usage."""
        return replace(self, usage=self.usage + more)
