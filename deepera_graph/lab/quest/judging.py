"""The pairs of one question: graded by all judges, settled where they disagree, and filtered.

The grades of all judges settle a pair, by a quorum; where there is none, the adjudicator does.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median_low
from typing import Any, TypeVar

from langchain_core.embeddings import Embeddings

from deepera_graph.errors import AnswerError, BackendError, CallError, SettingsError
from deepera_graph.lab.asking import StepModel
from deepera_graph.lab.quest.asking import PairGrade, ask_filter, ask_grades, ask_rulings
from deepera_graph.lab.quest.records import MAX_GRADE, QuestQuestion, StopRule
from deepera_graph.lab.settings import QuestPlan
from deepera_graph.papers.paper import Paper
from deepera_graph.schema import Backend
from deepera_graph.settings.budget import ado_many
from deepera_graph.usage import Usage

BORDERLINE = 0.5  # of the mean from the threshold
WIDE = 2  # spread of grades


# Source: ScholarQuest, section 3: scores are aggregated to Rel(q, p), pairs with Rel >= tau = 2 are
# kept, those at the border or with high disagreement are adjudicated. What aggregates is not said:
# it is the median here, the lower one of two, so that no single judge makes an answer.
@dataclass(slots=True)
class Pair:
    """A question and a paper, and what was said of them."""

    paper: Paper  # the paper
    said: Mapping[str, PairGrade]  # by name of the judge
    ruling: PairGrade | None = None  # of the adjudicator, if it was asked
    dropped: str = ""  # constraints for which the last filter took it out, or empty
    _grades: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._grades = [one.grade for one in self.said.values() if one.grade is not None]

    @property
    def n_grades(self) -> int:
        """How many judges have graded it."""
        return len(self._grades)

    @property
    def is_unanimous(self) -> bool:
        """Whether all that graded it agree."""
        return len(set(self._grades)) == 1

    @property
    def is_settled(self) -> bool:
        """Whether an adjudicator has settled it."""
        return self.ruling is not None and self.ruling.grade is not None

    @property
    def agreed(self) -> int:
        """The grade before the last filter; of a pair that has one."""
        if self.ruling is not None and self.ruling.grade is not None:
            return self.ruling.grade
        return median_low(self._grades)

    @property
    def grade(self) -> int:
        """The grade, 0 to 2; what the last filter took out is a partial match."""
        return min(self.agreed, 1) if self.dropped else self.agreed

    @property
    def is_certain_answer(self) -> bool:
        """Whether all judges took it for a strict match."""
        return self.is_unanimous and self._grades[0] == MAX_GRADE

    def needs_ruling(self, tau: int) -> bool:
        """Whether its grades have to be settled."""
        return needs_ruling(self._grades, tau)

    def to_dict(self, query_id: str) -> dict[str, Any]:
        """Return it as a line of ``judgements.jsonl`` has it."""
        heard = [*self.said.values(), *([self.ruling] if self.ruling else [])]
        quotes = [one.quote for one in reversed(heard) if one.quote and one.grade is not None]
        plain: dict[str, Any] = {
            "query_id": query_id,
            "paper_id": self.paper.id,
            "grade": self.grade,
            "grades": {name: one.grade for name, one in self.said.items() if one.grade is not None},
            "evidence": list(dict.fromkeys(quotes)),
            "adjudicated": self.is_settled,
            "reasons": {name: one.reason for name, one in self.said.items() if one.reason},
        }
        if failures := self.failures():
            plain["failures"] = failures
        if self.ruling is not None:
            plain["ruling"] = self.ruling.reason or self.ruling.failure
        if self.dropped:
            plain["filtered"] = self.dropped
        return plain

    def failures(self) -> dict[str, str]:
        """Return why grades of judges do not count."""
        return {name: one.failure for name, one in self.said.items() if one.failure}


def needs_ruling(grades: Sequence[int], tau: int) -> bool:
    """Tell whether grades disagree by 2, or disagree with a mean within .5 of the threshold."""
    if len(set(grades)) < 2:
        return False
    return max(grades) - min(grades) >= WIDE or abs(fmean(grades) - tau) <= BORDERLINE


def count_grades(pairs: Sequence[Pair]) -> dict[str, int]:
    """Return how many pairs have each grade."""
    found = Counter(str(one.grade) for one in pairs)
    return {str(grade): found[str(grade)] for grade in range(MAX_GRADE + 1)}


JobT = TypeVar("JobT")
T = TypeVar("T")
_CHUNK = 100  # papers judged between two looks at the stop rules
_DOWN = "cannot be asked: "
_LONGEST_CAUSE = 300
_KINDS = {
    _DOWN: "down",
    "unusable reply": "unusable_reply",
    "a grade of 2 needs a quote": "no_evidence",
    "no grade was given": "forgotten",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a question is worked on with; its models count their calls apart."""

    plan: QuestPlan  # the settings
    sources: Mapping[str, Any]  # what is searched, by name
    turns: Mapping[str, asyncio.Semaphore]  # how often each is asked at once, over all questions
    writer: StepModel  # rewrites the question and filters the answers
    judges: Mapping[str, StepModel]  # grade pairs, by name
    adjudicator: StepModel  # settles what they disagree on
    embeddings: Embeddings | None  # of the prefilter, or None
    on_judged: Callable[[int], None] = lambda n: None  # told how many pairs were judged

    @property
    def quorum(self) -> int:
        """Judges that must have graded a pair."""
        return self.plan.quorum_of(len(self.judges))

    @property
    def usage(self) -> dict[str, Usage]:
        """What answers took when they were new, by step and, of grades, by judge."""
        found = {**self.writer.used}
        for step, used in self.adjudicator.used.items():
            found[step] = found.get(step, Usage()) + used
        for name, judge in self.judges.items():
            found |= {f"{step} {name}": used for step, used in judge.used.items()}
        return found


