"""Judges of one's own, as a user writes them: a class with `judge` alone, behind a factory."""

from collections.abc import Sequence
from dataclasses import replace

from deepera_graph import Backend, load_backend
from deepera_graph.judges.base import Judge
from deepera_graph.schema import Batch, Judgement, Verdict


class SilentJudge(Judge):
    """Scores by the share of the question's words; does not say whether it asks a model."""

    def judge(self, batch: Batch, config: object = None) -> Sequence[Verdict]:
        """Judge a batch."""
        asked = set(batch["question"].lower().split())
        texts = [set(one["text"].lower().split()) for one in batch["windows"]]
        return [Judgement(score=len(asked & text) / len(asked)) for text in texts]


class OverlapJudge(SilentJudge):
    """The same, and it says so."""

    asks_model = False


def silent_backend() -> Backend:
    """The factory ``support.own_judges:silent_backend``."""
    return replace(load_backend("rules"), name="silent", judge=SilentJudge(), spec=None)


def overlap_backend() -> Backend:
    """The factory ``support.own_judges:overlap_backend``."""
    return replace(load_backend("rules"), name="overlap", judge=OverlapJudge(), spec=None)
