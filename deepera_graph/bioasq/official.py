"""The measures of BioASQ's own evaluator of task B, quirks and all, from files as they stand.

Ids are compared as they are written, lists are not cut, a question that is not answered is left
out of phase A. What makes the evaluator end with an exception is an `InputError` that names the
question and the field. Concepts and triples, which BioASQ no longer asks for, and ideal answers,
which the evaluator leaves to ROUGE, are not measured.

Source: BioASQ/Evaluation-Measures at 8c8e689, classes `evaluation.EvaluatorTask1b` and
`data.Task1bData`; Gson 2.2.4 parses.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import copysign, inf, isnan, log, nan
from pathlib import Path
from typing import Any

import numpy as np

from deepera_graph.bioasq.check import ENDS, OFFSETS, find_crashes, read_word
from deepera_graph.bioasq.measures import (
    EPSILON,
    PHASES,
    Evaluation,
    Floats,
    Measure,
    Phase,
    distinct,
    mean_measure,
)
from deepera_graph.bioasq.questions import read_raw
from deepera_graph.bioasq.settings import MAX_DOCUMENTS
from deepera_graph.errors import InputError
from deepera_graph.settings.ranges import check_choice

EDITIONS = (5, 8, 9)
_COUNTED = ("yesno", "factoid", "list")  # types with a measure in phase B
_DENOMINATOR = 10  # of average precision, in editions 3 to 7


def evaluate_officially(
    golden: Path | str, submission: Path | str, phase: Phase, *, edition: int = 8
) -> Evaluation:
    """Return what the official evaluator says of a submission.

    Args:
        golden: File of golden questions.
        submission: File of answered ones.
        phase: ``a`` for documents and snippets, ``b`` for exact answers.
        edition: 5 (also of BioASQ 6 and 7), 8, or 9, which differs only in leaving out questions
            without golden documents, snippets or answers.

    Raises:
        InputError: The official evaluator ends with an exception, or a file is of another form;
            the message names the question and the field.
        SettingsError: There is no such edition or phase.
        OSError: A file cannot be read.
    """
    check_choice("phase", phase, PHASES)
    check_choice("edition", edition, EDITIONS)
    golden, submission = Path(golden), Path(submission)
    asked = _read(golden)
    answers = {one.id: one for one in reversed(_read(submission))}  # the first of an id counts
    missing = tuple(one.id for one in asked if one.id not in answers)
    twice = [name for name, n in Counter(one.id for one in asked).items() if n > 1]
    if twice:
        raise InputError(f"{golden}: the id {twice[0]!r} stands there twice")
    measure = _measure_a if phase == "a" else _measure_b
    measures = measure(asked, answers, edition, submission)
    return Evaluation(f"official, edition {edition}", measures, missing)


@dataclass(slots=True)
class _Piece:  # a snippet
    document: str
    first: str
    begin: int
    last: str
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin + 1

    @property
    def short_id(self) -> str:
        """The last part of the document's URL."""
        return self.document.rstrip("/").rpartition("/")[2]

    def overlap(self, golden: "_Piece") -> int:
        """How many characters are shared: 0 unless the sections agree, in one direction."""
        same = (self.first, self.last) == (golden.first, golden.last)
        if not same and not (self.first == "0" and golden.first == "abstract"):
            return 0
        if self.begin > golden.end or self.end < golden.begin:
            return 0
        return min(self.end, golden.end) - max(self.begin, golden.begin) + 1


@dataclass(slots=True)
class _Entry:
    """A question of a file, as the evaluator holds it."""

    id: str
    type: str = ""
    documents: list[str] = field(default_factory=list)
    pieces: list[_Piece] = field(default_factory=list)
    has_exact: bool = False
    word: str | None = None  # yes, no or none
    lists: list[list[str]] = field(default_factory=list)


def _read(path: Path) -> list[_Entry]:
    return [_to_entry(path, number, one) for number, one in enumerate(read_raw(path), start=1)]