def name_judges(backends: Sequence[Backend]) -> dict[str, Backend]:
    """Return judges by the name of their model."""
    found: dict[str, Backend] = {}
    for one in backends:
        name = str(one.about.get("model", one.name))
        if name in found:
            raise SettingsError(
                f"judges must be different models, got {name!r} twice: its second opinion is its "
                "first"
            )
        found[name] = one
    return found


class JudgedPairs:
    """The pairs of a question that were judged, and why it ended."""

    def __init__(self, question: QuestQuestion, tools: Tools) -> None:
        self.pairs: dict[str, Pair] = {}  # with a quorum, by paper, in the order they were judged
        self.unjudged: dict[str, Pair] = {}  # those without
        self.stop: StopRule | None = None  # by which no further pair is judged
        self.failed_calls: Counter[str] = Counter()  # that another run may mend, by who was asked
        self._unfiltered: list[str] = []
        self._question, self._tools, self._plan = question, tools, tools.plan

    def was_asked(self, id: str) -> bool:
        """Tell whether judges were asked about a paper."""
        return id in self.pairs or id in self.unjudged

    def find_answers(self) -> list[str]:
        """Return the papers that are answers so far."""
        return [id for id, one in self.pairs.items() if one.grade >= self._plan.tau]

    def find_strict(self) -> list[str]:
        """Return the papers that are strict matches so far."""
        return [id for id, one in self.pairs.items() if one.grade == MAX_GRADE]

    async def judge_all(self, papers: Sequence[Paper]) -> None:
        """Judge papers that were given, however many; raises what `judge` raises."""
        for chunk in cut(papers, _CHUNK):
            await self._judge_chunk(chunk)
        self.stop = "all_judged"

    async def judge(self, papers: Sequence[Paper]) -> None:
        """Judge papers that were not judged before, until a stop rule holds."""
        # Raises `BackendError` if so many judges cannot be asked that no pair has a quorum;
        # `BudgetError` if the budget is spent.
        fresh = [one for one in dict.fromkeys(papers) if not self.was_asked(one.id)]
        for chunk in cut(fresh, _CHUNK):
            if self.stop:
                return
            room = self._plan.max_scored - len(self.pairs) - len(self.unjudged)
            await self._judge_chunk(chunk[:room])
            if len(self.find_answers()) >= self._plan.max_answers:
                self.stop = "max_answers"
            elif len(self.pairs) + len(self.unjudged) >= self._plan.max_scored:
                self.stop = "max_scored"

    async def _judge_chunk(self, papers: Sequence[Paper]) -> None:
        groups = [*cut(papers, self._plan.group)]
        jobs = [(name, group) for name in self._tools.judges for group in groups]
        by_judge: dict[str, dict[str, PairGrade]] = {}
        for (name, _), grades in zip(jobs, await _together(self._grade, jobs), strict=True):
            by_judge.setdefault(name, {}).update(grades)
        pairs = {
            one.id: Pair(one, {name: by_judge[name][one.id] for name in by_judge}) for one in papers
        }
        quorum = self._tools.quorum
        judged = {id: one for id, one in pairs.items() if one.n_grades >= quorum}
        self._check_quorum(pairs, judged)
        await self._settle([one for one in judged.values() if one.needs_ruling(self._plan.tau)])
        self.pairs |= judged
        self.unjudged |= {id: one for id, one in pairs.items() if id not in judged}
        self._tools.on_judged(len(pairs))

    def _check_quorum(self, pairs: Mapping[str, Pair], judged: Mapping[str, Pair]) -> None:
        """Raise `BackendError` where judges could not be asked and no pair has a grade."""
        down = {name: cause for one in pairs.values() for name, cause in one.failures().items()
                if cause.startswith(_DOWN)}  # fmt: skip
        n_judges = len(self._tools.judges)
        if down and not judged and n_judges - len(down) < self._tools.quorum:
            name, cause = next(iter(down.items()))
            raise BackendError(
                f"{len(down)} of {n_judges} judges cannot be asked, and a grade needs "
                f"{self._tools.quorum}; {name}: {cause.removeprefix(_DOWN)}"
            )

    async def _grade(self, job: tuple[str, Sequence[Paper]]) -> dict[str, PairGrade]:
        name, group = job
        asked = ask_grades(self._tools.judges[name], self._question, group)
        return await self._or_failures(asked, name, group)

    async def _settle(self, pairs: Sequence[Pair]) -> None:
        groups = [*cut(pairs, self._plan.group)]
        for group, rulings in zip(groups, await _together(self._ask_rulings, groups), strict=True):
            for pair in group:
                pair.ruling = rulings[pair.paper.id]

    async def _ask_rulings(self, group: Sequence[Pair]) -> dict[str, PairGrade]:
        said = {one.paper.id: one.said for one in group}
        papers = [one.paper for one in group]
        asked = ask_rulings(self._tools.adjudicator, self._question, papers, said)
        return await self._or_failures(asked, "adjudicator", papers)

    async def _or_failures(
        self, asked: Awaitable[dict[str, PairGrade]], who: str, papers: Sequence[Paper]
    ) -> dict[str, PairGrade]:
        """Wait for grades; of who cannot be asked, or says nothing usable, no pair has one."""
        try:
            return await asked
        except AnswerError as error:
            cause = f"unusable reply: {error}"
        except (CallError, BackendError) as error:
            self.failed_calls[who] += 1
            cause = f"{_DOWN}{error}"
        return {one.id: PairGrade(failure=cause[:_LONGEST_CAUSE]) for one in papers}

    async def filter_answers(self) -> None:
        """Have the writer see the strict matches side by side, and mark down what is in doubt."""
        groups = [*cut([self.pairs[id] for id in sorted(self.find_strict())], self._plan.group)]
        said = await _together(self._ask_filter, groups)
        for group, choices in zip(groups, said, strict=True):
            for pair in group:
                keep, unmet = choices.get(pair.paper.id, (True, ""))
                if pair.paper.id not in choices:
                    self._unfiltered.append(pair.paper.id)
                if not keep:
                    pair.dropped = unmet or "in doubt"

    async def _ask_filter(self, group: Sequence[Pair]) -> dict[str, tuple[bool, str]]:
        try:
            return await ask_filter(
                self._tools.writer, self._question, [one.paper for one in group]
            )
        except AnswerError:
            return {}
        except (CallError, BackendError):
            self.failed_calls["filter"] += 1
            return {}

    def describe(self) -> dict[str, Any]:
        """Return what a record says of them."""
        pairs = [*self.pairs.values()]
        failures = Counter(
            (name, _kind_of(cause))
            for one in (*pairs, *self.unjudged.values())
            for name, cause in one.failures().items()
        )
        return {
            "stop": self.stop or "no_seed",
            "answers": len(self.find_answers()),
            "scored": len(pairs) + len(self.unjudged),
            "grades": count_grades(pairs),
            "adjudicated": sum(one.is_settled for one in pairs),
            "unsettled": sum(one.ruling is not None and not one.is_settled for one in pairs),
            "filtered": sum(bool(one.dropped) for one in pairs),
            "unfiltered": self._unfiltered,
            "judges": {"asked": [*self._tools.judges], "quorum": self._tools.quorum},
            "failed_grades": {
                name: {kind: n for (who, kind), n in sorted(failures.items()) if who == name}
                for name in sorted({who for who, _ in failures})
            },
            "failed_calls": dict(sorted(self.failed_calls.items())),
            "unjudged": {id: one.failures() for id, one in sorted(self.unjudged.items())},
        }


def _kind_of(cause: str) -> str:
    """Return the short name of why a grade does not count."""
    found = next((name for start, name in _KINDS.items() if cause.startswith(start)), "")
    return found or ("several_grades" if "grades for one pair" in cause else "no_grade")


def cut(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield items in order, so many at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


async def _together(do: Callable[[JobT], Awaitable[T]], jobs: Sequence[JobT]) -> list[T]:
    """Do all at once; where one fails, the others end first, as they are paid for."""
    return await ado_many(do, jobs, max(1, len(jobs)), paid=Exception)
