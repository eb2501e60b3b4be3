"""Fit what answers BioASQ questions without a model, and show what it reaches.

    python benchmarks/bioasq/extractive.py GOLDEN [--out FILE]

GOLDEN is a folder with the golden sets of at least two editions, as BioASQ names them
(``10B3_golden.json``, also compressed as ``.json.gz``). All figures are cross-validated: an edition
is answered by weights fitted on the others, less the questions that share a snippet with it; the
weights that are written are fitted on all.
"""

import argparse
import gzip
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepera_graph.bioasq.measures import evaluate_answers, evaluate_ideal, rouge
from deepera_graph.bioasq.phase_b import WEIGHTS
from deepera_graph.bioasq.phase_b.extract import (
    YES,
    Told,
    YesNoModel,
    describe_sentences,
    describe_support,
    join_sentences,
    order_told,
)
from deepera_graph.bioasq.phase_b.terms import (
    Candidates,
    choose_names,
    find_candidates,
    list_features,
    order_terms,
)
from deepera_graph.bioasq.questions import BioasqQuestion, parse_question
from deepera_graph.bioasq.settings import MAX_IDEAL_WORDS
from deepera_graph.errors import InputError
from deepera_graph.judges.trained.direction.model import DirectionModel
from deepera_graph.judges.trained.trees import Trees
from deepera_graph.lab.training.fitting.ranking import convert_trees
from deepera_graph.lab.training.weights import import_package

L2 = 4.0  # on features whose largest value is 1
SENTENCE_L2 = 30.0  # on features of unit variance
FEWEST: Final = 6  # questions that must have a feature
NEGATIVES: Final = 60  # candidates of a question that do not answer it, drawn
ROUNDS: Final = 100
_TREES: Final = {
    **{"objective": "binary", "learning_rate": 0.1, "num_leaves": 15, "min_data_in_leaf": 20},
    **{"feature_fraction": 0.5, "bagging_fraction": 0.6, "bagging_freq": 1, "lambda_l2": 5.0},
    **{"seed": 1, "num_threads": 1, "deterministic": True, "verbose": -1},
}
DIGITS: Final = 3
_EDITION: Final = re.compile(r"\d+")
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class AnswerLesson:
    """A golden question, and what is known of it.

    Attributes:
        edition: The year of the challenge that it is from.
        question: The question with its answers.
        texts: Its snippets, each once.
        features: Those of a yes/no question.
        candidates: Those of a question for names.
        told: The sentences of its snippets.
        gains: ROUGE-SU4 of each of these.
    """

    edition: int
    question: BioasqQuestion
    texts: Sequence[str]
    features: Mapping[str, float]
    candidates: Candidates | None
    told: Sequence[Told]
    gains: Doubles


class Fitted(NamedTuple):
    """All weights."""

    yes_no: YesNoModel
    names: Trees
    sentences: Mapping[str, float]


def read_golden(folder: Path) -> Iterator[tuple[int, BioasqQuestion]]:
    """Yield the questions of the golden sets of a folder with the edition their file names.

    Raises:
        InputError: There is no such file as ``10B3_golden.json`` or ``10B3_golden.json.gz``.
    """
    found = [(_EDITION.match(path.name), path) for path in sorted(folder.glob("*_golden.json*"))]
    if not any(edition for edition, _ in found):
        raise InputError(f"{folder} holds no golden sets, such as 10B3_golden.json")
    for edition, path in found:
        if edition is None:
            continue
        read = gzip.decompress if path.suffix == ".gz" else bytes
        for fields in json.loads(read(path.read_bytes()))["questions"]:
            yield int(edition[0]), parse_question(fields)


def read_lesson(
    edition: int, question: BioasqQuestion, directions: DirectionModel
) -> AnswerLesson | None:
    """Return what is known of a question; None without snippets or ideal answers."""
    texts = [one for one in dict.fromkeys(each.text for each in question.snippets) if one.strip()]
    told = describe_sentences(question.body, texts) if texts else []
    if not (told and question.ideal_answers):
        return None
    is_named = question.type in ("factoid", "list")
    return AnswerLesson(
        edition,
        question,
        texts,
        describe_support(question.body, texts, directions) if question.type == "yesno" else {},
        find_candidates(question.body, texts) if is_named else None,
        told,
        np.array([_su4(one.text, question) for one in told]),
    )


def _su4(answer: str, question: BioasqQuestion) -> float:
    return rouge(answer, question.ideal_answers)["rouge-su4_f1"]


