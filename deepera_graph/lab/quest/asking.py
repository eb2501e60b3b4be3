"""What chat models are asked in a construction, and how their replies are read.

Seven prompts, all in our own words: ``map``, ``questions``, ``review``, ``rewrite``, ``grade``,
``adjudicate`` and ``filter``.

Source:
    ScholarQuest, section 3 and its appendix, which names its prompts (query generation, query
    rewriting, scorer, strict batch filter) without their text. The rubric of the grades answers
    the four kinds of error that its audit found (Table 9): keyword over-crediting, over-strict
    claim matching, implicit use of knowledge, mismatch of terminology.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, WithJsonSchema

from deepera_graph.chat.parsing import Number, ReplyModel, sanitize_line
from deepera_graph.errors import SettingsError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.lab.asking import StepModel
from deepera_graph.lab.quest.records import (
    INTENTS,
    KINDS,
    MAX_GRADE,
    PACKAGE,
    Constraint,
    QuestQuestion,
    Topic,
)
from deepera_graph.papers.paper import Paper, read_year
from deepera_graph.prompts import messages_of
from deepera_graph.text.quotes import find_quote
from deepera_graph.text.words import content_words

SHOWN_ABSTRACT = 2500  # characters
Flaw = Literal["ok", "ambiguous", "not_judgeable", "too_broad", "too_narrow"]
FilledT = TypeVar("FilledT", bound=ReplyModel)
# Whatever a judge writes is read, so that one bad grade costs no other paper of the reply its own.
WrittenGrade = Annotated[Any, WithJsonSchema({"type": "integer", "enum": [0, 1, 2]})]


class FilledClasses(ReplyModel):
    """The classes of a topic."""

    classes: list[str] = Field(description="Classes of the list, best first; empty if none fits.")


class FilledConstraint(ReplyModel):
    """Something that an answer has to meet."""

    key: str = Field(description="What kind of constraint it is, in lower case with underscores.")
    value: str = Field(description="What has to hold, in a few words.")


class FilledQuestion(ReplyModel):
    """A question for papers."""

    query: str = Field(description="The question, one sentence.")
    constraints: list[FilledConstraint] = Field(description="All that an answer has to meet.")


class FilledQuestions(ReplyModel):
    """Four questions on a topic, one for each intent."""

    method: FilledQuestion = Field(description="The question of the intent method.")
    setting: FilledQuestion = Field(description="The question of the intent setting.")
    comparison: FilledQuestion = Field(description="The question of the intent comparison.")
    scope: FilledQuestion = Field(description="The question of the intent scope.")


class FilledVerdict(ReplyModel):
    """What is wrong with a question."""

    question: Number = Field(description="Its number.")
    reason: str = Field(description="Why, in at most 25 words.")
    verdict: Flaw = Field(description="What is wrong with it, or ok.")


class FilledReview(ReplyModel):
    """What is wrong with the questions."""

    questions: list[FilledVerdict] = Field(description="One entry a question.")


class FilledRewrites(ReplyModel):
    """Queries of each kind."""

    method: list[str] = Field(description="Queries of the kind method.")
    task: list[str] = Field(description="Queries of the kind task.")
    broader: list[str] = Field(description="Queries of the kind broader.")
    narrower: list[str] = Field(description="Queries of the kind narrower.")
    terms: list[str] = Field(description="Queries of the kind terms.")


class FilledGrade(ReplyModel):
    """How far a paper answers the question."""

    paper: Number = Field(description="Its number in the list.")
    reason: str = Field(description="What holds and what does not, in a few words.")
    quote: str = Field(description="Words copied from title or abstract; empty if none decide.")
    unmet: list[str] = Field(description="Keys of constraints that are broken or not shown.")
    grade: WrittenGrade = Field(description="0, 1 or 2.")


class FilledGrades(ReplyModel):
    """How far the papers answer the question."""

    papers: list[FilledGrade] = Field(description="One entry a paper.")


class FilledChoice(ReplyModel):
    """Whether a paper may stand as an answer."""

    paper: Number = Field(description="Its number in the list.")
    unmet: list[str] = Field(description="Keys of constraints that do not hold; empty if all do.")
    keep: bool = Field(description="Whether it satisfies every constraint.")


class FilledFilter(ReplyModel):
    """Which papers may stand as answers."""

    papers: list[FilledChoice] = Field(description="One entry a paper.")


@dataclass(frozen=True, slots=True)
class PairGrade:
    """What one judge said of one pair: a grade, or why it does not count."""

    grade: int | None = None  # 0, 1 or 2; None if it does not count
    quote: str = ""  # words of title or abstract, found there; or empty
    reason: str = ""  # in the judge's words
    failure: str = ""  # why the grade does not count, or empty


async def ask_classes(
    model: StepModel, topic: Topic, classes: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the classes of a topic that are among those given, best first; and the others."""
    known = {one.casefold(): one for one in classes}
    filled = await model.ask("map", _topic_messages("map", topic, classes="; ".join(classes)),
                             FilledClasses)  # fmt: skip
    named = dict.fromkeys(filter(None, map(sanitize_line, filled.classes)))
    found = (known[one.casefold()] for one in named if one.casefold() in known)
    others = (one for one in named if one.casefold() not in known)
    return tuple(dict.fromkeys(found)), tuple(others)


