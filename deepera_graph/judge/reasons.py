"""Why the trained judge scored a passage as it did, in a few words."""

from collections.abc import Mapping

_LIKELY = 0.5


def reason(notes: Mapping[str, float]) -> str:
    """Say what the judge found, each as a probability.

    For instance ``reports results (0.93); on topic (0.41), of one study with a passage on topic
    (0.88)``.
    """
    told = "reports results" if notes["results"] >= _LIKELY else "hardly reports results"
    about = "on topic" if notes["topic"] >= _LIKELY else "hardly on topic by itself"
    parts = f"{told} ({notes['results']:.2f}); {about} ({notes['topic']:.2f})"
    support = notes.get("support")
    if support is None:
        return parts
    with_ = "of one study with" if support >= _LIKELY else "hardly of one study with"
    return f"{parts}, {with_} another on topic ({support:.2f})"