def fit(lessons: Sequence[AnswerLesson]) -> Fitted:
    """Fit all weights.

    Raises:
        InputError: No question is answered by yes, by no, or by names.
    """
    asked = [one for one in lessons if one.question.type == "yesno"]
    is_yes = [str(one.question.exact_answer).lower() == "yes" for one in asked]
    named = [one for one in lessons if one.candidates and _find_right(one).any()]
    if len({*is_yes}) < 2 or not named:
        raise InputError("the questions must hold some answered by yes, by no, and by names")
    return Fitted(
        fit_yes_no([one.features for one in asked], is_yes),
        fit_names(named),
        fit_sentences([one.told for one in lessons], [one.gains for one in lessons]),
    )


def fit_yes_no(described: Sequence[Mapping[str, float]], is_yes: Sequence[bool]) -> YesNoModel:
    """Fit a logistic regression in which yes and no weigh the same, however many there are."""
    names = sorted({name for one in described for name in one})
    table = np.array([[one.get(name, 0.0) for name in names] for one in described])
    used = (table != 0).sum(axis=0) >= FEWEST
    names = [name for name, keep in zip(names, used, strict=True) if keep]
    most = np.abs(table[:, used]).max(axis=0)
    table = table[:, used] / most
    truth = np.array(is_yes, dtype=np.float64)
    shares = np.where(truth == 1, 0.5 / truth.mean(), 0.5 / (1 - truth.mean()))

    def loss(flat: Doubles) -> tuple[float, Doubles]:
        sums = table @ flat[1:] + flat[0]
        wrong = shares * (1 / (1 + np.exp(-sums)) - truth)
        cost = (shares * (np.logaddexp(0, sums) - truth * sums)).sum()
        slope = np.concatenate([[wrong.sum()], table.T @ wrong + L2 * flat[1:]])
        return float(cost + L2 / 2 * (flat[1:] ** 2).sum()), slope

    found = import_package("scipy.optimize").minimize(
        loss, np.zeros(len(names) + 1), jac=True, method="L-BFGS-B"
    )
    kept = dict(zip(names, (found.x[1:] / most).round(DIGITS).tolist(), strict=True))
    return YesNoModel(
        round(float(found.x[0]), DIGITS), {name: one for name, one in kept.items() if one}
    )


def _find_right(lesson: AnswerLesson) -> NDArray[np.bool_]:
    """Return which candidates answer."""
    exact = lesson.question.exact_answer or ()
    entities = ((exact,),) if isinstance(exact, str) else exact
    right = {_fold(name) for names in entities for name in names}
    names = lesson.candidates.names if lesson.candidates else ()
    return np.array([_fold(one) in right for one in names], dtype=np.bool_)


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())


def fit_names(lessons: Sequence[AnswerLesson]) -> Trees:
    """Fit trees that tell candidates which answer from others of the same questions."""
    chance = np.random.default_rng(0)
    rows, labels = [], []
    for one in lessons:
        right = _find_right(one)
        wrong = chance.permutation(np.flatnonzero(~right))[:NEGATIVES]
        places = np.concatenate([np.flatnonzero(right), wrong])
        if one.candidates:
            rows.append(one.candidates.features[places])
            labels.append(right[places])
    lightgbm = import_package("lightgbm")
    data = lightgbm.Dataset(np.vstack(rows), np.concatenate(labels).astype(np.int64))
    return convert_trees(lightgbm.train(dict(_TREES), data, ROUNDS).dump_model(), ROUNDS)


def fit_sentences(told: Sequence[Sequence[Told]], gains: Sequence[Doubles]) -> dict[str, float]:
    """Return weights of features: a ridge regression of the ROUGE-SU4 of sentences.

    Features and gains are those beside the mean of their question, as only its own sentences are
    ever compared.
    """
    names = sorted({name for found in told for one in found for name in one.features})
    tables = [np.array([[one.features[n] for n in names] for one in found]) for found in told]
    table = np.vstack([one - one.mean(axis=0) for one in tables])
    gain = np.concatenate([one - one.mean() for one in gains])
    spread = table.std(axis=0) + 1e-9
    unit = table / spread
    gram = unit.T @ unit + SENTENCE_L2 * np.eye(unit.shape[1])
    weights = np.linalg.solve(gram, unit.T @ gain) / spread
    return dict(zip(names, weights.round(5).tolist(), strict=True))


def answer(lesson: AnswerLesson, fitted: Fitted) -> BioasqQuestion:
    """Return a question with the answers that weights give."""
    question, exact = lesson.question, list[str]()
    if question.type == "yesno":
        exact = ["yes" if fitted.yes_no.weigh(lesson.features) >= YES else "no"]
    elif lesson.candidates is not None:
        terms = order_terms(lesson.candidates, fitted.names)
        exact = choose_names(question.type, terms, lesson.texts)
    ranked = order_told(lesson.told, fitted.sentences)
    names = exact[0] if question.type == "yesno" else tuple((one,) for one in exact)
    ideal = join_sentences(question.type, ranked, exact)
    return replace(question, exact_answer=names or None, ideal_answers=(ideal,))


