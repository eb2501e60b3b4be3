"""The rules judge: is a passage on topic, and does it state what the question asks for?"""

from deepera_graph.backends.local.grounding import sought
from deepera_graph.backends.local.logistic import logistic
from deepera_graph.backends.local.measures import Measures, study
from deepera_graph.backends.local.reasons import reason
from deepera_graph.backends.local.sections import section_weight
from deepera_graph.roles import PassageTask
from deepera_graph.schema import Judgement
from deepera_graph.usage import Usage

# Fitted by `fit` and rounded, on golden passages against all others of the same question: the
# PubMedQA development half (486 questions) with other sections of the same abstract as look-alikes,
# 150 of them with written look-alikes too, and 682 SciFact claims against three-sentence pieces of
# abstracts.
WEIGHTS = Measures(
    strength=6.5,
    grounded_coverage=2.7,
    grounded_strength=4.0,
    opening=1.0,
    closing=0.9,
    peak=1.3,
    names=0.3,
)
INTERCEPT = -7.2
DIGITS = 4


def judge(task: PassageTask) -> Judgement:
    """Score one passage as evidence, from nothing but the question, the intent and the passage.

    The score is the fitted probability where one passage in about 25 is evidence, rounded to four
    digits. A blank text scores 0. The quote is the strongest sentence, word for word.
    """
    kind = sought(task["intent"])
    found = study(task)
    if found is None:
        return Judgement(score=0.0, reason="the passage has no text", usage=Usage())
    weighed = zip(WEIGHTS, found.measures, strict=True)
    total = INTERCEPT + sum(weight * value for weight, value in weighed)
    if kind in ("result", "figure"):
        total += section_weight(task["section"])
    return Judgement(
        score=round(logistic(total), DIGITS),
        reason=reason(found, kind),
        quote=found.best.sentence.text,
        usage=Usage(),
    )
