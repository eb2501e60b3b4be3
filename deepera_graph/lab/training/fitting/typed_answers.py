"""Fits what answers BioASQ questions without a model: yes or no, and which sentences to take.

Both are measured by cross-validation over questions; the shipped weights are fitted on all.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from deepera_graph.bioasq.measuring.rouge import rouge
from deepera_graph.bioasq.phase_b.local import sentences
from deepera_graph.bioasq.phase_b.local.extract import YES
from deepera_graph.bioasq.phase_b.local.restate import restate
from deepera_graph.bioasq.phase_b.local.yes_no import YesNoModel, describe
from deepera_graph.bioasq.questions import Question
from deepera_graph.errors import InputError
from deepera_graph.judges.trained.direction.features import describe as describe_direction
from deepera_graph.judges.trained.direction.model import DirectionModel
from deepera_graph.lab.training.fitting.direction import fit_model, read_labelled
from deepera_graph.lab.training.lessons.pools import digest
from deepera_graph.lab.training.weights import import_package

N_FOLDS: Final = 10
N_DIVISIONS: Final = 5  # into folds, for what depends much on it
L2 = 40.0  # on features of unit variance
SENTENCE_L2 = 30.0
FEWEST: Final = 5  # questions that must have a feature
DIGITS: Final = 3
_LEFT_OUT: Final = "pubmedqa"  # the set whose questions are the ones measured here
Doubles = NDArray[np.float64]


def fit_directions(data: Path, more: Path | None = None) -> DirectionModel:
    """Fit the direction head on all labelled sets but PubMedQA's, so that no answer leaks."""
    rows = [
        row
        for row in read_labelled(data, more=more)
        if row.weight and not row.group.startswith(_LEFT_OUT)
    ]
    return fit_model(rows, [describe_direction(row.question, row.text, row.quote) for row in rows])


def fit_yes_no(described: Sequence[Mapping[str, float]], is_yes: Sequence[bool]) -> YesNoModel:
    """Fit a logistic regression in which yes and no weigh the same, however many there are."""
    names = sorted({name for one in described for name in one})
    table = np.array([[one.get(name, 0.0) for name in names] for one in described])
    used = (table != 0).sum(axis=0) >= FEWEST
    names = [name for name, keep in zip(names, used, strict=True) if keep]
    table = table[:, used]
    mean, spread = table.mean(axis=0), table.std(axis=0) + 1e-9
    unit = (table - mean) / spread
    truth = np.array(is_yes, dtype=np.float64)
    shares = np.where(truth == 1, 0.5 / truth.mean(), 0.5 / (1 - truth.mean()))

    def loss(flat: Doubles) -> tuple[float, Doubles]:
        sums = unit @ flat[1:] + flat[0]
        likely = 1 / (1 + np.exp(-sums))
        wrong = shares * (likely - truth)
        cost = (shares * (np.logaddexp(0, sums) - truth * sums)).sum()
        slope = np.concatenate([[wrong.sum()], unit.T @ wrong + L2 * flat[1:]])
        return float(cost + L2 / 2 * (flat[1:] ** 2).sum()), slope

    found = import_package("scipy.optimize").minimize(
        loss, np.zeros(len(names) + 1), jac=True, method="L-BFGS-B"
    )
    weights = found.x[1:] / spread
    bias = found.x[0] - float(weights @ mean)
    kept = {name: round(float(one), DIGITS) for name, one in zip(names, weights, strict=True)}
    return YesNoModel(round(bias, DIGITS), {name: one for name, one in kept.items() if one})


def fold_of(question: Question, division: int = 0) -> int:
    """Return in which fold a question is, by a hash of its id and the number of the division."""
    return int(digest(f"{division} {question.id}")[:8], 16) % N_FOLDS


def cross_validate_yes_no(
    questions: Sequence[Question], described: Sequence[Mapping[str, float]], division: int = 0
) -> list[float]:
    """Return how likely yes is for each question, by weights that were fitted without its fold.

    Those that are not answered by yes or no get one, too, and are fitted on nowhere.
    """
    folds = [fold_of(one, division) for one in questions]
    likely = [0.0] * len(questions)
    for fold in range(N_FOLDS):
        others = [
            place
            for place, one in enumerate(questions)
            if folds[place] != fold and one.type == "yesno"
        ]
        model = fit_yes_no(
            [described[place] for place in others],
            [questions[place].exact_answer == "yes" for place in others],
        )
        for place in range(len(questions)):
            if folds[place] == fold:
                likely[place] = model.weigh(described[place])
    return likely


def macro_f1(is_yes: Sequence[bool], said_yes: Sequence[bool]) -> float:
    """Return the mean of F1 of yes and of no, as BioASQ measures yes/no questions."""
    both = []
    for wanted in (True, False):
        n_right = sum(one == other == wanted for one, other in zip(is_yes, said_yes, strict=True))
        n_named = sum(one == wanted for one in is_yes) + sum(one == wanted for one in said_yes)
        both.append(2 * n_right / n_named if n_named else 0.0)
    return sum(both) / 2


