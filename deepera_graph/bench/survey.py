"""What a data set holds, found in one pass: its labels, its hash and what can be reached."""

from dataclasses import dataclass
from hashlib import sha256

from deepera_graph.bench.dataset import Dataset
from deepera_graph.bench.errors import DatasetError
from deepera_graph.bench.metrics.judged import Judged


@dataclass(frozen=True, slots=True)
class Survey:
    """A data set without its texts.

    Attributes:
        name: Name of the data set.
        first_stage: What the candidates are ordered by.
        labels: One a question; `ranked` holds all candidates in first-stage order.
        fingerprint: SHA-256 over every instance, in order; 64 hexadecimal digits.
    """

    name: str
    first_stage: str
    labels: tuple[Judged, ...]
    fingerprint: str

    @property
    def n_questions(self) -> int:
        """How many questions there are, >= 1."""
        return len(self.labels)

    @property
    def n_candidates(self) -> float:
        """Candidates a question, on average."""
        return sum(one.n_candidates for one in self.labels) / self.n_questions

    @property
    def n_distractors(self) -> float:
        """Labelled distractors a question, on average."""
        return sum(len(one.parents) for one in self.labels) / self.n_questions

    @property
    def ceiling(self) -> float:
        """Share of the questions with a golden passage among the candidates, in [0, 1].

        No reranker can have a higher HitRate.
        """
        reachable = sum(not one.golden.keys().isdisjoint(one.ranked) for one in self.labels)
        return reachable / self.n_questions


def survey(dataset: Dataset) -> Survey:
    """Read a data set once.

    Raises:
        DatasetError: It cannot be read, or is empty.
    """
    digest = sha256()
    labels = []
    for instance in dataset:
        digest.update(instance.model_dump_json().encode() + b"\n")
        labels.append(Judged.of(instance, [one.id for one in instance.contexts]))
    if not labels:
        raise DatasetError(f"data set {dataset.name!r} has no question")
    return Survey(dataset.name, dataset.first_stage, tuple(labels), digest.hexdigest())
