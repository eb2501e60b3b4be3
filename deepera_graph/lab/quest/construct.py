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
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from deepera_graph.errors import AnswerError
from deepera_graph.lab.construction import plain_usage
from deepera_graph.lab.quest.asking import ask_rewrites
from deepera_graph.lab.quest.judging import JudgedPairs, Tools
from deepera_graph.lab.quest.records import QuestQuestion
from deepera_graph.lab.quest.sources import (
    ALL,
    FAILED,
    Citing,
    Merged,
    SourceCall,
    Tool,
    call_source,
)
from deepera_graph.lab.settings import QuestPlan
from deepera_graph.papers.paper import Paper
from deepera_graph.retrieval.fusion import fuse
from deepera_graph.settings.budget import ado_many
from deepera_graph.stores.embeddings import unit_rows
from deepera_graph.text.words import stems

# Chosen on planted worlds so that no answer is lost there; see docs/quest.md.
FLOORS = {"local": 0.15, "words": 0.1}
_DIGITS = 3
_OFTEN = 2  # searches that found it: such a paper is judged however far it seems


class QuestCandidates:
    """The papers found for one question: in the order in which they are judged, each once."""

    def __init__(
        self, question: QuestQuestion, plan: QuestPlan, embeddings: Embeddings | None
    ) -> None:
        self.merged = Merged()
        self.left_out: dict[str, list[str]] = defaultdict(list)
        self._question, self._plan, self._embeddings = question, plan, embeddings
        self._rankings: list[list[str]] = []
        self._times: Counter[str] = Counter()
        self._near: dict[str, float] = {}

    def add(self, call: SourceCall) -> list[str]:
        """Take in what a call brought; return the ids, best first."""
        ids = list(dict.fromkeys(self.merged.add(call.source, one) for one in call.papers))
        if call.tool == "search":
            self._rankings.append(ids)
            self._times.update(ids)
        return ids

    def order(self) -> list[str]:
        """Return what searches found, best first: ranks of all searches joined, ties by id."""
        scores = fuse(self._rankings)
        return sorted(scores, key=lambda id: (-round(scores[id], 12), id))

    def paper(self, id: str) -> Paper:
        """Return a paper."""
        return self.merged.papers[id]

    def nearness(self, id: str) -> float:
        """Return how near a paper is to the question, as far as it was measured."""
        return self._near.get(id, 0.0)

    def keep_likely(self, ids: Sequence[str]) -> list[str]:
        """Return those that judges are asked about, in the same order; the rest is noted."""
        # Left out are papers without an abstract, from other years than the question asks for,
        # those that are far from the question and that no two searches found, and, if the plan says
        # so, those that no source has matched to arXiv.
        known = {id for why, ids in self.left_out.items() if why != "pruned" for id in ids}
        whole = [id for id in ids if id not in known and self._passes(id)]
        self._measure(whole)
        floor = FLOORS.get(self._plan.prefilter) if self._plan.floor is None else self._plan.floor
        kept = []
        for id in whole:
            is_far = floor is not None and self._near.get(id, 1.0) < floor
            if is_far and self._times[id] < _OFTEN:
                self.left_out["far"].append(id)
            else:
                kept.append(id)
        return kept

    def _passes(self, id: str) -> bool:
        paper, scope = self.paper(id), self._question.scope
        reason = "" if paper.abstract.strip() else "no_abstract"
        year = paper.year
        if self._plan.only_arxiv and id not in self.merged.on_arxiv:
            reason = "not_on_arxiv"
        if year and scope.year_from and year < scope.year_from:
            reason = "out_of_years"
        if year and scope.year_to and year > scope.year_to:
            reason = "out_of_years"
        if reason:
            self.left_out[reason].append(id)
        return not reason

    def _measure(self, ids: Sequence[str]) -> None:
        new = [id for id in ids if id not in self._near]
        if not new or self._plan.prefilter == "none":
            return
        if self._plan.prefilter == "words":
            values = self._question.constraints.values()
            asked = set(stems(" ".join(map(str, (self._question.query, *values)))))
            for id in new:
                has = set(stems(self.paper(id).text))
                self._near[id] = round(len(asked & has) / (len(asked) or 1), _DIGITS)
            return
        assert self._embeddings is not None  # the builder opens them
        texts = [self._question.query, *(self.paper(id).text for id in new)]
        rows = np.asarray(unit_rows(self._embeddings.embed_documents(texts)))
        for id, cosine in zip(new, rows[1:] @ rows[0], strict=True):
            self._near[id] = round(float(cosine), _DIGITS)