def _to_entry(path: Path, number: int, fields: Any) -> _Entry:
    name = fields.get("id") if isinstance(fields, Mapping) else None
    where = f"{path}: question {number}" + (f" ({name!r})" if isinstance(name, str) else "")
    for crash in find_crashes(fields):
        raise InputError(f"{where}: {crash.field}: {crash.message}")
    if name is None:
        raise InputError(f"{where}: id is missing, {ENDS}")
    entry = _Entry(id=_to_text(name), type=_to_text(fields.get("type", "")))
    entry.documents = distinct(map(_to_text, fields.get("documents", ())))
    entry.pieces = [_to_piece(one) for one in fields.get("snippets", ())]
    if "exact_answer" in fields:
        _set_exact(entry, fields["exact_answer"])
    return entry


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _to_piece(fields: Mapping[str, Any]) -> _Piece:
    first, last = (
        _to_text(fields.get(name, "")).partition(".") for name in ("beginSection", "endSection")
    )
    begin, end = (int(float(fields.get(name, 0))) for name in OFFSETS)
    return _Piece(
        document=_to_text(fields.get("document", "")),
        first=first[2] if first[1] else first[0],
        begin=begin,
        last=last[2] if last[1] else last[0],
        end=end,
    )


def _set_exact(entry: _Entry, exact: Any) -> None:
    entry.has_exact = True
    if isinstance(exact, str):
        entry.word = read_word(exact)
    else:
        lists = [[_to_text(name).lower() for name in names] for names in exact]
        entry.lists = [names for names in lists if names]


def _measure_a(
    asked: Sequence[_Entry], answers: Mapping[str, _Entry], edition: int, path: Path
) -> dict[str, Measure]:
    pairs = [(one, answers[one.id]) for one in asked if one.id in answers]
    for golden, given in pairs:
        try:
            _merge(golden.pieces)
            _merge(given.pieces)
        except IndexError as error:
            message = f"{path}: question {given.id!r}: snippets: of those that overlap, some end"
            raise InputError(f"{message} before they begin, {ENDS}") from error
    every = edition < 9
    documents = {
        golden.id: _document_row(golden, given, edition)
        for golden, given in pairs
        if every or golden.documents
    }
    snippets = {
        golden.id: _snippet_row(golden, given, edition)
        for golden, given in pairs
        if every or golden.pieces
    }
    return _phase_a_means("documents", documents) | _phase_a_means("snippets", snippets)


_Row = tuple[float, float, float, float]  # precision, recall, F1, average precision


def _document_row(golden: _Entry, given: _Entry, edition: int) -> _Row:
    hits = [one in golden.documents for one in given.documents]
    n_hits = sum(hits)
    if not n_hits:
        return 0.0, 0.0, 0.0, 0.0
    precision, recall = n_hits / len(hits), n_hits / len(golden.documents)
    total = sum(sum(hits[:rank]) / rank for rank, hit in enumerate(hits, start=1) if hit)
    average = _divide(total, _denominator(golden.documents, edition))
    return precision, recall, _harmonic(precision, recall), average


def _denominator(golden: Sequence[Any], edition: int) -> float:
    return _DENOMINATOR if edition < 8 else min(MAX_DOCUMENTS, len(golden))


def _snippet_row(golden: _Entry, given: _Entry, edition: int) -> _Row:
    if not given.pieces:
        return 0.0, 0.0, 0.0, _divide(0, _denominator(golden.pieces, edition))
    overlap = sum(
        one.overlap(other)
        for one in given.pieces
        for other in golden.pieces
        if one.short_id == other.short_id
    )
    n_given, n_golden = (sum(one.size for one in side.pieces) for side in (given, golden))
    precision = overlap / n_given if n_given else 0.0
    recall = overlap / n_golden if n_golden else 0.0
    f1 = _harmonic(precision, recall) if precision or recall else 0.0
    return precision, recall, f1, _snippet_precision(golden, given, edition)


