"""What a construction would ask of models, before anything is asked."""

from collections.abc import Sequence

from deepera_graph.lab.construction.asking import Estimate, estimate_steps
from deepera_graph.lab.quest.asking import KINDS, PACKAGE
from deepera_graph.lab.quest.plan import INTENTS, QuestPlan
from deepera_graph.usage import Usage

# Measured on 46 467 papers with few citations, see docs/quest.md: of what searches return so many
# pass the prefilter once, and a hop along citations brings so many pairs on top of each.
NEW_SHARE = 0.5
PER_SEARCHED = 0.11
DISAGREED = 0.06  # of pairs, with three judges of which each is right 95 times in 100
ANSWERED = 0.3
_TOPIC, _QUESTION, _REVIEW, _QUERY = 80, 300, 150, 45  # usual lengths in characters
_PAPER, _GRADE, _RULING, _CHOICE = 950, 330, 330, 60


def estimate_quest(
    plan: QuestPlan,
    *,
    n_judges: int,
    n_sources: int,
    n_topics: int = 0,
    n_questions: int | None = None,
) -> Estimate:
    """Count the calls of a construction from topics, or from questions that are there."""
    n_questions = n_topics * len(INTENTS) if n_questions is None else n_questions
    n_searched = (1 + plan.rewrites * len(KINDS)) * plan.per_search * n_sources * NEW_SHARE
    per_question = round(min(plan.max_scored, n_searched * (1 + PER_SEARCHED * plan.max_hops)))
    four, queries = len(INTENTS), plan.rewrites * len(KINDS)
    before = (
        ("map", n_topics * bool(plan.categories), _TOPIC, 40),
        ("questions", n_topics, _TOPIC, four * _QUESTION),
        ("review", n_topics, four * _QUESTION, four * _REVIEW),
        ("rewrite", n_questions, _QUESTION, queries * _QUERY),
    )
    judging = _estimate_judging([per_question] * n_questions, plan, n_judges)
    counts = {
        "topics": n_topics,
        "questions": n_questions,
        "pairs": per_question * n_questions,
        "most_pairs": plan.max_scored * n_questions,
    }
    return Estimate(counts=counts, usage={**estimate_steps(before, PACKAGE), **judging})


def estimate_judging(n_pairs: Sequence[int], plan: QuestPlan, *, n_judges: int) -> Estimate:
    """Count the calls that judging takes, by the number of pairs of each question."""
    n = sum(n_pairs)
    counts = {"topics": 0, "questions": len(n_pairs), "pairs": n, "most_pairs": n}
    return Estimate(counts=counts, usage=_estimate_judging(n_pairs, plan, n_judges))


def _estimate_judging(n_pairs: Sequence[int], plan: QuestPlan, n_judges: int) -> dict[str, Usage]:
    def groups(share: float) -> int:
        return sum(-(-round(n * share) // plan.group) for n in n_pairs)

    disagreed = DISAGREED if n_judges > 1 else 0.0
    size = plan.group
    seen = _QUESTION + size * (_PAPER + n_judges * _GRADE)
    steps = (
        ("grade", n_judges * groups(1), _QUESTION + size * _PAPER, size * _GRADE),
        ("adjudicate", groups(disagreed), seen, size * _RULING),
        ("filter", groups(ANSWERED), _QUESTION + size * _PAPER, size * _CHOICE),
    )
    return estimate_steps(steps, PACKAGE)
