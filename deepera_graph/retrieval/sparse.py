"""Sparse vectors in the manner of BM25, made offline: no model, no vocabulary, no download."""

from collections import Counter
from zlib import crc32

from langchain_qdrant import SparseEmbeddings, SparseVector

from deepera_graph.errors import SettingsError
from deepera_graph.text.words import stems

# Changes whenever the same text would get other term numbers; part of the vector's name in a store.
SCHEME = "hashed-stems-1"


class HashedTermEmbeddings(SparseEmbeddings):
    """BM25 term weights under hashed stems, for a Qdrant vector with the IDF modifier.

    A passage holds the saturated, length-normalised frequency of each of its stems, a question
    the plain counts; Qdrant multiplies by the inverse document frequency of the collection, so
    that the dot product is the BM25 score. A stem's number is its CRC-32: the same in every
    process. Stems that share a number count as one (about 1 pair among 100 000 stems). A text
    without content words gets the empty vector, which matches nothing.

    Args:
        k1: How soon a repeated term stops counting, >= 0.
        b: How much long passages are held back, in [0, 1].
        average_length: Stems in a passage of usual length, > 0; stated, not measured, so that a
            vector depends on its own text alone. 100 stems are about 170 words of prose.

    Raises:
        SettingsError: A value is out of range.

    Source:
        Robertson and Zaragoza (2009), The Probabilistic Relevance Framework: BM25 and Beyond,
        eq. 3.15, with the customary k1 = 1.2 and b = 0.75. Qdrant's IDF is
        ``ln((N - n + 0.5) / (n + 0.5) + 1)``: https://qdrant.tech/documentation/concepts/indexing.
    """

    def __init__(self, *, k1: float = 1.2, b: float = 0.75, average_length: float = 100.0) -> None:
        if not k1 >= 0:
            raise SettingsError(f"k1 must be >= 0, got {k1!r}")
        if not 0 <= b <= 1:
            raise SettingsError(f"b must be in [0, 1], got {b!r}")
        if not average_length > 0:
            raise SettingsError(f"average_length must be > 0, got {average_length!r}")
        self.k1 = k1
        self.b = b
        self.average_length = average_length

    def embed_documents(self, texts: list[str]) -> list[SparseVector]:
        """Return the vectors of passages, shape (n_texts,); weights in (0, k1 + 1)."""
        return [self._embed_document(text) for text in texts]

    def embed_query(self, text: str) -> SparseVector:
        """Return the vector of a question; weights are counts, >= 1."""
        counts = _count_terms(text)
        return SparseVector(
            indices=list(counts), values=[float(count) for count in counts.values()]
        )

    def _embed_document(self, text: str) -> SparseVector:
        counts = _count_terms(text)
        length = sum(counts.values())
        held_back = self.k1 * (1 - self.b + self.b * length / self.average_length)
        return SparseVector(
            indices=list(counts),
            values=[count * (self.k1 + 1) / (count + held_back) for count in counts.values()],
        )


def _count_terms(text: str) -> dict[int, int]:
    """Count the stems under their numbers, in rising order of number."""
    counts = Counter(crc32(stem.encode("utf-8", "surrogatepass")) for stem in stems(text))
    return dict(sorted(counts.items()))
