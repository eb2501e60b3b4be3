"""The local backend, which needs no model, no key and no network."""

from collections.abc import Iterator

from deepera_graph.backends import load_backend
from deepera_graph.doctor.finding import Finding
from deepera_graph.doctor.sample import judge_sample


def look() -> Iterator[Finding]:
    """Yield what the local backend makes of the sample."""
    yield judge_sample("local judgement", load_backend("local"))
