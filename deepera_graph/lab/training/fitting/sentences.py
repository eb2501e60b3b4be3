"""Fits what chooses the sentence to quote, to texts in which people marked those that answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judges.trained.features import (
    PassageMatch,
    ResultsClassifier,
    match_passage,
    vectorize_passage,
)
from deepera_graph.judges.trained.model import Encodes
from deepera_graph.judges.trained.sentences import choose_sentence, compute_sentence_features
from deepera_graph.judges.trained.trees import Trees
from deepera_graph.lab.training.fitting.ranking import PARAMETERS, convert_trees
from deepera_graph.lab.training.lessons.topics import is_topics, read_proofs
from deepera_graph.lab.training.weights import import_package
from deepera_graph.schema import Window, passage_task
from deepera_graph.text.jsonl import read_objects
from deepera_graph.text.words import split_sentences

_UNKNOWN: Any = {"topic": "", "entity_type": "", "intent": "other", "expected_answer_type": "other"}
_AT_ONCE = 64  # texts that are encoded together
_ROUNDS, _LEAVES, _LEAF = 150, 7, 30  # of the trees that rank the sentences of a text
_MOST_OF_IT = 0.5  # a sentence of ours is marked if it covers so much of a marked one, or reverse


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text in sentences, of which people marked those that answer a question."""

    question: str
    sentences: tuple[str, ...]
    answering: frozenset[int]  # places, from 0


class MatchedText(NamedTuple):
    """A marked text as the judge sees it."""

    question: str
    sentences: list[str]  # as the judge cuts them
    match: PassageMatch
    labels: NDArray[np.int64]  # 1 for a sentence that answers


def read_marked(path: Path, *, claims: str = "train") -> list[MarkedText]:
    """Return the marked texts of a file of topics, or of SciFact and question titles in a folder.

    *claims* names the part of SciFact. Other paths have none.
    """
    if is_topics(path):
        if claims != "train":
            return []
        return [MarkedText(*one) for one in read_proofs(path)]
    found: list[MarkedText] = []
    scifact, titles = path / "scifact", path / "question_titles/dev_labels.jsonl"
    if (scifact / "corpus_sentences.jsonl").exists():
        found += _read_claims(scifact, claims)
    if claims == "train" and titles.exists():
        found += _read_titles(titles)
    return found


def _read_claims(folder: Path, part: str) -> Iterator[MarkedText]:
    documents = read_objects(folder / "corpus_sentences.jsonl")
    corpus = {str(row["doc_id"]): row["abstract"] for row in documents}
    for row in read_objects(folder / f"claims_{part}.jsonl"):
        for name, parts in row["evidence"].items():
            answering = frozenset(place for one in parts for place in one["sentences"])
            yield MarkedText(row["claim"], tuple(corpus[name]), answering)


def _read_titles(path: Path) -> Iterator[MarkedText]:
    for row in read_objects(path):
        answering = frozenset(place for place, label in enumerate(row["labels"]) if label == "R")
        yield MarkedText(row["title"], tuple(row["sentences"]), answering)


def match_marked(texts: Sequence[MarkedText], encoder: Encodes) -> list[MatchedText]:
    """Return the texts as the judge sees them; those that it reads as one sentence are left out."""
    found: list[MatchedText] = []
    for start in range(0, len(texts), _AT_ONCE):
        some = texts[start : start + _AT_ONCE]
        asked = encoder.encode([one.question for one in some])
        bodies = encoder.encode([" ".join(one.sentences) for one in some])
        for one, question, body in zip(some, asked, bodies, strict=True):
            text = " ".join(one.sentences)
            window: Window = {"text": text, "title": "", "section": ""}
            task = passage_task(one.question, _UNKNOWN, window)
            match = match_passage(question, task, vectorize_passage(text, body))
            own = split_sentences(text)
            labels = np.array([_is_marked(s.start, s.end, one) for s in own], np.int64)
            if len(own) > 1 and len(own) == len(match.cosines):
                found.append(MatchedText(one.question, [s.text for s in own], match, labels))
    return found


def _is_marked(start: int, end: int, text: MarkedText) -> bool:
    place = 0
    for number, sentence in enumerate(text.sentences):
        begin, stop = place, place + len(sentence)
        place = stop + 1
        shared = min(end, stop) - max(start, begin)
        if number in text.answering and shared > _MOST_OF_IT * min(end - start, stop - begin):
            return True
    return False


def fit_sentences(texts: Sequence[MatchedText], classifier: ResultsClassifier) -> Trees | None:
    """Fit what ranks the sentences of a text; None if nothing teaches it."""
    taught = [one for one in texts if 0 < one.labels.sum() < len(one.labels)]
    if not taught:
        return None
    rows = [_compute(one, classifier) for one in taught]
    return fit_small_ranking(rows, [one.labels for one in taught])


def fit_small_ranking(
    rows: Sequence[NDArray[np.float64]], labels: Sequence[NDArray[np.int64]]
) -> Trees:
    """Fit a few shallow trees that rank the rows of each group; for groups of a few rows."""
    lightgbm = import_package("lightgbm")
    data = lightgbm.Dataset(
        np.concatenate(rows), np.concatenate(labels), group=[len(one) for one in rows]
    )
    small = {"num_leaves": _LEAVES, "min_data_in_leaf": _LEAF}
    given = {**PARAMETERS, "objective": "lambdarank", **small}
    model = lightgbm.train(given, data, _ROUNDS)
    return convert_trees(model.dump_model(), _ROUNDS)


def measure_sentences(
    texts: Sequence[MatchedText], classifier: ResultsClassifier, trees: Trees
) -> float:
    """Return how often the sentence that is chosen is a marked one, in [0, 1]."""
    asked = [one for one in texts if one.labels.any()]
    hits = [
        one.labels[choose_sentence(one.question, one.sentences, one.match, classifier, trees)]
        for one in asked
    ]
    return float(np.mean(hits)) if hits else 0.0


def _compute(one: MatchedText, classifier: ResultsClassifier) -> NDArray[np.float64]:
    return compute_sentence_features(one.question, one.sentences, one.match, classifier)
