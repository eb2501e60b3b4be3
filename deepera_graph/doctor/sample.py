"""A question, a passage that plainly answers it and a look-alike, to see if a backend judges."""

import time
from collections.abc import Sequence

from deepera_graph.doctor.finding import Finding
from deepera_graph.errors import BackendError, RoleError
from deepera_graph.judges.base import as_judge, judge_all
from deepera_graph.schema import Backend, Judgement, PassageTask, Unjudged, Window

_LOW = 0.5
_ADVICE = "see the findings above; others would fail, too"
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

_SAMPLE: Window = {"text": TASK["text"], "title": TASK["title"], "section": TASK["section"]}
LOOK_ALIKE: Window = {
    "text": (
        "Whether biochar raises the water-holding capacity of sandy soil is debated. "
        "We set out to measure it on farms of the region."
    ),
    "title": TASK["title"],
    "section": "Background",
}


def judge_sample(name: str, backend: Backend, *, beside: Sequence[Window] = ()) -> Finding:
    """Have a backend judge the sample, *beside* others; a low score of it is a warning."""
    started = time.monotonic()
    try:
        judgement, *_ = judge_all(
            as_judge(backend.judge), TASK["question"], TASK["intent"], [_SAMPLE, *beside]
        )
    except (RoleError, BackendError) as error:
        return Finding(name, "fail", str(error), _ADVICE)
    if isinstance(judgement, Unjudged):
        return Finding(name, "fail", judgement.cause, _ADVICE)
    return _verdict(name, judgement, time.monotonic() - started)


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
