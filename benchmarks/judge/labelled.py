"""Passages labelled by which way they point, from the sets that are trained on, and of our own.

Labels may be partly known: where a study's answer is no, its passage contradicts or finds no
difference.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any, Final

from deepera_graph.errors import InputError
from deepera_graph.lab.training.lessons import groups
from deepera_graph.lab.training.lessons.groups import read_directions
from deepera_graph.lab.training.lessons.libraries import read_library_directions
from deepera_graph.lab.training.lessons.snippets import digest
from deepera_graph.schema import Direction, read_direction
from deepera_graph.text.jsonl import read_objects
from deepera_graph.text.plain import read_lists
from deepera_graph.text.questions import asks_yes_or_no

Labels = frozenset[Direction]
YES: Final[Labels] = frozenset({"supports"})
NOT_YES: Final[Labels] = frozenset(groups.NOT_YES)
TRIALS: Final = "trials"
_TRIAL_LABELS: Final = {"no": 0, "increase": 1, "decrease": -1}
_TRIAL_FORMS: Final = (("increase", 1), ("reduce", -1))
TOPICS: Final = ("topics.jsonl", "near_misses.jsonl")  # of questions with labelled evidence
LIBRARIES: Final = ("libraries.jsonl", "more_libraries.jsonl")
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
    """Read all sets of a folder; *more* holds ``directions.jsonl``, `TOPICS` and `LIBRARIES`."""
    rows = [*_read_scifact(data / "scifact"), *_label_pubmedqa(data / "pubmedqa_dev")]
    rows += _read_trials(data / "evidence_inference")
    if more is not None:
        rows += _read_sciences(data / "sciences" / "topics.jsonl", more)
    if not any(row.weight for row in rows):
        raise InputError(f"{str(data)!r} holds no labels of directions to train on")
    rows += [*_turn(rows), *_write_plain()]
    if more is not None:
        rows += label_libraries([more / name for name in LIBRARIES if (more / name).exists()])
    return rows


MADE: Final = ("turned", "plain")  # sets that are no measure


def _turn(rows: Iterable[LabelledDirection]) -> Iterator[LabelledDirection]:
    """Yield the opposite questions, to which what supported one is a contradiction."""
    for row in rows:
        asked = _OPPOSITE.sub(lambda verb: _OPPOSITES[verb[0]], row.question, count=1)
        if asked != row.question and row.weight and not row.set.startswith(TRIALS):
            labels: Labels = frozenset(_TURNED.get(one, one) for one in row.labels)
            yield replace(row, set="turned", question=asked, labels=labels, weight=row.weight / 2)


def _write_plain() -> Iterator[LabelledDirection]:
    """Yield plain findings in sentences of our own, so that nothing plain is misread."""
    known = read_lists(__file__, "plain_findings.toml")["plain"]
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
                    labels=YES if is_support else NOT_YES,
                    weight=0.6 * (part == "train"),
                )
                yield make(set=f"scifact {part}, quoted", quote=sentences[places[0]])
                yield make(set=f"scifact {part}")


def _label_pubmedqa(folder: Path) -> Iterator[LabelledDirection]:
    for one in read_directions(folder):
        yield LabelledDirection(
            set="pubmedqa" if one.set == "natural" else one.set,
            group=f"pubmedqa {one.question}",
            question=one.question,
            text=one.text,
            labels=frozenset(one.directions),
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


def label_libraries(libraries: Sequence[Path]) -> Iterator[LabelledDirection]:
    """Yield the whole abstracts of small libraries that answer yes or no.

    Each stands twice, with the sentence that proves as its quote where one is marked, and without.
    """
    for one in chain.from_iterable(map(read_library_directions, libraries)):
        if asks_yes_or_no(one.question):
            row = LabelledDirection(
                set="libraries",
                group=f"library {one.subject}",
                question=one.question,
                text=one.text,
                labels=frozenset({one.said}),
                weight=0.6,
            )
            yield row
            if one.proof:
                yield replace(row, set="libraries, quoted", quote=one.proof)