async def ask_questions(
    model: StepModel, topic: Topic, categories: tuple[str, ...]
) -> list[tuple[QuestQuestion, str]]:
    """Return the four questions on a topic, each with what makes it useless, or empty."""
    filled = await model.ask("questions", _topic_messages("questions", topic), FilledQuestions)
    found = []
    for intent in INTENTS:
        said: FilledQuestion = getattr(filled, intent)
        constraints, problem = _read_constraints(said.constraints)
        query = sanitize_line(said.query)
        question = QuestQuestion(
            id=f"{topic.id}-{intent}",
            query=query,
            topic=topic.path,
            intent=intent,
            constraints={} if problem else constraints,
            categories=categories,
        )
        if not query:
            problem = "the question is empty"
        found.append((question, problem or _check_years(question)))
    return found


def _read_constraints(said: Iterable[FilledConstraint]) -> tuple[dict[str, Constraint], str]:
    """Return constraints by key, several values of one key as a list; and what is wrong."""
    found: dict[str, list[str]] = {}
    for one in said:
        key = "_".join(sanitize_line(one.key).casefold().replace("-", " ").split())
        value = sanitize_line(one.value)
        if key and value and value not in found.setdefault(key, []):
            found[key].append(value)
    plain: dict[str, Constraint] = {}
    for key, values in found.items():
        if key not in ("year_from", "year_to"):
            plain[key] = values[0] if len(values) == 1 else values
            continue
        year = read_year(values[0])
        if year is None or len(values) > 1:
            return plain, f"{key} must be one year, got {', '.join(values)!r}"
        plain[key] = year
    return plain, "" if plain else "it has no constraints"


def _check_years(question: QuestQuestion) -> str:
    try:
        _ = question.scope
    except SettingsError as error:
        return str(error)
    return ""


async def ask_review(
    model: StepModel, questions: Sequence[QuestQuestion]
) -> dict[str, tuple[str, str]]:
    """Return what is wrong with each question by its id, and why; those forgotten are missing."""
    blocks = [
        f"[{number}] {one.intent}: {show.one_line(one.query)}\n    constraints: "
        f"{_write_constraints(one)}"
        for number, one in enumerate(questions, start=1)
    ]
    block = "\n".join(blocks)
    messages = messages_of(PACKAGE, "review", questions=block, marker=show.marker(block))
    filled = await model.ask("review", messages, FilledReview)
    known = dict(enumerate(questions, start=1))
    said: dict[str, tuple[str, str]] = {}
    for one in filled.questions:
        if one.question not in known:
            continue
        id = known[one.question].id
        verdict, _ = said.setdefault(id, (one.verdict, sanitize_line(one.reason)))
        if verdict != one.verdict:
            said[id] = ("not_reviewed", "the review has several verdicts")
    return said


async def ask_rewrites(model: StepModel, question: QuestQuestion, n: int) -> list[tuple[str, str]]:
    """Return at most *n* queries of each kind, as (kind, query), each query once."""
    block = (
        f"{question.intent}: {show.one_line(question.query)}\n"
        f"constraints: {_write_constraints(question)}"
    )
    messages = messages_of(PACKAGE, "rewrite", n=str(n), question=block, marker=show.marker(block))
    filled = await model.ask("rewrite", messages, FilledRewrites)
    found: dict[str, tuple[str, str]] = {}
    for kind in KINDS:
        queries = [bare for one in getattr(filled, kind) if (bare := sanitize_line(one))]
        for query in queries[:n]:
            found.setdefault(query.casefold(), (kind, query))
    return [*found.values()]


async def ask_grades(
    model: StepModel, question: QuestQuestion, papers: Sequence[Paper]
) -> dict[str, PairGrade]:
    """Return what a judge says of papers by id; each has an entry."""
    block = "\n".join(_paper_lines(papers))
    filled = await model.ask("grade", _paper_messages("grade", question, block), FilledGrades)
    return _read_grades(filled, papers)


async def ask_rulings(
    model: StepModel,
    question: QuestQuestion,
    papers: Sequence[Paper],
    said: Mapping[str, Mapping[str, PairGrade]],
) -> dict[str, PairGrade]:
    """Return how an adjudicator settles grades by id; *said* has those of judges by id and name."""
    lines = []
    for paper, line in zip(papers, _paper_lines(papers), strict=True):
        views = [
            f"    judge {chr(ord('A') + place % 26)}: grade {one.grade}, "
            f"{show.one_line(one.reason)} “{show.one_line(one.quote)}”"
            for place, one in enumerate(said[paper.id].values())
            if one.grade is not None
        ]
        lines.append("\n".join([line, *views]))
    block = "\n".join(lines)
    messages = _paper_messages("adjudicate", question, block)
    filled = await model.ask("adjudicate", messages, FilledGrades)
    return _read_grades(filled, papers)


