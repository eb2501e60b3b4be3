"""One question: searches, judging, two hops along citations, the last filter. Wiring on top.

    rewrite -> search every source -> leave out what is far -> judge
            -> expand the strict matches -> judge, branch by branch        (hop 1)
            -> expand the certain ones among those -> judge                (hop 2)
            -> filter the answers side by side

A question ends by one of three rules, which its record names: no eligible seed is left
(``no_seed``), enough answers (``max_answers``), enough judged papers (``max_scored``).

Source:
    ScholarQuest, section 3: rewriting, retrieval, citation expansion with pruning, judging.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.embeddings import Embeddings

from deepera_graph.bench.build.plan import BuilderModel
from deepera_graph.bench.quest.asking import (
    PairGrade,
    ask_filter,
    ask_grades,
    ask_rewrites,
    ask_rulings,
)
from deepera_graph.bench.quest.candidates import Candidates
from deepera_graph.bench.quest.grading import Pair, count_grades
from deepera_graph.bench.quest.outputs import plain_usage
from deepera_graph.bench.quest.plan import QuestPlan, QuestQuestion, StopRule
from deepera_graph.bench.quest.sources import ALL, FAILED, Citing, SourceCall, Tool, call_source
from deepera_graph.errors import AnswerError, BackendError, CallError
from deepera_graph.papers.paper import Paper
from deepera_graph.usage import Usage

T = TypeVar("T")
_Job = tuple[Any, Tool, str, int, str]  # source, tool, what is asked, how many, kind of query
_CHUNK = 100  # papers judged between two looks at the stop rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a question is worked on with; its models count their calls apart.

    Attributes:
        plan: The settings.
        sources: What is searched, by name.
        writer: Rewrites the question and filters the answers.
        judges: Grade pairs, by name.
        adjudicator: Settles what they disagree on.
        embeddings: Of the prefilter, or None.
        on_judged: Told how many pairs were judged.
    """

    plan: QuestPlan
    sources: Mapping[str, Any]
    writer: BuilderModel
    judges: Mapping[str, BuilderModel]
    adjudicator: BuilderModel
    embeddings: Embeddings | None
    on_judged: Callable[[int], None] = lambda n: None

    @property
    def quorum(self) -> int:
        """Judges that must have graded a pair."""
        return self.plan.quorum_of(len(self.judges))

    @property
    def usage(self) -> dict[str, Usage]:
        """What answers took when they were new, by step and, of grades, by judge."""
        found = {**self.writer.usage}
        for step, used in self.adjudicator.usage.items():
            found[step] = found.get(step, Usage()) + used
        for name, judge in self.judges.items():
            found |= {f"{step} {name}": used for step, used in judge.usage.items()}
        return found


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question, in plain data.

    Attributes:
        judgements: Lines of ``judgements.jsonl``, by paper.
        papers: The papers of the pairs.
        record: Line of ``records.jsonl``.
        n_failed: Calls that another run may mend; the record is final if there is none.
    """

    judgements: list[dict[str, Any]]
    papers: list[dict[str, Any]]
    record: dict[str, Any]
    n_failed: int


async def construct(question: QuestQuestion, tools: Tools) -> Outcome:
    """Find and judge the papers that answer a question.

    Raises:
        AnswerError: The question cannot be rewritten.
        CallError: The writer cannot be asked.
        BackendError: So many judges cannot be asked that no pair has a quorum.
        BudgetError: The budget is spent.
    """
    work = _Work(question, tools)
    queries = await ask_rewrites(tools.writer, question, tools.plan.rewrites)
    await work.search([("question", question.query), *queries])
    await work.judge(work.candidates.keep_likely(work.candidates.order()))
    seeds = work.find_seeds()
    for _ in range(tools.plan.max_hops):
        if work.stop or not seeds:
            break
        seeds = await work.expand(seeds)
    await work.filter_answers()
    return work.outcome()


async def judge_given(
    question: QuestQuestion, papers: Sequence[Paper], missing: Sequence[str], tools: Tools
) -> Outcome:
    """Judge papers that were given for a question; those that no source has are noted.

    Raises:
        CallError, BackendError, BudgetError: As `construct`.
    """
    work = _Work(question, tools)
    ids = work.candidates.add(SourceCall("given", "search", "", "ok", tuple(papers)))
    if missing:
        work.candidates.left_out["unknown"] = [*missing]
    await work.judge(ids)
    await work.filter_answers()
    return work.outcome()


class _Work:
    """What is known of a question so far."""

    def __init__(self, question: QuestQuestion, tools: Tools) -> None:
        self.candidates = Candidates(question, tools.plan, tools.embeddings)
        self.stop: StopRule | None = None
        self._question, self._tools, self._plan = question, tools, tools.plan
        self._pairs: dict[str, Pair] = {}
        self._unjudged: dict[str, Pair] = {}
        self._calls: list[dict[str, Any]] = []
        self._hops: list[dict[str, Any]] = []
        self._failed_calls: Counter[str] = Counter()
        self._unfiltered: list[str] = []

    # Searching

    async def search(self, queries: Sequence[tuple[str, str]]) -> None:
        """Search every source with every query."""
        jobs: list[_Job] = [
            (source, "search", query, self._plan.per_search, kind)
            for kind, query in queries
            for source in self._tools.sources.values()
        ]
        for (*_, kind), call in zip(jobs, await self._call(jobs), strict=True):
            self._note(call, kind=kind)

    async def _call(self, jobs: Sequence[_Job]) -> list[SourceCall]:
        scope = self._question.scope
        return await asyncio.gather(
            *(
                asyncio.to_thread(call_source, source, tool, asked, k, scope)
                for source, tool, asked, k, _ in jobs
            )
        )

    def _note(self, call: SourceCall, **more: str) -> list[str]:
        """Take in what a call brought, and write down that it was made."""
        n_before = len(self.candidates.merged.papers)
        ids = self.candidates.add(call)
        letter = call.tool[0].upper()
        number = 1 + sum(one["tool"] == call.tool for one in self._calls)
        plain = {
            "id": f"{letter}{number}",
            "tool": call.tool,
            "source": call.source,
            "asked": call.asked,
            **more,
            "status": call.status,
            "found": len(ids),
            "new": len(self.candidates.merged.papers) - n_before,
        }
        self._calls.append({**plain, "reason": call.reason} if call.reason else plain)
        if call.status in FAILED:
            self._failed_calls[call.source] += 1
        return ids

    # Along citations

    def find_seeds(self) -> list[str]:
        """Return strict matches, from which citations are followed first."""
        return [id for id, one in self._pairs.items() if one.grade >= self._plan.tau]

    async def expand(self, seeds: Sequence[str]) -> list[str]:
        """Follow the citations of seeds, judge what they lead to, and return the next seeds."""
        before = set(self._pairs)
        branches = await self._read_branches(seeds)
        new = [id for id in dict.fromkeys(id for ids in branches.values() for id in ids)
               if id not in self._pairs and id not in self._unjudged]  # fmt: skip
        kept = set(self.candidates.keep_likely(new))
        rest = {
            seed: sorted(kept & set(ids), key=lambda id: (-self.candidates.nearness(id), id))
            for seed, ids in branches.items()
        }
        pruned = await self._judge_branches(branches, rest)
        found = [id for id in self._pairs if id not in before]
        self._hops.append(
            {
                "seeds": len(seeds),
                "neighbours": len(new),
                "judged": len(found),
                "pruned": len(pruned),
                "answers": sum(self._pairs[id].grade >= self._plan.tau for id in found),
            }
        )
        return [id for id in found if self._pairs[id].is_certain_answer]

    async def _read_branches(self, seeds: Sequence[str]) -> dict[str, list[str]]:
        """Return what the seeds cite and what cites them, by seed."""
        jobs: list[tuple[str, _Job]] = []
        for seed in seeds:
            for name, source in self._tools.sources.items():
                if isinstance(source, Citing):
                    own = self.candidates.merged.own_id(name, seed)
                    jobs.append((seed, (source, "references", own, ALL, "")))
                    jobs.append((seed, (source, "citations", own, self._plan.max_citing, "")))
        wanted = [one for one in jobs if one[1][3] > 0]
        branches: dict[str, list[str]] = {seed: [] for seed in seeds}
        calls = await self._call([job for _, job in wanted])
        for (seed, _), call in zip(wanted, calls, strict=True):
            branches[seed] += self._note(call)
        return branches

    async def _judge_branches(
        self, branches: Mapping[str, list[str]], rest: Mapping[str, list[str]]
    ) -> list[str]:
        """Judge waves of all branches; leave the rest of noisy ones, and return what was left."""
        live = {seed: [*ids] for seed, ids in rest.items() if ids}
        while live and self.stop is None:
            batch: dict[str, None] = {}
            for ids in live.values():
                fresh = [id for id in ids if id not in self._pairs and id not in batch]
                batch |= dict.fromkeys(fresh[: self._plan.wave])
            await self.judge([*batch])
            live = {
                seed: left
                for seed, ids in live.items()
                if (left := [id for id in ids if not self._was_asked(id)])
                and not self._is_noisy(branches[seed])
            }
        everything = dict.fromkeys(id for ids in rest.values() for id in ids)
        pruned = [] if self.stop else [id for id in everything if not self._was_asked(id)]
        if pruned:
            self.candidates.left_out["pruned"] += pruned
        return pruned

    def _was_asked(self, id: str) -> bool:
        return id in self._pairs or id in self._unjudged

    def _is_noisy(self, branch: Sequence[str]) -> bool:
        grades = [self._pairs[id].grade for id in dict.fromkeys(branch) if id in self._pairs]
        if len(grades) < self._plan.wave:
            return False
        return sum(grade > 0 for grade in grades) / len(grades) < self._plan.least_yield

    # Judging

    async def judge(self, ids: Sequence[str]) -> None:
        """Judge papers that were not judged before, until a stop rule holds."""
        fresh = [id for id in dict.fromkeys(ids) if not self._was_asked(id)]
        for chunk in cut(fresh, _CHUNK):
            if self.stop:
                return
            room = self._plan.max_scored - len(self._pairs) - len(self._unjudged)
            await self._judge_chunk(chunk[:room])
            self._check_stop()

    def _check_stop(self) -> None:
        n_answers = sum(one.grade >= self._plan.tau for one in self._pairs.values())
        if n_answers >= self._plan.max_answers:
            self.stop = "max_answers"
        elif len(self._pairs) + len(self._unjudged) >= self._plan.max_scored:
            self.stop = "max_scored"

    async def _judge_chunk(self, ids: Sequence[str]) -> None:
        papers = [self.candidates.paper(id) for id in ids]
        groups = [*cut(papers, self._plan.group)]
        said = await _together(
            [
                self._grade(name, judge, group)
                for name, judge in self._tools.judges.items()
                for group in groups
            ]
        )
        by_judge: dict[str, dict[str, PairGrade]] = {}
        names = [name for name in self._tools.judges for _ in groups]
        for name, grades in zip(names, said, strict=True):
            by_judge.setdefault(name, {}).update(grades)
        pairs = {
            one.id: Pair(one, {name: by_judge[name][one.id] for name in by_judge}) for one in papers
        }
        quorum = self._tools.quorum
        judged = {id: one for id, one in pairs.items() if one.n_grades >= quorum}
        self._check_quorum(pairs, judged)
        await self._settle([one for one in judged.values() if one.needs_ruling(self._plan.tau)])
        self._pairs |= judged
        self._unjudged |= {id: one for id, one in pairs.items() if id not in judged}
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

    async def _grade(
        self, name: str, judge: BuilderModel, group: Sequence[Paper]
    ) -> dict[str, PairGrade]:
        """Ask a judge; if it cannot be asked, or says nothing usable, no pair of it has a grade."""
        try:
            return await ask_grades(judge, self._question, group)
        except AnswerError as error:
            cause = f"unusable reply: {error}"
        except (CallError, BackendError) as error:
            self._failed_calls[name] += 1
            cause = f"{_DOWN}{error}"
        return {one.id: PairGrade(failure=cause[:_LONGEST_CAUSE]) for one in group}

    async def _settle(self, pairs: Sequence[Pair]) -> None:
        groups = [*cut(pairs, self._plan.group)]
        for group, rulings in zip(
            groups, await _together([self._ask_rulings(one) for one in groups]), strict=True
        ):
            for pair in group:
                pair.ruling = rulings[pair.paper.id]

    async def _ask_rulings(self, group: Sequence[Pair]) -> dict[str, PairGrade]:
        said = {one.paper.id: one.said for one in group}
        papers = [one.paper for one in group]
        try:
            return await ask_rulings(self._tools.adjudicator, self._question, papers, said)
        except AnswerError as error:
            cause = f"unusable reply: {error}"
        except (CallError, BackendError) as error:
            self._failed_calls["adjudicator"] += 1
            cause = f"{_DOWN}{error}"
        return {one.id: PairGrade(failure=cause[:_LONGEST_CAUSE]) for one in papers}

    # The end

    async def filter_answers(self) -> None:
        """Have the writer see all answers side by side, and take out what is in doubt."""
        answers = sorted(self.find_seeds())
        groups = [*cut([self._pairs[id] for id in answers], self._plan.group)]
        said = await _together([self._ask_filter(one) for one in groups])
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
            self._failed_calls["filter"] += 1
            return {}

    def outcome(self) -> Outcome:
        """Return all that was found."""
        pairs = [self._pairs[id] for id in sorted(self._pairs)]
        return Outcome(
            judgements=[one.to_dict(self._question.id) for one in pairs],
            papers=[one.paper.to_dict() for one in pairs],
            record=self._record(pairs),
            n_failed=self._failed_calls.total(),
        )

    def _record(self, pairs: Sequence[Pair]) -> dict[str, Any]:
        tools = self._tools
        failures = Counter(
            (name, _kind_of(cause))
            for one in (*pairs, *self._unjudged.values())
            for name, cause in one.failures().items()
        )
        return {
            "id": self._question.id,
            "intent": self._question.intent,
            "stop": self.stop or "no_seed",
            "answers": sum(one.grade >= self._plan.tau for one in pairs),
            "found": len(self.candidates.merged.papers),
            "scored": len(pairs) + len(self._unjudged),
            "grades": count_grades(pairs),
            "adjudicated": sum(one.is_settled for one in pairs),
            "unsettled": sum(one.ruling is not None and not one.is_settled for one in pairs),
            "filtered": sum(bool(one.dropped) for one in pairs),
            "unfiltered": self._unfiltered,
            "judges": {"asked": [*tools.judges], "quorum": tools.quorum},
            "failed_grades": {
                name: {kind: n for (who, kind), n in sorted(failures.items()) if who == name}
                for name in sorted({who for who, _ in failures})
            },
            "failed_calls": dict(sorted(self._failed_calls.items())),
            "unjudged": {id: one.failures() for id, one in sorted(self._unjudged.items())},
            "left_out": {why: ids for why, ids in sorted(self.candidates.left_out.items()) if ids},
            "hops": self._hops,
            "sources": _count_calls(self._calls),
            "calls": self._calls,
            "usage": {step: plain_usage(used) for step, used in sorted(tools.usage.items())},
        }


_DOWN = "cannot be asked: "
_LONGEST_CAUSE = 300
_KINDS = {
    _DOWN: "down",
    "unusable reply": "unusable_reply",
    "a grade of 2 needs a quote": "no_evidence",
    "no grade was given": "forgotten",
}


def _kind_of(cause: str) -> str:
    """Return the short name of why a grade does not count."""
    found = next((name for start, name in _KINDS.items() if cause.startswith(start)), "")
    return found or ("several_grades" if "grades for one pair" in cause else "no_grade")


def _count_calls(calls: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return how often each source was asked, by how it went."""
    names = dict.fromkeys(one["source"] for one in calls)
    return {
        name: dict(sorted(Counter(one["status"] for one in calls if one["source"] == name).items()))
        for name in names
    }


def cut(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield items in order, so many at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


async def _together(work: Sequence[Awaitable[T]]) -> list[T]:
    """Wait for all, also where one fails: what is in flight is paid for; then raise the first."""
    done = await asyncio.gather(*work, return_exceptions=True)
    for one in done:
        if isinstance(one, BaseException):
            raise one
    return done  # type: ignore[return-value]  # no exception is left
