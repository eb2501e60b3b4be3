"""LangChain embeddings from the weights of the local judge."""

from pathlib import Path

from langchain_core.embeddings import Embeddings

from deepera_graph import local_model


class EvidenceEmbeddings(Embeddings):
    """Vectors of texts, of length 1, from the weights of the trained local judge; no network.

    ``open_store("papers", embeddings=EvidenceEmbeddings())``, or any LangChain vector store. A text
    has the same vector in any company, and as a question as as a document. They say what a text is
    about; what it proves is the judge's to say. The weights are loaded at first use, once a
    process, and shared with `deepera_graph.local_backend`.

    Args:
        weights: Folder of other weights, as ``deepera judge train`` writes; those that come with
            the package if None.
        threads: Texts read at once, >= 1; if None, those of OMP_NUM_THREADS, else one a core.
    """

    def __init__(self, weights: str | Path | None = None, *, threads: int | None = None) -> None:
        self._weights, self._threads = weights, threads

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in the same order.

        Raises:
            SettingsError: There are no weights, they are damaged, or *threads* is out of range.
        """
        if not texts:
            return []
        model = local_model(self._weights, threads=self._threads)
        return [[float(number) for number in row] for row in model.embed(texts)]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question.

        Raises:
            SettingsError: As for `embed_documents`.
        """
        return self.embed_documents([text])[0]