def _snippet_precision(golden: _Entry, given: _Entry, edition: int) -> float:
    """Return the average precision, for which any snippet of a golden document is relevant."""
    total, n_given, overlap = 0.0, 0, 0
    for one in given.pieces:
        same = [other for other in golden.pieces if one.document == other.document]
        n_given += one.size
        overlap += sum(map(one.overlap, same))
        total += _divide(overlap, n_given) * bool(same)
    return _divide(total, _denominator(golden.pieces, edition))


def _merge(pieces: list[_Piece]) -> None:
    """Merge snippets of one document and section that overlap, each into the first of them."""
    # Those that end before they begin can be merged into one further down, and make the list too
    # short for its place: an IndexError, here as in the evaluator.
    place = 0
    while place < len(pieces):
        other = 0
        while other < len(pieces):
            if other != place and _touch(pieces[place], pieces[other]):
                first, second = pieces[place], pieces[other]
                begin, end = min(first.begin, second.begin), max(first.end, second.end)
                pieces[place] = _Piece(first.document, first.first, begin, first.last, end)
                del pieces[other]
                other = 0
            other += 1
        place += 1


def _touch(first: _Piece, second: _Piece) -> bool:
    same = (first.document, first.first, first.last) == (second.document, second.first, second.last)
    return same and first.begin <= second.end and first.end >= second.begin


def _measure_b(
    asked: Sequence[_Entry], answers: Mapping[str, _Entry], edition: int, path: Path
) -> dict[str, Measure]:
    found: dict[str, dict[str, Any]] = {kind: {} for kind in _COUNTED}
    for golden in asked:
        given = answers.get(golden.id)
        unanswerable = golden.word is None and not golden.lists
        if golden.type not in _COUNTED or (edition >= 9 and (unanswerable or given is None)):
            continue
        where = f"question {golden.id!r}"
        if given is None:
            raise InputError(f"{path}: {where} is not answered, {ENDS} in phase B")
        found[golden.type][golden.id] = _ROWS[golden.type](golden, given, f"{path}: {where}")
    return {
        **_yes_no(found["yesno"]),
        **_columns("factoid", found["factoid"], ("strict", "lenient", "mrr")),
        **_columns("list", found["list"], ("precision", "recall", "f1")),
    }


def _yes_no_row(golden: _Entry, given: _Entry, where: str) -> tuple[bool, bool]:
    """Return whether the golden answer is yes, and whether the given one is right."""
    if golden.word is None:
        raise InputError(f"{where}: the golden exact_answer is neither yes nor no, {ENDS}")
    if given.has_exact and given.word is None:
        raise InputError(f"{where}: exact_answer: a list cannot answer yes or no, {ENDS}")
    return golden.word == "yes", given.has_exact and golden.word == given.word


def _factoid_row(golden: _Entry, given: _Entry, where: str) -> tuple[float, float, float]:
    found = [names[0] for names in given.lists]
    _need_golden(golden, found, where)
    right = {name for names in golden.lists for name in names}
    rank = next((rank for rank, name in enumerate(found, start=1) if name in right), 0)
    return float(rank == 1), float(rank > 0), 1 / rank if rank else 0.0


def _list_row(golden: _Entry, given: _Entry, where: str) -> tuple[float, float, float]:
    found = [names[0] for names in given.lists]
    _need_golden(golden, found, where)
    if not found:
        return 0.0, 0.0, 0.0
    left = [*golden.lists]
    n_hits = sum(_take(left, [name]) for name in found)
    rest = [[name] for name in found]
    n_missed = sum(not _take(rest, names) for names in left)
    precision = n_hits / len(found)
    recall = _divide(n_hits, n_hits + n_missed) if n_hits + n_missed else 0.0
    return precision, recall, _harmonic(precision, recall) if precision and recall else 0.0


_ROWS: Mapping[str, Any] = {"yesno": _yes_no_row, "factoid": _factoid_row, "list": _list_row}