async def ask_filter(
    model: StepModel, question: QuestQuestion, papers: Sequence[Paper]
) -> dict[str, tuple[bool, str]]:
    """Return whether each paper may stand, by id, and which constraints do not hold."""
    block = "\n".join(_paper_lines(papers))
    filled = await model.ask("filter", _paper_messages("filter", question, block), FilledFilter)
    known = dict(enumerate(papers, start=1))
    said: dict[str, tuple[bool, str]] = {}
    for one in filled.papers:
        id = known[one.paper].id if one.paper in known else ""
        if id and (id not in said or not one.keep):  # of two entries, the one in doubt
            unmet = ", ".join(filter(None, map(sanitize_line, one.unmet)))
            said[id] = (one.keep, unmet)
    return said


def _topic_messages(step: str, topic: Topic, **values: str) -> list[Any]:
    block = show.one_line(topic.path)
    if topic.about:
        block += f"\n{show.one_line(topic.about)}"
    return messages_of(PACKAGE, step, topic=block, marker=show.marker(block), **values)


def _paper_messages(step: str, question: QuestQuestion, block: str) -> list[Any]:
    query = show.one_line(question.query)
    return messages_of(
        PACKAGE,
        step,
        question=query,
        constraints=_write_constraints(question),
        papers=block,
        marker=show.marker(block, query),
    )


def _paper_lines(papers: Sequence[Paper]) -> list[str]:
    return [
        f"[{number}] {show.one_line(one.title)} ({one.year or 'no year'}, "
        f"{show.one_line(one.venue) if one.venue else 'no venue'})\n"
        f"    {show.one_line(one.abstract)[:SHOWN_ABSTRACT]}"
        for number, one in enumerate(papers, start=1)
    ]


def _write_constraints(question: QuestQuestion) -> str:
    parts = []
    for key, value in question.constraints.items():
        values = value if isinstance(value, list) else [value]
        parts += [f"{key}: {show.one_line(str(one))}" for one in values]
    return " | ".join(parts) or "all that the question says"


def _read_grades(filled: FilledGrades, papers: Sequence[Paper]) -> dict[str, PairGrade]:
    """Read a reply; a grade that is none, or is given twice, does not count."""
    said: dict[int, list[FilledGrade]] = {}
    for one in filled.papers:
        said.setdefault(one.paper, []).append(one)
    found = {}
    for number, paper in enumerate(papers, start=1):
        entries = said.get(number, [])
        if len(entries) == 1:
            found[paper.id] = _read_grade(entries[0], paper)
        else:
            how_many = f"{len(entries)} grades for one pair" if entries else "no grade was given"
            found[paper.id] = PairGrade(failure=how_many)
    return found


def _read_grade(said: FilledGrade, paper: Paper) -> PairGrade:
    reason, quote = sanitize_line(said.reason), find_evidence(paper, said.quote)
    grade = read_grade(said.grade)
    if grade is None:
        return PairGrade(reason=reason, failure=f"{said.grade!r:.40} is no grade of 0, 1 or 2")
    if grade == MAX_GRADE and not quote:
        return PairGrade(
            reason=reason, failure=f"a grade of 2 needs a quote, and {_why_none(said.quote)}"
        )
    return PairGrade(grade, quote, reason)


def read_grade(written: object) -> int | None:
    """Return a grade of 0, 1 or 2, as a number or its digit; None for anything else."""
    if isinstance(written, str) and written.strip() in ("0", "1", "2"):
        return int(written)
    if isinstance(written, bool) or not isinstance(written, int | float):
        return None
    return int(written) if written in (0, 1, 2) else None


def find_evidence(paper: Paper, quote: str) -> str:
    """Return a quote in the words of title or abstract; empty if neither has it."""
    # White space and case do not count, and one word will do if it is no stop word.
    if not content_words(quote):
        return ""
    texts = (paper.title, paper.abstract)
    exact = ((text, find_quote(text, quote, any_length=True)) for text in texts)
    folded = ((one, find_quote(_lower(one), _lower(quote), any_length=True)) for one in texts)
    for text, found in chain(exact, folded):
        if found.start is not None:
            return text[found.start : found.end]
    return ""


def _lower(text: str) -> str:
    """Return a text in lower case, each letter at its place."""
    return "".join(low if len(low := one.lower()) == 1 else one for one in text)


def _why_none(quote: str) -> str:
    if not quote.strip():
        return "none is given"
    if not content_words(quote):
        return f"{quote!r:.120} says nothing"
    return f"{quote!r:.120} is in neither title nor abstract"
