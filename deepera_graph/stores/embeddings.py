"""Embeddings of sentence-transformers by name, which say what of a text they do not read."""

import sys
from collections.abc import Sequence
from typing import Any

from langchain_core.embeddings import Embeddings

from deepera_graph.packages import call_foreign, import_extra

# Names that papers use for models of sentence-transformers, and where these are.
SHORT_NAMES = {
    "bge-large-en": "BAAI/bge-large-en",
    "bge-base-en": "BAAI/bge-base-en",
    "bge-small-en": "BAAI/bge-small-en",
}
_BGE_PROMPT = "Represent this sentence for searching relevant passages: "
_BGE = "BAAI/bge-"
_EXTRA = "sentence-transformers"


class SentenceEmbeddings(Embeddings):
    """A bi-encoder of sentence-transformers; vectors of length 1, so that cosine is their product.

    It reads the first *max_tokens* tokens of a text, and no more. English models of BGE get their
    instruction before a question, and none before a passage.

    Args:
        model: Folder, or name on the Hugging Face Hub, e.g. ``BAAI/bge-large-en`` (1 024
            dimensions, 512 tokens), or a short name: ``bge-large-en``.
        batch_size: Texts encoded at once, >= 1.
        device: E.g. ``cuda``; what torch finds if None.

    Raises:
        SettingsError: The extra ``sentence-transformers`` is not installed, or there is no such
            model.

    Source:
        Xiao et al. (2023), C-Pack: Packed Resources For General Chinese Embeddings; the
        instruction is that of the model card, https://huggingface.co/BAAI/bge-large-en
    """

    def __init__(self, model: str, *, batch_size: int = 32, device: str | None = None) -> None:
        self.model = SHORT_NAMES.get(model, model)
        self._batch_size, self._device = batch_size, device
        self._prompt = _BGE_PROMPT if self.model.startswith(_BGE) and "-en" in self.model else ""
        self._open()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in the same order."""
        if not texts:
            return []
        rows = self._encoder.encode(
            texts,
            batch_size=self._batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return [[float(number) for number in row] for row in rows]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        return self.embed_documents([self._prompt + text])[0]

    @property
    def max_tokens(self) -> int | None:
        """Most tokens of a text that are read, marks included; None if there is no limit."""
        limit: int | None = self._encoder.max_seq_length
        return limit

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens each text has, marks included."""
        tokenizer = self._encoder.tokenizer
        found = tokenizer(list(texts), truncation=False, return_attention_mask=False, verbose=False)
        return [len(ids) for ids in found["input_ids"]]

    def __getstate__(self) -> dict[str, Any]:
        """Leave the weights behind: a worker reads its own."""
        return {name: value for name, value in vars(self).items() if name != "_encoder"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    def _open(self) -> None:
        package = import_extra(
            "sentence_transformers", extra=_EXTRA, what=f"--embeddings {self.model}"
        )
        if "transformers" in sys.modules:
            sys.modules["transformers"].utils.logging.disable_progress_bar()
        self._encoder: Any = call_foreign(
            f"no weights of {self.model!r}",
            lambda: package.SentenceTransformer(self.model, device=self._device),
        )