def _need_golden(golden: _Entry, found: Sequence[str], where: str) -> None:
    if found and not golden.has_exact:
        raise InputError(f"{where}: the golden set has no exact_answer, {ENDS}")


def _take(entities: list[list[str]], names: Sequence[str]) -> bool:
    """Take away the first entity that has one of the names, if there is one."""
    for place, entity in enumerate(entities):
        if not set(entity).isdisjoint(names):
            del entities[place]
            return True
    return False


def _yes_no(rows: Mapping[str, tuple[bool, bool]]) -> dict[str, Measure]:
    """Return accuracy and F1; a wrong answer counts against both classes."""
    numbers = np.array(
        [[right, is_yes and right, not is_yes and right, not right, 1] for is_yes, right in
         rows.values()], dtype=np.float64,
    ).reshape(-1, 5)  # fmt: skip

    def side(sums: Floats, place: int) -> Floats:
        return _or_0(2 * sums[..., place], 2 * sums[..., place] + sums[..., 3])

    combine = {
        "yesno_accuracy": lambda sums: _or_0(sums[..., 0], sums[..., 4]),
        "yesno_macro_f1": lambda sums: (side(sums, 1) + side(sums, 2)) / 2,
        "yesno_f1_yes": lambda sums: side(sums, 1),
        "yesno_f1_no": lambda sums: side(sums, 2),
    }
    return {name: Measure(tuple(rows), numbers, how) for name, how in combine.items()}


def _or_0(above: Floats, below: Floats) -> Floats:
    """Divide, where 0 divided by 0 is 0."""
    return np.asarray(above / np.where(below == 0, 1, below))


def _columns(
    what: str, rows: Mapping[str, Sequence[float]], names: Sequence[str]
) -> dict[str, Measure]:
    """Return the means of columns, 0 of no question."""
    numbers = np.array([*rows.values()], dtype=np.float64).reshape(-1, len(names))
    return {
        f"{what}_{name}": mean_measure(rows, column, lambda sums: _or_0(sums[..., 0], sums[..., 1]))
        for name, column in zip(names, numbers.T, strict=True)
    }


def _phase_a_means(what: str, rows: Mapping[str, _Row]) -> dict[str, Measure]:
    """Return the means; of an average precision that is no number the evaluator makes 0."""
    numbers = np.array([*rows.values()], dtype=np.float64).reshape(-1, 4)
    made = {
        f"{what}_{name}": mean_measure(rows, np.nan_to_num(column, posinf=inf, neginf=-inf))
        for name, column in zip(("precision", "recall", "f1", "map"), numbers.T, strict=True)
    }
    if what == "documents" and not rows:  # these two are 0 of no question, the others no number
        made |= _columns(what, {}, ("precision", "recall"))
    combine = _geometric_of_snippets if what == "snippets" else _geometric
    return made | {f"{what}_gmap": mean_measure(rows, [*map(_log, numbers[:, 3])], combine)}


def _log(average_precision: float) -> float:
    """Return the logarithm that GMAP adds up, 0 for what is no number."""
    moved = average_precision + EPSILON
    if isnan(moved):
        return 0.0
    return log(moved) if moved > 0 else (-inf if moved == 0 else nan)


def _geometric(sums: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.exp(sums[..., 0] / sums[..., 1]))


def _geometric_of_snippets(sums: Floats) -> Floats:
    """Return GMAP; a sum of 0, as of no question, and one that is no number make it 0."""
    usable = np.isfinite(sums[..., 0]) & (sums[..., 0] != 0)
    return np.where(usable | np.isinf(sums[..., 0]), _geometric(sums), 0.0)


def _harmonic(precision: float, recall: float) -> float:
    return _divide(2 * precision * recall, precision + recall)


def _divide(above: float, below: float) -> float:
    """Divide as Java does: by 0, too."""
    if below:
        return above / below
    return nan if above == 0 or isnan(above) else copysign(inf, above)
