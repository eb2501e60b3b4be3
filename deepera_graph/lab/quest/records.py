"""The records that a construction reads and writes, and what it will cost.

The folder that comes out has:

========================  ==========================================================================
``questions.jsonl``       the questions that were judged: id, query, topic, intent, constraints
``judgements.jsonl``      a line a pair: query_id, paper_id, grade, grades (by judge), evidence,
                          adjudicated; and reasons, failures, ruling, filtered where there are any
``papers.jsonl``          the papers of the pairs, as `deepera papers build` reads them
``queries.jsonl``         those with enough answers, as `deepera-lab study papers` reads them
``records.jsonl``         a line a question: calls of sources, counts, usage, and why it ended
``rejected.jsonl``        topics and questions that went no further, each with its reason
``manifest.json``         what made it, what came out, and the SHA-256 of each file
========================  ==========================================================================
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, TypeAdapter

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.asking import ConstructionEstimate, estimate_steps
from deepera_graph.lab.construction import ReasonLog, RowSink
from deepera_graph.lab.data.readers import Object, Plain, Text, Texts, read_line
from deepera_graph.lab.settings import QuestPlan
from deepera_graph.papers.results import Scope
from deepera_graph.text.plain import count
from deepera_graph.usage import Usage

Intent = Literal["method", "setting", "comparison", "scope"]
INTENTS: tuple[Intent, ...] = get_args(Intent)
StopRule = Literal["no_seed", "max_answers", "max_scored", "all_judged"]
MAX_GRADE = 2
KINDS = ("method", "task", "broader", "narrower", "terms")  # of queries
PACKAGE = "deepera_graph.lab.quest.prompts"
# Measured on 46 467 papers with few citations, see docs/quest.md: of what searches return so many
# pass the prefilter once, and a hop along citations brings so many pairs on top of each.
NEW_SHARE = 0.5
PER_SEARCHED = 0.11
DISAGREED = 0.06  # of pairs, with three judges of which each is right 95 times in 100
ANSWERED = 0.3
_TOPIC, _QUESTION, _REVIEW, _QUERY = 80, 300, 150, 45  # usual lengths in characters
_PAPER, _GRADE, _RULING, _CHOICE = 950, 330, 330, 60
_YEARS = ("year_from", "year_to")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What questions are made of."""

    id: str  # of its own, or its place in the file
    name: str  # what it is called; not empty
    parents: tuple[str, ...] = ()  # the broader topics that it is in, the broadest first
    about: str = ""  # what is said of it, or empty

    @property
    def path(self) -> str:
        """Its name below those of the broader ones."""
        return " > ".join((*self.parents, self.name))


Constraint = str | int | list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestQuestion:
    """A question for papers, with what an answer has to meet."""

    id: Text  # of its own
    query: Text  # what is asked
    topic: Plain = ""  # the path of its topic, or empty
    # one of `INTENTS`
    intent: Annotated[Intent, BeforeValidator(lambda one: one or INTENTS[0])] = "method"
    # what has to hold by name; `year_from` and `year_to` are years, inclusive
    constraints: Object = field(default_factory=dict)
    categories: Texts = ()  # classes of its topic, if they were asked for

    @property
    def scope(self) -> Scope:
        """The years it is limited to; raises `SettingsError` if they are none."""
        years: dict[str, Any] = {one: self.constraints.get(one) for one in _YEARS}
        return Scope(**years)

    def to_dict(self) -> dict[str, Any]:
        """Return it as a line of ``questions.jsonl`` has it."""
        plain: dict[str, Any] = {
            "id": self.id,
            "query": self.query,
            "topic": self.topic,
            "intent": self.intent,
            "constraints": dict(self.constraints),
        }
        return {**plain, "categories": list(self.categories)} if self.categories else plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "QuestQuestion":
        """Read a line of ``questions.jsonl``."""
        one = read_line(_ASKED, plain)
        try:
            _ = one.scope
        except SettingsError as error:
            raise InputError(f"'constraints': {error}") from error
        return one


_ASKED = TypeAdapter(QuestQuestion)


