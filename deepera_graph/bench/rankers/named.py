"""Rankers by name, for the command line.

| name | ranker |
|---|---|
| ``first-stage`` | the order the passages came in |
| ``random`` | a seeded shuffle |
| ``bm25`` | BM25 over the passages of the question |
| ``deepera:BACKEND`` | DeepEra, all passages ranked, e.g. ``deepera:local`` |
| ``deepera-kept:BACKEND`` | DeepEra, only what passed its filter |
| ``dense:package.module:factory`` | cosine under the LangChain embeddings that the factory makes |
| ``compressor:package.module:factory`` | the LangChain compressor that the factory makes |
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.embeddings import Embeddings

from deepera_graph.bench.rankers.bm25 import BM25
from deepera_graph.bench.rankers.compressor import Compressor
from deepera_graph.bench.rankers.deepera import DeepEra
from deepera_graph.bench.rankers.dense import Dense
from deepera_graph.bench.rankers.order import FirstStage, Random
from deepera_graph.bench.rankers.ranker import Ranker
from deepera_graph.errors import SettingsError
from deepera_graph.reranker import EvidenceReranker


def make_ranker(name: str, *, seed: int = 0) -> Ranker:
    """Return the ranker that a name stands for.

    Args:
        name: See the module.
        seed: Of the random order.

    Raises:
        SettingsError: No ranker has this name, or its factory cannot be used.
    """
    head, _, tail = name.partition(":")
    if name == "random":
        return Random(seed)
    if name in _WHOLE:
        return _WHOLE[name]()
    if tail and head in _WITH_PART:
        return _WITH_PART[head](tail)
    known = [*_WHOLE, "random", *(f"{one}:..." for one in _WITH_PART)]
    raise SettingsError(f"ranker must be one of {', '.join(known)}, got {name!r}")


def _deepera(backend: str) -> Ranker:
    return DeepEra(EvidenceReranker(backend, content="passage"))


def _deepera_kept(backend: str) -> Ranker:
    return DeepEra(EvidenceReranker(backend, content="passage"), kept_only=True)


def _dense(path: str) -> Ranker:
    made = _made(path)
    if not isinstance(made, Embeddings):
        raise SettingsError(f"{path} must return LangChain embeddings, got {made!r:.80}")
    return Dense(made, name=f"dense {path}")


def _compressor(path: str) -> Ranker:
    made = _made(path)
    if not isinstance(made, BaseDocumentCompressor):
        raise SettingsError(f"{path} must return a LangChain compressor, got {made!r:.80}")
    return Compressor(made, name=f"compressor {path}")


def _made(path: str) -> object:
    module, _, attribute = path.partition(":")
    try:
        factory: Callable[[], Any] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"factory {path!r} cannot be imported: {error}") from error
    return factory()


_WHOLE: Mapping[str, Callable[[], Ranker]] = {"first-stage": FirstStage, "bm25": BM25}
_WITH_PART: Mapping[str, Callable[[str], Ranker]] = {
    "deepera": _deepera,
    "deepera-kept": _deepera_kept,
    "dense": _dense,
    "compressor": _compressor,
}