def cross_validate(lessons: Sequence[AnswerLesson]) -> list[BioasqQuestion]:
    """Return all questions as weights answer them that were fitted on the other editions.

    Questions of which a snippet is in the edition that is answered are fitted on neither.
    """
    answered: dict[str, Any] = {}
    for edition in sorted({one.edition for one in lessons}):
        asked = [one for one in lessons if one.edition == edition]
        known = {_fold(text) for one in asked for text in one.texts}
        others = [
            one
            for one in lessons
            if one.edition != edition and known.isdisjoint(map(_fold, one.texts))
        ]
        fitted = fit(others)
        answered |= {one.question.id: answer(one, fitted) for one in asked}
    return [answered[one.question.id] for one in lessons]


_EXACT: Final = ("yesno_macro_f1", "factoid_mrr", "list_f1")
_IDEAL: Final = ("ideal_rouge-su4_f1", "ideal_rouge-su4_recall")


def measure(lessons: Sequence[AnswerLesson], given: Sequence[BioasqQuestion]) -> dict[str, Any]:
    """Return what answers reach by edition and in all, and what two simple answers would reach.

    These are the snippets up to 200 words, and the single best sentence of each question if one
    always knew it.
    """
    editions = sorted({one.edition for one in lessons})
    pairs = list(zip(lessons, given, strict=True))
    found = {
        str(edition): _measure([one for one in pairs if one[0].edition == edition])
        for edition in editions
    }
    first = [" ".join(" ".join(one.texts).split()[:MAX_IDEAL_WORDS]) for one in lessons]
    return {
        "questions": len(lessons),
        "all": _measure(pairs),
        "editions": found,
        "first_snippets": _measure_ideal(lessons, first),
        "first_sentence": _measure_ideal(lessons, [one.told[0].text for one in lessons]),
        "best_sentence": _measure_ideal(
            lessons, [one.told[int(one.gains.argmax())].text for one in lessons]
        ),
    }


def _measure(pairs: Sequence[tuple[AnswerLesson, BioasqQuestion]]) -> dict[str, float]:
    golden = [replace(one.question, exact_answer=_lower(one.question)) for one, _ in pairs]
    exact = evaluate_answers(golden, [given for _, given in pairs]).values()
    lessons, texts = [one for one, _ in pairs], [given.ideal_answers[0] for _, given in pairs]
    return {name: round(exact[name], 4) for name in _EXACT} | _measure_ideal(lessons, texts)


def _lower(question: BioasqQuestion) -> Any:
    exact = question.exact_answer
    return exact.lower() if isinstance(exact, str) else exact


def _measure_ideal(lessons: Sequence[AnswerLesson], texts: Sequence[str]) -> dict[str, float]:
    golden = [one.question for one in lessons]
    given = [replace(one, ideal_answers=(text,)) for one, text in zip(golden, texts, strict=True)]
    found = evaluate_ideal(golden, given).values()
    return {name: round(found[name], 4) for name in _IDEAL}


def train(asked: Sequence[tuple[int, BioasqQuestion]]) -> dict[str, Any]:
    """Fit all weights on questions with their editions; return them with measures.

    Raises:
        InputError: There are no two editions, or one holds no question of a kind.
    """
    directions = DirectionModel.load()
    read = [read_lesson(edition, question, directions) for edition, question in asked]
    lessons = [one for one in read if one is not None]
    if len({one.edition for one in lessons}) < 2:
        raise InputError("golden sets of at least two editions are needed, to measure on another")
    measured, fitted = measure(lessons, cross_validate(lessons)), fit(lessons)
    return {
        "cross_validated": measured,
        "yes_no": {"bias": fitted.yes_no.bias, "weights": dict(fitted.yes_no.weights)},
        "names": {"features": list_features(), "trees": fitted.names.to_dict()},
        "sentences": {"weights": fitted.sentences},
    }


def write_weights(path: Path, parts: Mapping[str, Any]) -> None:
    """Write weights with their record, a part a line."""
    lines = (f"{json.dumps(name)}: {json.dumps(part)}" for name, part in parts.items())
    path.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8", newline="\n")


def main() -> None:
    """Fit, write the weights, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("golden", type=Path)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    chosen = parser.parse_args()
    found = train(list(read_golden(chosen.golden)))
    write_weights(chosen.out, found)
    sys.stdout.write(json.dumps(found["cross_validated"], indent=1) + "\n")


if __name__ == "__main__":
    main()
