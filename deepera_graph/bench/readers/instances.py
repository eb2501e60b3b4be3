"""Instance files: one instance a line, as PubMedQA with look-alikes is kept."""

from collections.abc import Iterator
from pathlib import Path

from deepera_graph.bench.errors import DatasetError
from deepera_graph.bench.instance import Instance
from deepera_graph.bench.jsonl import read_rows


def read_instances(path: Path) -> Iterator[Instance]:
    """Yield the instances of a file, one in memory at a time.

    Raises:
        DatasetError: A line is not an instance, or an id was used before.
    """
    seen: set[str] = set()
    for instance in read_rows(path, Instance):
        if instance.id in seen:
            raise DatasetError(f"{path}: instance id {instance.id!r} is used twice")
        seen.add(instance.id)
        yield instance
