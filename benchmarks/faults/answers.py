"""What a good model writes when a rival asks it, in the form that this rival asks for."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from questions import RELEVANT


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the model finds about one passage.

    Attributes:
        label: Number the prompt gave the passage.
        grade: Worth in [1, 10].
        mark: Text that stands in place of the grade, as a faulty answer has it.
        sentence: Number of the sentence quoted as evidence.
    """

    label: int
    grade: int
    mark: str = ""
    sentence: int = 1


@dataclass(frozen=True, slots=True)
class Form:
    """How an answer is written, and what it holds: labels, grades (or yes and no), quotes."""

    write: Callable[[Sequence[Verdict]], str]
    first_label: int = 1
    labels: bool = True
    grades: bool = False
    quotes: bool = False


def _judgement(verdicts: Sequence[Verdict]) -> str:
    (one,) = verdicts
    given: object = int(one.mark) if one.mark.isdigit() else one.mark
    score = given if one.mark else one.grade / 10
    return json.dumps({"reason": "scripted", "evidence": [one.sentence], "score": score})


def _yes_or_no(verdicts: Sequence[Verdict]) -> str:
    (one,) = verdicts
    return one.mark or ("YES" if one.grade >= RELEVANT else "NO")


def _ranked_ids(verdicts: Sequence[Verdict]) -> str:
    return json.dumps({"ranked_document_ids": [one.label for one in verdicts]})


def _indices(verdicts: Sequence[Verdict]) -> str:
    return json.dumps({"documents": [{"index": one.label} for one in verdicts]})


def _permutation(verdicts: Sequence[Verdict]) -> str:
    return " > ".join(f"[{one.label}]" for one in verdicts)


def _relevances(verdicts: Sequence[Verdict]) -> str:
    return "\n".join(f"Doc: {one.label}, Relevance: {one.mark or one.grade}" for one in verdicts)


def _labelled_answers(verdicts: Sequence[Verdict]) -> str:
    """In the order of the documents, as the prompt shows it, not by grade."""
    return "\n".join(
        f"<document id={one.label}>\n<explanation>\nscripted\n</explanation>\n<answer>\n"
        f"{one.mark or ('RELEVANT' if one.grade >= RELEVANT else 'NOT_RELEVANT')}\n"
        "</answer>\n</document>"
        for one in sorted(verdicts, key=lambda one: one.label)
    )


JUDGEMENT = Form(_judgement, labels=False, grades=True, quotes=True)
YES_OR_NO = Form(_yes_or_no, labels=False, grades=True)
RANKED_IDS = Form(_ranked_ids, first_label=0)
INDICES = Form(_indices)
PERMUTATION = Form(_permutation)
RELEVANCES = Form(_relevances, grades=True)
LABELLED_ANSWERS = Form(_labelled_answers, first_label=0, grades=True)
