"""A backend that is imported by its name."""

from deepera_graph import Backend
from deepera_graph.testing import judged, scripted_backend


def importable_backend() -> Backend:
    """The factory ``support.roles:importable_backend``: scores are the length of the text."""
    return scripted_backend(lambda task: judged(min(1.0, len(task["text"]) / 10)))
