"""Fit how the local judge orders documents, and how likely a sentence is a snippet.

    deepera index corpus.jsonl --library scifact --embeddings local --max-words off
    python benchmarks/bioasq/phase_a.py train.json dev.json --library scifact --keep rows/

TRAIN and DEV are golden questions of BioASQ over the collection. Weights are fitted on TRAIN; both
are then measured with them. What is found for a question is kept in a folder, so that fitting again
takes seconds. The weights stand in `deepera_graph/bioasq/phase_a/ordering.py`.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from deepera_graph import EvidenceReranker
from deepera_graph.bioasq.phase_a import ordering
from deepera_graph.bioasq.phase_a.steps import Retrieve, document_id, receive
from deepera_graph.bioasq.questions import BioasqQuestion, read_pmid, read_questions
from deepera_graph.bioasq.settings import SearchSettings
from deepera_graph.cli.opening.stores import data_folder
from deepera_graph.judges.trained.reading.vectors import Alignment
from deepera_graph.retrieval.collections.passage_store import PassageStore
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.schema import IntentFields, Window
from deepera_graph.text.words import split_sentences
from langchain_deepera import EvidenceEmbeddings

JUDGED, READ, SHOWN = 30, 10, 10
NO_INTENT: IntentFields = {
    "topic": "",
    "entity_type": "",
    "intent": "other",
    "expected_answer_type": "other",
}
Row = dict[str, Any]


def gather(questions: Sequence[BioasqQuestion], store: PassageStore, folder: Path) -> list[Row]:
    """Return for each question its documents, with all that they are ordered by, and sentences."""
    reranker = EvidenceReranker("local", threshold=0.0, top_n=JUDGED, content="passage")
    judge = ordering.find_local_judge(reranker)
    assert judge is not None
    search, rows = Retrieve(store, SearchSettings()), []
    folder.mkdir(parents=True, exist_ok=True)
    for number, question in enumerate(questions):
        path = folder / f"{question.id}.json"
        if not path.exists():
            row = find(question, search, reranker, judge)
            path.write_text(json.dumps(row), encoding="utf-8")
        rows.append(json.loads(path.read_text(encoding="utf-8")))
        if number % SHOWN == 0:
            sys.stderr.write(f"{number} of {len(questions)}\n")
    return rows


def find(question: BioasqQuestion, search: Retrieve, reranker: EvidenceReranker, judge: Any) -> Row:
    """Return what is found for one question."""
    state: Any = {**receive({"question": question.body}), "question": question.body}  # type: ignore[typeddict-item]
    found = search.invoke(state)
    passages = found["passages"][:JUDGED]
    first = [score for _, score in found["retrieved"][:JUDGED]]
    windows: list[Window] = [
        {"text": one.page_content, "title": one.metadata.get("title", ""), "section": ""}
        for one in passages
    ]
    given = [
        {"id": str(place), "text": one["text"], "metadata": {"title": one["title"]}}
        for place, one in enumerate(windows)
    ]
    result = reranker.rerank(question.body, given)
    scores = {int(one.id): one.score for one in result.all_passages}
    aligned = judge.model.align(question.body, windows)
    values = [
        ordering.value_of(scores[place] or 0.0, first[place], aligned[place])
        for place in range(len(passages))
    ]
    best = sorted(range(len(passages)), key=lambda place: -values[place])[:READ]
    shown = [windows[place] for place in best]
    weights = judge.model.weigh_sentences(question.body, NO_INTENT, shown)
    golden = {read_pmid(one) for one in question.documents}
    return {
        "id": question.id,
        "n_golden": len(golden),
        "documents": [
            {
                "id": document_id(one),
                "is_golden": read_pmid(document_id(one)) in golden,
                "probability": scores[place],
                "first": first[place],
                "aligned": aligned[place],
            }
            for place, one in enumerate(passages)
        ],
        "sentences": [
            {
                "place": place,
                "spans": [[one.start, one.end] for one in split_sentences(windows[place]["text"])],
                "weights": found_weights,
            }
            for place, found_weights in zip(best, weights, strict=True)
        ],
        "golden": [[read_pmid(one.document), one.begin, one.end] for one in question.snippets],
    }


def features(row: Row) -> np.ndarray:
    """Return what documents are ordered by, beside the judge's score, shape (n, 4)."""
    return np.array([[one["first"], *one["aligned"]] for one in row["documents"]])


