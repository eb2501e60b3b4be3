"""A data set: a name, and instances that can be read again and again."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from deepera_graph.bench.instance import Instance


@dataclass(frozen=True, slots=True)
class Dataset:
    """Benchmark questions under one name.

    Attributes:
        name: Heads the table.
        read: Opens the data anew and yields its instances, always the same ones.
        first_stage: What the candidates are ordered by, for people, e.g. ``"BM25"``.
    """

    name: str
    read: Callable[[], Iterable[Instance]]
    first_stage: str = "unknown"

    def __iter__(self) -> Iterator[Instance]:
        return iter(self.read())

    def first(self, n: int) -> "Dataset":
        """Return the first *n* instances under the same name; for a quick look."""
        return Dataset(self.name, lambda: islice(iter(self), n), self.first_stage)
