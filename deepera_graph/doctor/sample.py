"""A question, a passage that plainly answers it and a look-alike, to see if a backend judges."""

import time

from deepera_graph.doctor.finding import Finding
from deepera_graph.errors import AnswerError, BackendError, RoleError
from deepera_graph.pipeline.survey import find_problem
from deepera_graph.schema import Backend, Judgement, PassageTask, PassageText, Survey, SurveyTask

_LOW = 0.5
TASK: PassageTask = {
    "question": "Does adding biochar to sandy soil raise its water-holding capacity?",
    "intent": {
        "topic": "soil science",
        "entity_type": "amendment: biochar; property: water-holding capacity",
        "intent": "causal inference",
        "expected_answer_type": "numeric",
    },
    "text": (
        "Sandy plots were mixed with 2% biochar by mass and left for one season. "
        "Biochar raised the water-holding capacity of the sandy soil by 18% compared with "
        "untreated plots (n = 24, p < 0.01). Rain in that season was close to the average."
    ),
    "title": "Biochar and the water-holding capacity of sandy soil",
    "section": "Results",
}

LOOK_ALIKE: PassageText = {
    "text": (
        "Whether biochar raises the water-holding capacity of sandy soil is debated. "
        "We set out to measure it on farms of the region."
    ),
    "title": TASK["title"],
    "section": "Background",
}


def judge_sample(name: str, backend: Backend) -> Finding:
    """Have a backend judge the sample; a low score of plain evidence is a warning."""
    started = time.monotonic()
    try:
        judgement = backend.judge.invoke(_with_notes(backend))
    except (RoleError, BackendError) as error:
        return Finding(name, "fail", str(error), "see the findings above; others would fail, too")
    return _verdict(name, judgement, time.monotonic() - started)


def _with_notes(backend: Backend) -> PassageTask:
    """Return the task with the notes of the backend's surveyor, if it has one.

    Raises:
        AnswerError: The notes do not fit the passages.
        RoleError: The surveyor failed.
    """
    if backend.surveyor is None:
        return TASK
    sample: PassageText = {
        "text": TASK["text"],
        "title": TASK["title"],
        "section": TASK["section"],
    }
    asked: SurveyTask = {
        "question": TASK["question"],
        "intent": TASK["intent"],
        "passages": [sample, LOOK_ALIKE],
    }
    survey = Survey.model_validate(backend.surveyor.invoke(asked), from_attributes=True)
    problem = find_problem(asked, survey)
    if problem:
        raise AnswerError(problem)
    return {**TASK, "notes": survey.notes[0]}


def _verdict(name: str, judgement: Judgement, seconds: float) -> Finding:
    found = f"a passage that is plain evidence scores {judgement.score:g}, in {seconds:.1f} s"
    if judgement.score < _LOW:
        return Finding(
            name,
            "warn",
            found,
            "the answer has the right form but is wrong: this model may be too small to judge",
        )
    if not judgement.quote:
        return Finding(
            name,
            "warn",
            f"{found}, without naming a sentence as its evidence",
            "such a passage is not kept unless the setting require_evidence is False",
        )
    return Finding(name, "ok", found)
