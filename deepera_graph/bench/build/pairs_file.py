"""Questions made elsewhere, e.g. by LMQG itself, read from a file."""

from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.bench.build.corpus import Chunk
from deepera_graph.bench.build.document import Document
from deepera_graph.bench.build.pairs import Pair, folded
from deepera_graph.bench.jsonl import read_rows


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    document: str = Field(min_length=1)
    pairs: list[tuple[str, str]]


class PairsFile:
    """Pairs from JSON lines ``{"document": id, "pairs": [[question, answer], ...]}``.

    Args:
        path: The file; a document may have several lines. Its name without the suffix names the
            data set.

    Raises:
        DatasetError: A line cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        self._pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for row in read_rows(path, _Row):
            self._pairs[row.document].extend(row.pairs)
        self._digest = sha256(path.read_bytes()).hexdigest()

    def about(self) -> dict[str, str]:
        """Return its name and the hash of the file."""
        return {"name": self.name, "sha256": self._digest}

    async def pairs(self, document: Document, chunks: Sequence[Chunk]) -> list[Pair]:
        """Return the pairs of a document, each with the first chunk that holds its answer."""
        return [
            Pair(question.strip(), answer.strip(), _holder(answer, chunks))
            for question, answer in self._pairs.get(document.id, [])
        ]


def _holder(answer: str, chunks: Sequence[Chunk]) -> Chunk:
    wanted = folded(answer)
    return next((one for one in chunks if wanted in folded(one.text)), chunks[0])
