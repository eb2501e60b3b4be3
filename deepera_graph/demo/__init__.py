"""One question of the demonstration: retrieved, reranked, and held against the labels."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from langchain_core.documents import Document

from deepera_graph.export import describe_result
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.schema import POSSIBLE

GOLDEN = "golden"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoQuestion:
    """A question, and what the corpus says about its passages."""

    id: str  # of the question
    science: str  # its field
    question: str  # what is asked
    golden: tuple[str, ...]  # ids of the passages that hold the evidence; at least one
    # what kind of look-alike a passage is, by its id: ``background``, ``methods``, ``speculation``,
    # ``other outcome``, ``other population``
    look_alikes: dict[str, str]

    def label(self, passage_id: str) -> str:
        """Return ``golden``, ``look-alike (its kind)``, or nothing for any other passage."""
        if passage_id in self.golden:
            return GOLDEN
        kind = self.look_alikes.get(passage_id)
        return f"look-alike ({kind})" if kind else ""


def read_corpus(*, hard: bool = False) -> list[Document]:
    """Return the abstracts with their ids and titles, and nothing else of what is known of them."""
    return [
        Document(
            id=abstract["id"], page_content=abstract["text"], metadata={"title": abstract["title"]}
        )
        for abstract in _lines("corpus.jsonl", hard=hard)
    ]


def read_questions(*, hard: bool = False) -> list[DemoQuestion]:
    """Return the questions of one corpus in their order."""
    return [
        DemoQuestion(**{**fields, "golden": tuple(fields["golden"])})
        for fields in _lines("questions.jsonl", hard=hard)
    ]


def _lines(name: str, *, hard: bool) -> Iterator[dict[str, Any]]:
    file = files("deepera_graph.demo").joinpath(f"hard_{name}" if hard else name)
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


N_CANDIDATES = 30
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A question with its result; the labels come in only here."""

    question: DemoQuestion
    result: RerankResult

    @property
    def evidence_first(self) -> bool:
        """Whether the best-ranked passage is a golden one."""
        return self._is_golden_first(self.result.passages)

    @property
    def evidence_first_before(self) -> bool:
        """Whether the first stage had a golden passage first."""
        return self._is_golden_first(self.by_retrieval)

    @property
    def by_retrieval(self) -> list[RankedPassage]:
        """The passages in the order of the first stage."""
        return sorted(self.result.passages, key=lambda one: one.retrieval_rank)

    @property
    def wrongly_kept(self) -> list[RankedPassage]:
        """The passages that passed, but are not golden."""
        return [one for one in self._passed if self.label(one) != GOLDEN]

    @property
    def missed(self) -> list[RankedPassage]:
        """The golden passages, best first, if none of them passed."""
        golden = [one for one in self.result.all_passages if self.label(one) == GOLDEN]
        return [] if any(self.label(one) == GOLDEN for one in self._passed) else golden

    @property
    def _passed(self) -> tuple[RankedPassage, ...]:
        return () if self.result.fallback else self.result.kept

    def mistakes(self) -> list[str]:
        """Say what went wrong, in a line each; nothing if all is well."""
        found = []
        if self.wrongly_kept:
            first, *others = self.wrongly_kept
            also = f"; and {', '.join(one.id for one in others)}" if others else ""
            label = self.label(first) or "no evidence"
            how = f", {POSSIBLE}" if first.band == POSSIBLE else ""
            found.append(f"kept {first.id}, {label}, {self._show(first)}{how}{also}")
        if self.missed:
            best = self.missed[0]
            found.append(f"missed the evidence {best.id}, {self._show(best)}")
        return found

    def label(self, passage: RankedPassage) -> str:
        """Return what the corpus says about a passage."""
        return self.question.label(passage.id)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; every candidate is in `ranking` once."""
        plain = describe_result(self.result)
        labels = {one.id: one for one in self.result.passages}
        return {
            "format": FORMAT,
            "id": self.question.id,
            "science": self.question.science,
            "golden": list(self.question.golden),
            "look_alikes": dict(self.question.look_alikes),
            "evidence_first": self.evidence_first,
            "evidence_first_before": self.evidence_first_before,
            "wrongly_kept": [one.id for one in self.wrongly_kept],
            "missed": [one.id for one in self.missed],
            **plain,
            "ranking": [
                {**ranked, **self._beside(labels[ranked["id"]])} for ranked in plain["ranking"]
            ],
        }

    def _beside(self, passage: RankedPassage) -> dict[str, Any]:
        return {
            "title": passage.metadata.get("title", ""),
            "direction": passage.direction,
            "label": self.label(passage),
            "retrieval_rank": passage.retrieval_rank,
            "retrieval_score": passage.retrieval_score,
        }

    def _show(self, passage: RankedPassage) -> str:
        score = passage.score
        return "not judged" if score is None else f"score {self.result.show_score(score)}"

    def _is_golden_first(self, passages: Sequence[RankedPassage]) -> bool:
        return bool(passages) and self.label(passages[0]) == GOLDEN


def run_trials(
    reranker: EvidenceReranker,  # who judges
    questions: Sequence[DemoQuestion],  # of the corpus
    *,
    # if not, the golden passages of *questions* are left out of the corpus
    with_evidence: bool = True,
    hard: bool = False,  # whether they are those of the hard corpus
) -> Iterator[Trial]:
    """Yield one trial a question: at most 30 candidates that share words with it, reranked."""
    left_out = set() if with_evidence else {name for one in questions for name in one.golden}
    corpus = [abstract for abstract in read_corpus(hard=hard) if abstract.id not in left_out]
    with open_store("demo", path=":memory:", mode="sparse") as store:
        store.add(corpus)
        for question in questions:
            candidates = store.search(question.question, k=N_CANDIDATES)
            yield Trial(question=question, result=reranker.rerank(question.question, candidates))
