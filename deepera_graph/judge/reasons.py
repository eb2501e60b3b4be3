"""Why the trained judge scored a passage as it did, in a few words."""

from collections.abc import Mapping

_LIKELY = 0.5
_SIGNS = {  # what a note at or above one half says, and what it says below
    "results": ("reports results", "hardly reports results"),
    "topic": ("on topic", "hardly on topic"),
    "support": ("of one study with another on topic", "nor by its study"),
}


def reason(notes: Mapping[str, float]) -> str:
    """Say what speaks for a passage of score 0.5 or more, and what against another.

    Each is followed by its probability, for instance ``for it: reports results (0.93), on topic
    (0.81)`` or ``against it: hardly reports results (0.12)``. Notes that point the other way are
    left out: the score weighs more than these three, and a reason explains it.
    """
    likely = notes["evidence"] >= _LIKELY
    told = [
        f"{words[0] if likely else words[1]} ({notes[name]:.2f})"
        for name, words in _SIGNS.items()
        if name in notes and (notes[name] >= _LIKELY) == likely and not _excused(name, notes)
    ]
    if told:
        return f"{'for' if likely else 'against'} it: {', '.join(told)}"
    if likely:
        return "for it: how its sentences match the question, beside the other passages"
    return "against it: reports results and is on topic, but hardly on this very question"


def _excused(name: str, notes: Mapping[str, float]) -> bool:
    """Tell whether a low note is no fault: one study is as good as one's own words on topic."""
    other = {"topic": "support", "support": "topic"}.get(name)
    low = notes[name] < _LIKELY
    return low and other is not None and notes.get(other, 0.0) >= _LIKELY