def fit_order(rows: Sequence[Row]) -> np.ndarray:
    """Fit weights by which golden documents come before others, each question counting alike."""
    pairs, weights = [], []
    for row in rows:
        golden = np.array([one["is_golden"] for one in row["documents"]], bool)
        found = features(row)
        differences = [found[place] - found[~golden] for place in np.flatnonzero(golden)]
        if differences and not golden.all():
            pairs += differences
            weights += [np.full(len(one), 1 / len(one)) for one in differences]
    x, w = np.vstack(pairs), np.concatenate(weights)
    scale = x.std(axis=0)
    model = LogisticRegression(fit_intercept=False, max_iter=3000)
    model.fit(np.vstack([x, -x]) / scale, [1] * len(x) + [0] * len(x), np.concatenate([w, w]))
    return model.coef_[0] / scale


def average_precision(row: Row, values: Sequence[float]) -> float:
    """Return BioASQ's average precision of ten documents."""
    order = sorted(range(len(values)), key=lambda place: -values[place])[:10]
    hits = [n for n, place in enumerate(order, 1) if row["documents"][place]["is_golden"]]
    return sum(n / rank for n, rank in enumerate(hits, 1)) / min(10, row["n_golden"])


def mean_precision(rows: Sequence[Row]) -> float:
    """Return the MAP with the weights of the package."""
    return float(
        np.mean(
            [
                average_precision(
                    row,
                    [
                        ordering.value_of(
                            one["probability"] or 0.0, one["first"], Alignment(*one["aligned"])
                        )
                        for one in row["documents"]
                    ],
                )
                for row in rows
            ]
        )
    )


def list_sentences(row: Row) -> list[tuple[float, float, bool]]:
    """Return of each sentence its weight, what its document lacks in closeness, and the label."""
    found, documents = [], row["documents"]
    close = [ordering.closeness_of(Alignment(*one["aligned"])) for one in documents]
    best = max((close[one["place"]] for one in row["sentences"]), default=0.0)
    for one in row["sentences"]:
        name = read_pmid(documents[one["place"]]["id"])
        golden = [(begin, end) for document, begin, end in row["golden"] if document == name]
        for (begin, end), weight in zip(one["spans"], one["weights"], strict=True):
            overlap = max((min(end, e) - max(begin, b) for b, e in golden), default=0)
            found.append((weight, best - close[one["place"]], 2 * overlap > end - begin))
    return found


def fit_sentences(rows: Sequence[Row]) -> tuple[float, float, float]:
    """Fit how likely a sentence is golden; return weight, what is behind beside it, and start."""
    found = [one for row in rows for one in list_sentences(row)]
    x = np.array([[weight, lack / 100] for weight, lack, _ in found])
    model = LogisticRegression(max_iter=3000, C=100).fit(x, [golden for _, _, golden in found])
    weight, lack = model.coef_[0]
    return float(weight), float(-lack / weight / 100), float(model.intercept_[0])


def main() -> None:
    """Fit and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("train", type=Path)
    parser.add_argument("dev", type=Path)
    parser.add_argument("--library", required=True)
    parser.add_argument("--path", type=Path, default=data_folder())
    parser.add_argument("--keep", type=Path, required=True)
    given = parser.parse_args()
    store = open_store(
        given.library, path=given.path, embeddings=EvidenceEmbeddings(), must_exist=True
    )
    with store:
        parts = {
            name: gather(read_questions(path), store, given.keep)
            for name, path in (("dev", given.dev), ("train", given.train))
        }
    train = parts["train"]
    order = fit_order(train)
    print("first, passage, sentences, title:", np.round(100 * order / order[1], 1))  # noqa: T201
    print("sentences: weight, behind, start:", np.round(fit_sentences(train), 3))  # noqa: T201
    used = ordering.WEIGHTS, ordering.WEIGHT, ordering.BEHIND, ordering.START
    print("in use:", *used)  # noqa: T201
    for name, rows in parts.items():
        print(name, "MAP of the best", JUDGED, round(mean_precision(rows), 4))  # noqa: T201


if __name__ == "__main__":
    main()
