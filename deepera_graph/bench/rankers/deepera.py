"""An `EvidenceReranker` as a ranker."""

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from deepera_graph.bench.rankers.ranker import Job, Passage, Ranking
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.usage import Usage

_FAILED = -1.0
_NOT_JUDGING = {"bench", "cli", "demo"}


class DeepEra:
    """Ranks with DeepEra.

    Args:
        reranker: Any; with ``content="passage"`` it makes no summaries, which no ranking needs.
        kept_only: Whether to return only the passages that passed its filter, as the paper does;
            by default all are ranked, as other rankers do.
        name: What the table calls it; made from the backend's name when empty.
    """

    def __init__(
        self, reranker: EvidenceReranker, *, kept_only: bool = False, name: str = ""
    ) -> None:
        self._reranker, self._kept_only = reranker, kept_only
        self._usage = Usage()
        self.name = name or f"DeepEra {reranker.backend.name}{', kept' if kept_only else ''}"

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """Backend, settings and a hash of the code; None for a backend made of live objects."""
        backend = self._reranker.backend
        if backend.spec is None:
            return None
        return {
            "kind": "deepera",
            "backend": dict(backend.spec),
            "about": dict(backend.about),
            "settings": self._reranker.settings.to_dict(),
            "kept_only": self._kept_only,
            "code": _code_hash(),
        }

    @property
    def usage(self) -> Usage:
        """Model calls and tokens so far."""
        return self._usage

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return the passages in DeepEra's order, with scores in [0, 1]; -1 for a failed one."""
        return self._read(self._reranker.rerank(question, map(_shown, passages)))

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Do what `rank` does for many questions at once."""
        shown = [(question, [_shown(one) for one in passages]) for question, passages in jobs]
        return [self._read(result) for result in self._reranker.batch(shown)]

    def _read(self, result: RerankResult) -> Ranking:
        self._usage += result.total_usage
        chosen = result.kept if self._kept_only else result.passages
        return [(one.id, _FAILED if one.score is None else one.score) for one in chosen]


def _shown(passage: Passage) -> dict[str, Any]:
    told = {key: passage[key] for key in ("title", "section") if passage[key]}
    return {"id": passage["id"], "text": passage["text"], "metadata": told}


@cache
def _code_hash() -> str:
    """Return a hash of the files that a judgement may depend on: all but the ones around it."""
    root = Path(str(files("deepera_graph")))
    digest = sha256()
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and parts[0] not in _NOT_JUDGING and "__pycache__" not in parts:
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