_Job = tuple[Any, Tool, str, int, str]  # source, tool, what is asked, how many, kind of query


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question, in plain data."""

    judgements: list[dict[str, Any]]  # lines of ``judgements.jsonl``, by paper
    papers: list[dict[str, Any]]  # the papers of the pairs
    record: dict[str, Any]  # line of ``records.jsonl``
    n_failed: int  # calls that another run may mend; the record is final if there is none


async def construct(question: QuestQuestion, tools: Tools) -> Outcome:
    """Find and judge the papers that answer a question."""
    # Raises `AnswerError` if the question cannot be rewritten; `CallError` if the writer cannot be
    # asked; `BackendError` if so many judges cannot be asked that no pair has a quorum;
    # `BudgetError` if the budget is spent.
    work = _Work(question, tools)
    queries = await ask_rewrites(tools.writer, question, tools.plan.rewrites)
    if not queries:
        raise AnswerError("no query was written")
    await work.search([("question", question.query), *queries])
    await work.judge(await work.keep_likely(work.candidates.order()))
    seeds = work.judging.find_strict()
    for _ in range(tools.plan.max_hops):
        if work.judging.stop or not seeds:
            break
        seeds = await work.expand(seeds)
    await work.judging.filter_answers()
    return work.outcome()


async def judge_given(
    question: QuestQuestion, papers: Sequence[Paper], missing: Sequence[str], tools: Tools
) -> Outcome:
    """Judge papers that were given for a question; those that no source has are noted."""
    work = _Work(question, tools)
    ids = work.candidates.add(SourceCall("given", "search", "", "ok", tuple(papers)))
    if missing:
        work.candidates.left_out["unknown"] = [*missing]
    await work.judging.judge_all([work.candidates.paper(id) for id in ids])
    await work.judging.filter_answers()
    return work.outcome()


class _Work:
    """What is known of a question so far."""

    def __init__(self, question: QuestQuestion, tools: Tools) -> None:
        self.candidates = QuestCandidates(question, tools.plan, tools.embeddings)
        self.judging = JudgedPairs(question, tools)
        self._question, self._tools, self._plan = question, tools, tools.plan
        self._calls: list[dict[str, Any]] = []
        self._hops: list[dict[str, Any]] = []

    async def judge(self, ids: Sequence[str]) -> None:
        """Judge papers that were not judged before, until a stop rule holds."""
        await self.judging.judge([self.candidates.paper(id) for id in ids])

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

        async def call(job: _Job) -> SourceCall:
            source, tool, asked, k, _ = job
            async with self._tools.turns[source.name]:
                return await asyncio.to_thread(call_source, source, tool, asked, k, scope)

        return await ado_many(call, jobs, max(1, len(jobs)), paid=Exception)

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
            self.judging.failed_calls[call.source] += 1
        return ids

    async def keep_likely(self, ids: Sequence[str]) -> list[str]:
        """Return those that judges are asked about; in a thread, as embeddings take a while."""
        return await asyncio.to_thread(self.candidates.keep_likely, ids)

    async def expand(self, seeds: Sequence[str]) -> list[str]:
        """Follow the citations of seeds, judge what they lead to, and return the next seeds."""
        before = set(self.judging.pairs)
        branches = await self._read_branches(seeds)
        new = [id for id in dict.fromkeys(id for ids in branches.values() for id in ids)
               if not self.judging.was_asked(id)]  # fmt: skip
        kept = set(await self.keep_likely(new))
        rest = {
            seed: sorted(kept & set(ids), key=lambda id: (-self.candidates.nearness(id), id))
            for seed, ids in branches.items()
        }
        pruned = await self._judge_branches(branches, rest)
        found = [id for id in self.judging.pairs if id not in before]
        self._hops.append(
            {
                "seeds": len(seeds),
                "neighbours": len(new),
                "judged": len(found),
                "pruned": len(pruned),
                "answers": sum(self.judging.pairs[id].grade >= self._plan.tau for id in found),
            }
        )
        return [id for id in found if self.judging.pairs[id].is_certain_answer]

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
        while live and self.judging.stop is None:
            batch: dict[str, None] = {}
            for ids in live.values():
                fresh = [id for id in ids if id not in self.judging.pairs and id not in batch]
                batch |= dict.fromkeys(fresh[: self._plan.wave])
            await self.judge([*batch])
            live = {
                seed: left
                for seed, ids in live.items()
                if (left := [id for id in ids if not self.judging.was_asked(id)])
                and not self._is_noisy(branches[seed])
            }
        everything = dict.fromkeys(id for ids in rest.values() for id in ids)
        pruned = (
            [] if self.judging.stop else [id for id in everything if not self.judging.was_asked(id)]
        )
        self.candidates.left_out["pruned"] += pruned
        return pruned

    def _is_noisy(self, branch: Sequence[str]) -> bool:
        grades = [
            self.judging.pairs[id].grade for id in dict.fromkeys(branch) if id in self.judging.pairs
        ]
        if len(grades) < self._plan.wave:
            return False
        return sum(grade > 0 for grade in grades) / len(grades) < self._plan.least_yield

    def outcome(self) -> Outcome:
        """Return all that was found."""
        pairs = [self.judging.pairs[id] for id in sorted(self.judging.pairs)]
        record = {
            "id": self._question.id,
            "intent": self._question.intent,
            **self.judging.describe(),
            "found": len(self.candidates.merged.papers),
            "left_out": {
                why: left
                for why, ids in sorted(self.candidates.left_out.items())
                if (left := [id for id in dict.fromkeys(ids) if not self.judging.was_asked(id)])
            },
            "hops": self._hops,
            "sources": _count_calls(self._calls),
            "calls": self._calls,
            "usage": {step: plain_usage(used) for step, used in sorted(self._tools.usage.items())},
        }
        return Outcome(
            judgements=[one.to_dict(self._question.id) for one in pairs],
            papers=[one.paper.to_dict() for one in pairs],
            record=record,
            n_failed=self.judging.failed_calls.total(),
        )


def _count_calls(calls: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return how often each source was asked, by how it went."""
    names = dict.fromkeys(one["source"] for one in calls)
    return {
        name: dict(sorted(Counter(one["status"] for one in calls if one["source"] == name).items()))
        for name in names
    }
