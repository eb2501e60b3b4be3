"""The compressor under test, and what it is given."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from langchain_core.documents import BaseDocumentCompressor, Document

FAILURE_MARK = "THE MODEL FAILS ON THIS DOCUMENT"


class CompressorSubject(ABC):
    """Says what is tested; `CompressorTests` says how.

    Attributes:
        sets_score: Whether documents come back with `relevance_score`, best first.
        makes_runs: Whether it runs something that callbacks can see.
    """

    sets_score = True
    makes_runs = True

    @property
    @abstractmethod
    def compressor(self) -> BaseDocumentCompressor:
        """The compressor to test; it gives equal answers to equal questions."""

    @property
    def failing_compressor(self) -> BaseDocumentCompressor | None:
        """One whose model fails on a document that holds `FAILURE_MARK`; None skips that test."""
        return None

    @property
    def query(self) -> str:
        """The query of most tests."""
        return "Does regular tea drinking lower fasting glucose in adults?"

    @property
    def documents(self) -> list[Document]:
        """At least three documents with ids and metadata; the compressor keeps one or more."""
        return [
            Document(
                id="background",
                page_content="Tea is drunk in many countries. Its effects on health are debated.",
                metadata={"source": "a.txt", "page": 1, "nested": {"tags": ["tea"]}},
            ),
            Document(
                id="finding",
                page_content=(
                    "In a randomized trial of 212 adults, regular tea drinking lowered fasting "
                    "glucose by 0.4 mmol/L compared with water (95% CI 0.2 to 0.6, p < 0.001)."
                ),
                metadata={"source": "b.txt", "page": 2, "nested": {"tags": ["tea", "glucose"]}},
            ),
            Document(
                id="other",
                page_content="Kelp forests recovered after sea otters returned to the coast.",
                metadata={"source": "c.txt", "page": 3, "nested": {"tags": []}},
            ),
        ]

    def compress(
        self, documents: Sequence[Document], query: str | None = None
    ) -> Sequence[Document]:
        """Run the compressor under test."""
        return self.compressor.compress_documents(documents, query or self.query)

    def best(self) -> Document:
        """The input document that comes back first."""
        [best, *_] = self.compress(self.documents)
        return next(document for document in self.documents if document.id == best.id)
