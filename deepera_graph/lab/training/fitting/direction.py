"""Fits the weights that say which way evidence points, and measures them by cross-validation.

Labels may be partly known: where a study's answer is no, its passage contradicts or finds no
difference, and the fit counts the probability of both together.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from deepera_graph.errors import InputError
from deepera_graph.judges.trained.direction.model import DIRECTIONS, DirectionModel, describe
from deepera_graph.lab.training.lessons.snippets import digest
from deepera_graph.lab.training.weights import import_package
from deepera_graph.schema import Direction, read_direction
from deepera_graph.text.jsonl import read_objects
from deepera_graph.text.plain import read_lists
from deepera_graph.text.questions import asks_yes_or_no

N_FOLDS: Final = 5
RIGHT: Final = 0.8  # share of what is not called unclear, in the mean of the sets
L2: Final = 6.0
FEWEST = 25  # passages that must have a feature
DIGITS = 2
Labels = frozenset[Direction]
_YES: Final[Labels] = frozenset({"supports"})
_NOT_YES: Final[Labels] = frozenset({"contradicts", "no_difference"})
_TRIALS: Final = "trials"
_TRIAL_LABELS: Final = {"no": 0, "increase": 1, "decrease": -1}
_TRIAL_FORMS: Final = (("increase", 1), ("reduce", -1))
TOPICS: Final = ("topics.jsonl", "near_misses.jsonl")  # of questions with labelled evidence
_PAIRS: Final = (
    ("increase", "decrease"), ("increases", "decreases"), ("increased", "decreased"),
    ("higher", "lower"), ("improve", "worsen"), ("improves", "worsens"), ("raise", "reduce"),
    ("raises", "reduces"), ("promotes", "inhibits"), ("more", "less"),
)  # fmt: skip
_OPPOSITES: Final = dict(_PAIRS) | {other: one for one, other in _PAIRS}
_OPPOSITE: Final = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b")
_TURNED: Final[Mapping[Direction, Direction]] = {
    "supports": "contradicts",
    "contradicts": "supports",
}
_OF_OTHERS: Final[Mapping[tuple[str, str], Labels]] = {
    ("yes", "agree"): _YES,
    ("yes", "contrary"): frozenset({"contradicts"}),
    ("yes", "null"): frozenset({"no_difference"}),
    ("yes", "mixed"): frozenset({"mixed"}),
    ("no", "agree"): _NOT_YES,
    ("no", "contrary"): _YES,
    ("no", "null"): frozenset({"no_difference"}),
    ("no", "mixed"): frozenset({"mixed"}),
    ("maybe", "mixed"): frozenset({"mixed"}),
    ("maybe", "null"): frozenset({"no_difference"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledDirection:
    """A passage, the question, and the directions of which one is right."""

    set: str
    group: str  # folds never part those that share it
    question: str
    text: str
    labels: Labels  # not empty
    quote: str = ""
    weight: float = 1.0  # 0 is for measuring alone


def _read(path: Path) -> Iterable[dict[str, Any]]:
    """Return the rows of a file, none if it is not there: each set is read if it is."""
    return read_objects(path) if path.exists() else ()


def read_labelled(data: Path, *, more: Path | None = None) -> list[LabelledDirection]:
    """Read all sets of a folder; *more* holds ``directions.jsonl`` and `TOPICS`."""
    rows = [*_read_scifact(data / "scifact"), *_read_pubmedqa(data / "pubmedqa_dev")]
    rows += _read_trials(data / "evidence_inference")
    if more is not None:
        rows += _read_sciences(data / "sciences" / "topics.jsonl", more)
    if not any(row.weight for row in rows):
        raise InputError(f"{str(data)!r} holds no labels of directions to train on")
    return [*rows, *_turn(rows), *_write_plain()]


_MADE: Final = ("turned", "plain")  # sets that are no measure


def _turn(rows: Iterable[LabelledDirection]) -> Iterator[LabelledDirection]:
    """Yield the opposite questions, to which what supported one is a contradiction."""
    for row in rows:
        asked = _OPPOSITE.sub(lambda verb: _OPPOSITES[verb[0]], row.question, count=1)
        if asked != row.question and row.weight and not row.set.startswith(_TRIALS):
            labels: Labels = frozenset(_TURNED.get(one, one) for one in row.labels)
            yield replace(row, set="turned", question=asked, labels=labels, weight=row.weight / 2)


def _write_plain() -> Iterator[LabelledDirection]:
    """Yield plain findings in sentences of our own, so that nothing plain is misread."""
    known = read_lists(__file__, "plain.toml")["plain"]
    rows = [(thing, kind) for kind in known for thing in kind["things"]]
    for place, ((what, outcome, *loss), kind) in enumerate(rows):
        for (verb, way), (sentence, found) in product(kind["verbs"].items(), kind["findings"]):
            told = sentence.format(
                what=what, outcome=outcome, **dict(zip(_LOSS, loss, strict=False))
            )
            label = _compare_ways(found, way)
            denied: Direction = "contradicts" if label == "supports" else "supports"
            for question, answer in (
                (f"Does {what} {verb} {outcome}?", label),
                (f"{what} {verb}s {outcome}.", label),
                (f"{what} does not {verb} {outcome}.", denied),
            ):
                yield LabelledDirection(
                    set="plain",
                    group=f"plain {place}",
                    question=question,
                    text=told,
                    labels=frozenset({answer}),
                    weight=0.15,
                )


_LOSS: Final = ("lost", "of")  # the verb of a loss, and what is lost


def _compare_ways(found: int, asked: int) -> Direction:
    if not found:
        return "no_difference"
    return "supports" if found == asked else "contradicts"


def _read_scifact(folder: Path) -> Iterator[LabelledDirection]:
    corpus = {row["doc_id"]: row["abstract"] for row in _read(folder / "corpus_sentences.jsonl")}
    for part in ("train", "dev"):
        for row in _read(folder / f"claims_{part}.jsonl"):
            for document, rationales in row["evidence"].items():
                sentences = corpus[int(document)]
                is_support = rationales[0]["label"] == "SUPPORT"
                places = sorted({place for one in rationales for place in one["sentences"]})
                make = partial(
                    LabelledDirection,
                    group=f"scifact {document}",
                    question=row["claim"],
                    text=" ".join(sentences),
                    labels=_YES if is_support else _NOT_YES,
                    weight=0.6 * (part == "train"),
                )
                yield make(set=f"scifact {part}, quoted", quote=sentences[places[0]])
                yield make(set=f"scifact {part}")


def _read_pubmedqa(folder: Path) -> Iterator[LabelledDirection]:
    own: Mapping[str, Labels] = {"yes": _YES, "no": _NOT_YES}
    for row in _read(folder / "natural.jsonl"):
        for one in row["contexts"]:
            if one["is_golden"] and row["decision"] in own:
                yield LabelledDirection(
                    set="pubmedqa",
                    group=f"pubmedqa {row['question']}",
                    question=row["question"],
                    text=one["text"],
                    labels=own[row["decision"]],
                )
    for row in _read(folder / "multi.jsonl"):
        for one in row["contexts"]:
            labels = _OF_OTHERS.get((row["decision"], one.get("direction", "")))
            if one["is_golden"] and labels:
                yield LabelledDirection(
                    set="multi",
                    group=f"pubmedqa {row['question']}",
                    question=row["question"],
                    text=one["text"],
                    labels=labels,
                )


def _read_trials(folder: Path) -> Iterator[LabelledDirection]:
    texts = {row["id"]: row["text"] for row in _read(folder / "passages.jsonl")}
    for row in _read(folder / "questions.jsonl"):
        found = next(value for word, value in _TRIAL_LABELS.items() if word in row["label"])
        of, than, what = (row[key].strip() for key in ("intervention", "comparator", "outcome"))
        for verb, way in _TRIAL_FORMS:
            label = _compare_ways(found, way)
            for passage in row["golden"]:
                yield LabelledDirection(
                    set=f"trials, {verb}",
                    group=f"trials {row['article']}",
                    question=f"Does {of} compared with {than} {verb} {what}?",
                    text=texts[passage],
                    labels=frozenset({label}),
                    weight=0.5,
                )


def _read_sciences(path: Path, folder: Path) -> Iterator[LabelledDirection]:
    known = {row["text"]: row["direction"] for row in _read(folder / "directions.jsonl")}
    for place in (path, *(folder / name for name in TOPICS)):
        for topic in _read(place):
            for question in topic["questions"]:
                for one in question["evidence"]:
                    label = read_direction(one.get("answer") or known.get(digest(one["text"])))
                    if label is not None and asks_yes_or_no(question["question"]):
                        yield LabelledDirection(
                            set="sciences",
                            group=f"sciences {topic['topic']}",
                            question=question["question"],
                            text=one["text"],
                            labels=frozenset({label}),
                        )


@dataclass(frozen=True, slots=True)
class _Table:
    """Features of passages as a sparse matrix, and which directions may be right, 0 or 1."""

    values: Any  # scipy.sparse, (passages, features)
    allowed: NDArray[np.float64]  # (passages, directions)
    weights: NDArray[np.float64]  # (passages,)


def _tabulate(
    rows: Sequence[LabelledDirection],
    described: Sequence[Mapping[str, float]],
    places: Mapping[str, int],
) -> _Table:
    sparse = import_package("scipy.sparse")
    cells = [
        (row, places[name], value)
        for row, found in enumerate(described)
        for name, value in found.items()
        if name in places
    ]
    lines, columns, values = zip(*cells, strict=True)
    matrix = sparse.csr_matrix((values, (lines, columns)), shape=(len(rows), len(places)))
    allowed = np.array([[float(one in row.labels) for one in DIRECTIONS] for row in rows])
    return _Table(matrix, allowed, np.array([row.weight for row in rows]))


def fit_model(
    rows: Sequence[LabelledDirection],
    described: Sequence[Mapping[str, float]],
    *,
    l2: float = L2,
    threshold: float = 0.0,
) -> DirectionModel:
    """Fit a multinomial logistic regression in which the right one of several labels is hidden."""
    used = [place for place, row in enumerate(rows) if row.weight]
    rows, described = [rows[place] for place in used], [described[place] for place in used]
    seen = Counter(name for one in described for name in one)
    places = {name: n for n, name in enumerate(sorted(k for k in seen if seen[k] >= FEWEST))}
    table = _tabulate(rows, described, places)
    n_features, n_ways = len(places), len(DIRECTIONS)

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = flat.reshape(n_features + 1, n_ways)
        sums = table.values @ weights[1:] + weights[0]
        sums -= sums.max(axis=1, keepdims=True)
        likely = np.exp(sums)
        likely /= likely.sum(axis=1, keepdims=True)
        right = (likely * table.allowed).sum(axis=1)
        wrong = likely - likely * table.allowed / right[:, None]
        wrong *= table.weights[:, None]
        slope = np.vstack([wrong.sum(axis=0), table.values.T @ wrong + l2 * weights[1:]])
        cost = -(table.weights * np.log(right)).sum() + l2 / 2 * (weights[1:] ** 2).sum()
        return float(cost), slope.ravel()

    start = np.zeros((n_features + 1) * n_ways)
    found = import_package("scipy.optimize").minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 300}
    )
    weights = found.x.reshape(n_features + 1, n_ways).round(DIGITS)
    kept = {name: tuple(weights[place + 1].tolist()) for name, place in places.items()}
    return DirectionModel(
        tuple(weights[0].tolist()), {name: one for name, one in kept.items() if any(one)}, threshold
    )


def cross_validate(
    rows: Sequence[LabelledDirection], described: Sequence[Mapping[str, float]]
) -> NDArray[np.float64]:
    """Return (passages, directions) probabilities, each from a fit that saw none of its group."""
    folds = np.array([int(digest(row.group)[:8], 16) % N_FOLDS for row in rows])
    likely = np.zeros((len(rows), len(DIRECTIONS)))
    for fold in range(N_FOLDS):
        others, own = np.flatnonzero(folds != fold).tolist(), np.flatnonzero(folds == fold).tolist()
        model = fit_model([rows[n] for n in others], [described[n] for n in others])
        for place in own:
            likely[place] = list(model.weigh(described[place]).values())
    return likely


def measure(
    rows: Sequence[LabelledDirection], likely: NDArray[np.float64], threshold: float
) -> dict[str, dict[str, Any]]:
    """Return by set what is right, in percent; where labels are partly known, of yes and not."""
    sets: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        sets[row.set].append(place)
        if row.set.startswith(_TRIALS):
            sets[_TRIALS].append(place)
    return {name: _measure_set(rows, likely, places, threshold) for name, places in sets.items()}


def _measure_set(
    rows: Sequence[LabelledDirection],
    likely: NDArray[np.float64],
    places: Sequence[int],
    threshold: float,
) -> dict[str, Any]:
    sort_of = _name_half if any(rows[n].labels == _NOT_YES for n in places) else _name_one
    pairs = [sort_of(rows[n].labels, likely[n]) for n in places]
    sure = [pair for n, pair in zip(places, pairs, strict=True) if likely[n].max() >= threshold]
    return {
        "passages": len(pairs),
        "right": _share(pairs),
        "macro_f1": _macro_f1(pairs),
        "unclear": round(100 * (1 - len(sure) / len(pairs)), 1),
        "right_of_clear": _share(sure),
    }


def _name_half(labels: Labels, likely: NDArray[np.float64]) -> tuple[str, str]:
    says_yes = likely[DIRECTIONS.index("supports")] >= 0.5
    return "yes" if labels == _YES else "not", "yes" if says_yes else "not"


def _name_one(labels: Labels, likely: NDArray[np.float64]) -> tuple[str, str]:
    return next(iter(labels)), DIRECTIONS[int(likely.argmax())]


def _share(pairs: Sequence[tuple[str, str]]) -> float:
    return round(100 * sum(one == other for one, other in pairs) / (len(pairs) or 1), 1)


def _macro_f1(pairs: Sequence[tuple[str, str]]) -> float:
    names = sorted({one for one, _ in pairs})
    right = Counter(one for one, other in pairs if one == other)
    both = Counter(one for pair in pairs for one in pair)
    return round(100 * sum(2 * right[one] / both[one] for one in names) / len(names), 1)


def choose_threshold(rows: Sequence[LabelledDirection], likely: NDArray[np.float64]) -> float:
    """Return the least threshold above which `RIGHT` of all is right, in the mean of the sets."""
    for threshold in np.arange(0.3, 0.9, 0.01).round(2).tolist():
        found = measure(rows, likely, threshold).items()
        right = [one["right_of_clear"] for name, one in found if name not in _MADE]
        if np.mean(right) >= 100 * RIGHT:
            return float(threshold)
    return 0.9


def train(data: Path, out: Path, *, more: Path | None = None) -> dict[str, dict[str, Any]]:
    """Fit on all sets and write the weights with their record; return what was measured."""
    rows = read_labelled(data, more=more)
    described = [describe(row.question, row.text, row.quote) for row in rows]
    likely = cross_validate(rows, described)
    threshold = choose_threshold(rows, likely)
    real = [place for place, row in enumerate(rows) if row.set not in _MADE]
    measured = measure([row for row in rows if row.set not in _MADE], likely[real], threshold)
    model = fit_model(rows, described, threshold=threshold)
    record = {
        "model": "multinomial logistic regression, partly known labels marginalised",
        "penalty": L2,
        "passages": dict(Counter(row.set for row in rows if row.weight)),
        "folds": f"{N_FOLDS}, by question, article or topic",
        "cross_validated": measured,
        "directions": DIRECTIONS,
        "threshold": threshold,
        "bias": model.bias,
        "weights": model.weights,
    }
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    out.write_text(text.replace('],"', '],\n"') + "\n", encoding="utf-8", newline="\n")
    return measured