def measure_yes_no(
    questions: Sequence[Question], divisions: Sequence[Sequence[float]]
) -> dict[str, Any]:
    """Return what the probabilities of yes reach on questions for yes or no.

    Each of the *divisions* into folds has a probability for every question; the mean is given.
    """
    places = [place for place, one in enumerate(questions) if one.type == "yesno"]
    is_yes = [questions[place].exact_answer == "yes" for place in places]
    said = [[likely[place] >= YES for place in places] for likely in divisions]
    right = [np.mean(np.array(is_yes) == np.array(one)) for one in said]
    return {
        "questions": len(places),
        "folds": N_FOLDS,
        "divisions": len(divisions),
        "macro_f1": round(float(np.mean([macro_f1(is_yes, one) for one in said])), 3),
        "accuracy": round(float(np.mean(right)), 3),
        "always_yes": round(macro_f1(is_yes, [True] * len(places)), 3),
    }


def fit_sentences(tables: Sequence[Doubles], gains: Sequence[Doubles]) -> Doubles:
    """Return weights of features: a ridge regression of what sentences add.

    Features and gains are those beside the mean of their question, as only its own sentences are
    ever compared.
    """
    table = np.vstack([one - one.mean(axis=0) for one in tables])
    gain = np.concatenate([one - one.mean() for one in gains])
    spread = table.std(axis=0) + 1e-9
    unit = table / spread
    gram = unit.T @ unit + SENTENCE_L2 * np.eye(unit.shape[1])
    weights: Doubles = np.linalg.solve(gram, unit.T @ gain) / spread
    return weights


def train_sentences(
    questions: Sequence[Question], likely: Sequence[float]
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return weights of sentences fitted on all questions, and what was measured without them.

    The claim before the sentence says yes where that is *likely*, as it will when it is used.
    """
    claims = [
        restate(one.body, "yes" if each >= YES else "no")
        for one, each in zip(questions, likely, strict=True)
    ]
    told = [sentences.describe(one.body, texts_of(one)) for one in questions]
    names = sorted({name for found in told for one in found for name in one.features})
    tables = [np.array([[one.features[n] for n in names] for one in found]) for found in told]
    alone = [_su4(claim, one) for claim, one in zip(claims, questions, strict=True)]
    added = [
        np.array([_su4(f"{claim} {each.text}", one) for each in found])
        for claim, one, found in zip(claims, questions, told, strict=True)
    ]
    gains = [each - base for each, base in zip(added, alone, strict=True)]
    folds = np.array([fold_of(one) for one in questions])
    reached: list[float] = []
    for fold in range(N_FOLDS):
        others = np.flatnonzero(folds != fold).tolist()
        weights = fit_sentences([tables[n] for n in others], [gains[n] for n in others])
        for place in np.flatnonzero(folds == fold).tolist():
            near = sentences.near_question(told[place])
            best = int((tables[place][near] @ weights).argmax())
            reached.append(float(added[place][near[best]]))
    kept = dict(zip(names, fit_sentences(tables, gains).round(5).tolist(), strict=True))
    measured = {
        "questions": len(questions),
        "folds": N_FOLDS,
        "rouge_su4_f1": round(float(np.mean(reached)), 4),
        "claim_alone": round(float(np.mean(alone)), 4),
        "best_sentence": round(float(np.mean([each.max() for each in added])), 4),
    }
    return kept, measured


def _su4(answer: str, question: Question) -> float:
    return rouge(answer, question.ideal_answers)["rouge-su4_f1"]


def texts_of(question: Question) -> list[str]:
    """Return the texts of a question's snippets."""
    return [one.text for one in question.snippets]


def train(questions: Sequence[Question], directions: DirectionModel) -> dict[str, Any]:
    """Fit all weights on questions with snippets and ideal answers; return them with measures.

    Raises:
        InputError: There is no question with snippets that yes or no answers, and one of each.
    """
    used = [one for one in questions if one.ideal_answers and _has_sentences(one)]
    exact = {one.exact_answer for one in used if one.type == "yesno"}
    if exact != {"yes", "no"}:
        raise InputError("the questions must hold some with snippets answered by yes, and by no")
    described = [describe(one.body, texts_of(one), directions) for one in used]
    divisions = [cross_validate_yes_no(used, described, number) for number in range(N_DIVISIONS)]
    yes_no = [place for place, one in enumerate(used) if one.type == "yesno"]
    model = fit_yes_no(
        [described[place] for place in yes_no],
        [used[place].exact_answer == "yes" for place in yes_no],
    )
    weights, measured = train_sentences(used, divisions[0])
    return {
        "yes_no": {
            "cross_validated": measure_yes_no(used, divisions),
            "penalty": L2,
            "bias": model.bias,
            "weights": dict(model.weights),
        },
        "sentences": {"cross_validated": measured, "penalty": SENTENCE_L2, "weights": weights},
    }


def _has_sentences(question: Question) -> bool:
    return bool(sentences.describe(question.body, texts_of(question)))


def write_weights(path: Path, parts: Mapping[str, Any]) -> None:
    """Write weights with their record."""
    text = json.dumps(parts, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")
