"""What goes wrong in a benchmark."""

from deepera_graph.errors import DeepEraError


class DatasetError(DeepEraError, ValueError):
    """A data set cannot be read; the message names the file and the line."""


class RankingError(DeepEraError, ValueError):
    """A ranker gave back something that is not a ranking of what it was given."""


class MetricError(DeepEraError, ValueError):
    """A metric is unknown, or cannot be computed from what it was given."""


class UnavailableError(DeepEraError):
    """A ranker cannot run here: a package, weights or a key is missing; the message says which."""
