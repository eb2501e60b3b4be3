"""What a construction would ask of models, before anything is asked."""

from collections.abc import Sequence
from dataclasses import dataclass

from deepera_graph.lab.build.builder import estimate_step
from deepera_graph.lab.quest.asking import KINDS, PACKAGE
from deepera_graph.lab.quest.plan import INTENTS, QuestPlan
from deepera_graph.usage import HasUsage, Usage

# Measured on 46 467 papers with few citations, see docs/quest.md: of what searches return so many
# pass the prefilter once, and a hop along citations brings so many pairs on top of each.
NEW_SHARE = 0.5
PER_SEARCHED = 0.11
DISAGREED = 0.06  # of pairs, with three judges of which each is right 95 times in 100
ANSWERED = 0.3
_TOPIC, _QUESTION, _REVIEW, _QUERY = 80, 300, 150, 45  # usual lengths in characters
_PAPER, _GRADE, _RULING, _CHOICE = 950, 330, 330, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestEstimate(HasUsage):
    """The calls of a construction by step if every question passes, at 4 characters a token.

    Attributes:
        n_topics: Topics.
        n_questions: Questions.
        n_pairs: Pairs that judges are asked about.
        most_pairs: The same if every question ends by the number of its judged papers.
        usage: By step; of grades all judges together.
    """

    n_topics: int
    n_questions: int
    n_pairs: int
    most_pairs: int
    usage: dict[str, Usage]


def estimate_quest(
    plan: QuestPlan,
    *,
    n_judges: int,
    n_sources: int,
    n_topics: int = 0,
    n_questions: int | None = None,
) -> QuestEstimate:
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
    usage = {
        step: estimate_step(step, n, n_given, n_said, package=PACKAGE)
        for step, n, n_given, n_said in before
        if n
    }
    return QuestEstimate(
        n_topics=n_topics,
        n_questions=n_questions,
        n_pairs=per_question * n_questions,
        most_pairs=plan.max_scored * n_questions,
        usage={**usage, **judging},
    )


def estimate_judging(n_pairs: Sequence[int], plan: QuestPlan, *, n_judges: int) -> QuestEstimate:
    """Count the calls that judging takes, by the number of pairs of each question."""
    return QuestEstimate(
        n_topics=0,
        n_questions=len(n_pairs),
        n_pairs=sum(n_pairs),
        most_pairs=sum(n_pairs),
        usage=_estimate_judging(n_pairs, plan, n_judges),
    )


def _estimate_judging(n_pairs: Sequence[int], plan: QuestPlan, n_judges: int) -> dict[str, Usage]:
    def groups(share: float) -> int:
        return sum(-(-round(n * share) // plan.group) for n in n_pairs)

    disagreed = DISAGREED if n_judges > 1 else 0.0
    size = plan.group
    steps = (
        ("grade", n_judges * groups(1), size * _PAPER, size * _GRADE),
        ("adjudicate", groups(disagreed), size * (_PAPER + n_judges * _GRADE), size * _RULING),
        ("filter", groups(ANSWERED), size * _PAPER, size * _CHOICE),
    )
    return {
        step: estimate_step(step, n, _QUESTION + n_given, n_said, package=PACKAGE)
        for step, n, n_given, n_said in steps
        if n
    }