def check_ids(questions: Sequence[QuestQuestion]) -> None:
    """Raise `InputError` if two questions have one id."""
    for id, n in Counter(one.id for one in questions).items():
        if n > 1:
            raise InputError(f"questions must have different ids, got {id!r:.80} {n} times")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A topic or a question that went no further."""

    stage: str  # ``topic``, ``question``, ``review``, ``duplicate``, ``rewrite`` or ``answers``
    topic: str  # path of the topic
    reason: str  # a short, stable name
    detail: str = ""  # what exactly was wrong
    id: str = ""  # of the question, or empty
    query: str = ""  # the question, or empty
    intent: str = ""  # of the question, or empty

    @classmethod
    def of(cls, stage: str, one: QuestQuestion, reason: str, detail: str = "") -> Self:
        """Return that of a question."""
        return cls(
            stage=stage,
            topic=one.topic,
            reason=reason,
            detail=detail,
            id=one.id,
            query=one.query,
            intent=one.intent,
        )


def estimate_quest(
    plan: QuestPlan,
    *,
    n_judges: int,
    n_sources: int,
    n_topics: int = 0,
    n_questions: int | None = None,
) -> ConstructionEstimate:
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
    return ConstructionEstimate(counts=counts, usage={**estimate_steps(before, PACKAGE), **judging})


def estimate_judging(
    n_pairs: Sequence[int], plan: QuestPlan, *, n_judges: int
) -> ConstructionEstimate:
    """Count the calls that judging takes, by the number of pairs of each question."""
    n = sum(n_pairs)
    counts = {"topics": 0, "questions": len(n_pairs), "pairs": n, "most_pairs": n}
    return ConstructionEstimate(counts=counts, usage=_estimate_judging(n_pairs, plan, n_judges))


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


REJECTED = "rejected.jsonl"
FILES = (
    "questions.jsonl",
    "judgements.jsonl",
    "papers.jsonl",
    "queries.jsonl",
    "records.jsonl",
    REJECTED,
)
Entry = Mapping[str, Any]


def reject_thin(
    questions: Sequence[QuestQuestion], entries: Mapping[str, Entry], plan: QuestPlan
) -> tuple[list[QuestQuestion], list[Rejection]]:
    """Return the questions with enough answers, and the others as rejected."""
    kept, rejected = [], []
    for one in questions:
        n = entries[one.id]["record"]["answers"]
        if n >= plan.min_answers:
            kept.append(one)
            continue
        detail = f"{n} answers were found, at least {plan.min_answers} are needed"
        if unjudged := entries[one.id]["record"]["unjudged"]:
            name, cause = next(iter(next(iter(unjudged.values())).items()))
            detail += f"; {count(len(unjudged), 'paper')} could not be judged ({name}: {cause})"
        rejected.append(Rejection.of("answers", one, "too_few_answers", detail))
    return kept, rejected


def make_query(question: QuestQuestion, entry: Entry, tau: int) -> dict[str, Any]:
    """Return a question with its answers; within a scope, partial matches break a limit of it."""
    grades = {one["paper_id"]: one["grade"] for one in entry["judgements"]}
    plain: dict[str, Any] = {
        **question.to_dict(),
        "gold": [id for id, grade in grades.items() if grade >= tau],
    }
    if question.intent == "scope":
        plain["violating"] = [id for id, grade in grades.items() if 0 < grade < tau]
    return plain


def write_rows(
    rows: Mapping[str, RowSink],
    *,
    worked: Sequence[QuestQuestion],
    kept: Sequence[QuestQuestion],
    entries: Mapping[str, Entry],
    tau: int,
) -> None:
    """Write the rows of all files but the rejected."""
    # Only ``queries.jsonl`` leaves out what has too few answers: of all other questions that were
    # judged the pairs are there, too.
    done = [entries[id] for id in sorted(entries)]
    papers = {one["id"]: one for entry in done for one in entry["papers"]}
    found: tuple[Iterable[Any], ...] = (
        (one.to_dict() for one in worked),
        (one for entry in done for one in entry["judgements"]),
        (papers[id] for id in sorted(papers)),
        (make_query(one, entries[one.id], tau) for one in kept),
        (entry["record"] for entry in done),
    )
    for name, lines in zip(FILES, found, strict=False):
        for line in lines:
            rows[name].append(line)


def describe_outcome(
    n_written: int,
    questions: Sequence[QuestQuestion],
    entries: Mapping[str, Entry],
    rejected: ReasonLog,
) -> dict[str, Any]:
    """Return what the manifest says came out, in plain data; nothing is of this run alone."""
    records = [entries[id]["record"] for id in sorted(entries)]
    sizes = sorted(entries[one.id]["record"]["answers"] for one in questions)
    intents = Counter(one.intent for one in questions)
    grades: Counter[str] = Counter()
    for one in records:
        grades.update(one["grades"])
    return {
        "questions": {
            "written": n_written,
            "judged": len(records),
            "kept": len(questions),
            "intents": {name: intents[name] for name in INTENTS},
        },
        "rejected": rejected.describe(),
        "stops": dict(sorted(Counter(one["stop"] for one in records).items())),
        "answers": {
            "all": sum(sizes),
            "fewest": min(sizes, default=0),
            "most": max(sizes, default=0),
        },
        "pairs": {
            "scored": sum(one["scored"] for one in records),
            "grades": dict(sorted(grades.items())),
            "adjudicated": sum(one["adjudicated"] for one in records),
            "filtered": sum(one["filtered"] for one in records),
            "unfiltered": sum(len(one["unfiltered"]) for one in records),
            "unjudged": sum(len(one["unjudged"]) for one in records),
        },
    }


def explain_empty(rejected: ReasonLog, failed: Mapping[str, str]) -> str:
    """Return the reasons with their counts and an example of each."""
    parts = [
        f"{rejected.counts[stage][reason]} {stage}: {reason} "
        f"(e.g. {first.query or first.topic!r:.80}: {first.detail:.200})"
        for (stage, reason), first in sorted(rejected.first.items())
    ]
    if failed:
        parts.append(f"{len(failed)} with failed calls ({next(iter(failed.values())):.160})")
    return "; ".join(parts) or "none"
