"""The builder: topics in, a benchmark of searches for papers out."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.embeddings import Embeddings

from deepera_graph.agents.journal import Journal
from deepera_graph.calibration.instance import DatasetError
from deepera_graph.chat import sending
from deepera_graph.errors import AnswerError, CallError, SettingsError
from deepera_graph.judges.embeddings import find_embeddings
from deepera_graph.lab.asking import Model, describe_model, open_model
from deepera_graph.lab.construction import (
    Built,
    CachedEmbeddings,
    Construction,
    ReasonLog,
    begin_manifest,
    hash_prompts,
    plain_usage,
)
from deepera_graph.lab.quest.construct import Outcome, construct, judge_given
from deepera_graph.lab.quest.judging import Tools, name_judges
from deepera_graph.lab.quest.questions import Written, hash_candidates, write_questions
from deepera_graph.lab.quest.records import (
    FILES,
    PACKAGE,
    REJECTED,
    QuestQuestion,
    Rejection,
    Topic,
    check_ids,
    describe_outcome,
    explain_empty,
    reject_thin,
    write_rows,
)
from deepera_graph.lab.quest.sources import describe_source, look_up, name_sources, take_turns
from deepera_graph.lab.quest.topics import check_topics
from deepera_graph.lab.settings import QuestPlan
from deepera_graph.papers.library.vectors import name_of
from deepera_graph.schema import Backend
from deepera_graph.settings.budget import ado_many
from deepera_graph.settings.ranges import check_at_least

JOURNAL = "questions.journal"
QUESTIONS_AT_ONCE = 4  # ScholarQuest, section 3


def build_quest(
    topics: Sequence[Topic], out: Path, *, topics_sha256: str = "", **how: Any
) -> Built:
    """Build a benchmark in a folder: questions of topics, judged papers, records, a manifest.

    Replies and finished questions are kept in the folder ``work`` within as they come. A run that
    was cut off goes on where it was; one that is run again asks for nothing and gives the same
    bytes.

    Args:
        topics: What questions are made of.
        out: The folder; made if missing.
        topics_sha256: Of the file of topics, for the manifest.
        how: What `Quest` is made of: `sources`, `model`, `judges`, `plan` and others.

    Raises:
        InputError: There are no topics, one is empty or too long, or two have one id.
        SettingsError: A setting is out of range, two judges are the same model, or results would
            be lost.
        DatasetError: No question was left; the message says why.
        BudgetError: The budget is spent; another run goes on.
        BackendError: A model can be asked nothing.
        StoreError: A base or the folder cannot be used.
    """
    check_topics(topics)
    job = Quest(out, **how)
    return job.run(lambda: job.write(topics), construct, {"topics": topics_sha256})


def answer_quest(questions: Sequence[QuestQuestion], out: Path, **how: Any) -> Built:
    """Find and judge the papers of given questions, in a folder as `build_quest` makes it.

    None of them is reviewed, and none left out as asked before. It raises what `build_quest` does.
    """
    check_ids(questions)
    return Quest(out, **how).run(lambda: _take(questions), construct, {"topics": ""})


async def _take(questions: Sequence[QuestQuestion]) -> Written:
    return Written(questions=[*questions])


def judge_quest(
    questions: Sequence[QuestQuestion],
    candidates: Mapping[str, Sequence[str]],
    out: Path,
    *,
    plan: QuestPlan | None = None,
    **how: Any,
) -> Built:
    """Judge given papers for given questions, in a folder as `build_quest` makes it."""
    # *candidates* are ids of papers, by id of the question, which the *sources* have; nothing is
    # searched or left out by the *plan*. It raises what `build_quest` does.
    check_ids(questions)

    async def judge(question: QuestQuestion, tools: Tools) -> Outcome:
        ids = list(dict.fromkeys(candidates.get(question.id, ())))
        found = await asyncio.to_thread(look_up, ids, tools.sources)
        missing = [id for id, paper in found.items() if paper is None]
        return await judge_given(question, [one for one in found.values() if one], missing, tools)

    job = Quest(out, plan=replace(plan or QuestPlan(), prefilter="none"), **how)
    about = {"topics": "", "candidates": hash_candidates(candidates)}
    return job.run(lambda: _take(questions), judge, about)


class _Done(NamedTuple):
    """A question that was worked on: what the journal keeps of it, or why it failed."""

    id: str
    entry: dict[str, Any] | None
    rejection: Rejection | None = None
    failure: str = ""


class Quest:
    """The recipe: questions of topics, each with the papers that answer it."""

    def __init__(
        self,
        out: Path,  # the folder; made if missing
        *,
        # a `PaperBase`, or several, or whatever else can be searched, see
        # `deepera_graph.lab.quest.sources`
        sources: Any,
        # who writes and reviews questions, rewrites them, and filters the answers: a chat model,
        # its name, or an LLM backend
        model: Model,
        # who grade pairs, each another model; *model* alone if there are none
        judges: Sequence[Model] = (),
        adjudicator: Model | None = None,  # who settles what they disagree on; *model* if None
        plan: QuestPlan | None = None,  # what to make
        questions_at_once: int = QUESTIONS_AT_ONCE,  # questions worked on at once, >= 1
        # of the prefilter and of the search for repeated questions: ``"local"``, or any LangChain
        # embeddings; None compares words alone
        embeddings: Any = "local",
        **options: Any,  # see `Construction`: `calls_at_once`, `budget`, `overwrite`, `on_progress`
    ) -> None:
        check_at_least("questions_at_once", questions_at_once, 1)
        self._shell, self._plan = Construction(out, **options), plan or QuestPlan()
        self._sources = name_sources(sources)
        self._turns = take_turns(self._sources)
        self._embeddings = find_embeddings(embeddings)
        if self._plan.prefilter == "local" and self._embeddings is None:
            raise SettingsError("prefilter 'local' needs embeddings; 'words' and 'none' do not")
        self._writer = open_model(model)
        self._judges = name_judges([open_model(one) for one in judges] or [self._writer])
        self._plan.quorum_of(len(self._judges))
        self._adjudicator = self._writer if adjudicator is None else open_model(adjudicator)
        self._at_once = questions_at_once
        self._papers: dict[str, dict[str, Any]] = {}

    def run(
        self,
        write: Callable[[], Any],
        work: Callable[[QuestQuestion, Tools], Any],
        about: Mapping[str, Any],
    ) -> Built:
        """Work on questions, and write what came of them."""
        with self._shell.open():
            self._open()
            made_of = self._describe()
            ran = {
                "plan": self._plan.to_dict(),
                "prompts": hash_prompts(PACKAGE),
                "candidates": about.get("candidates", ""),
                **made_of,
            }
            with self._shell.journal(JOURNAL, ran) as journal:
                written: Written = sending.run(write())
                self._shell.move(n_done=0, n_wanted=len(written.questions), n_counted=0)
                done = sending.run(self._work_all(written.questions, work, journal))
                return self._write(written, done, {**about, **made_of})

    async def write(self, topics: Sequence[Topic]) -> Written:
        """Write the questions of topics."""
        self._shell.move(n_wanted=len(topics))
        return await write_questions(
            topics,
            self._models[0],
            self._plan,
            embeddings=self._kept_embeddings,
            at_once=self._at_once,
            on_topic=lambda: self._count(n_done=1, n_counted=1),
        )

    def _count(self, **steps: int) -> None:
        before = self._shell.progress
        self._shell.move(**{name: getattr(before, name) + n for name, n in steps.items()})

    def _open(self) -> None:
        model = self._shell.model
        self._models = [model(self._writer), model(self._adjudicator)]
        self._judging = {name: model(one) for name, one in self._judges.items()}
        self._kept_embeddings: Embeddings | None = None
        if self._embeddings is not None:
            name = name_of(self._embeddings)
            self._kept_embeddings = CachedEmbeddings(self._embeddings, name, self._shell.cache)

    def _describe(self) -> dict[str, Any]:
        return {
            "model": _without_place(self._writer),
            "judges": {name: _without_place(one) for name, one in self._judges.items()},
            "adjudicator": _without_place(self._adjudicator),
            "embeddings": "" if self._embeddings is None else name_of(self._embeddings),
            "sources": [describe_source(one) for one in self._sources.values()],
        }

    def _tools(self) -> Tools:
        """Return the tools of one question, whose calls are counted apart."""
        writer, adjudicator = map(self._shell.apart, self._models)
        return Tools(
            plan=self._plan,
            sources=self._sources,
            turns=self._turns,
            writer=writer,
            judges={name: self._shell.apart(one) for name, one in self._judging.items()},
            adjudicator=adjudicator,
            embeddings=self._kept_embeddings,
            on_judged=lambda n: self._count(n_counted=n),
        )

    async def _work_all(
        self,
        questions: Sequence[QuestQuestion],
        work: Callable[[QuestQuestion, Tools], Any],
        journal: Journal,
    ) -> list[_Done]:
        """Work on questions, a few at once; when one ends the run, the others end what is sent."""

        async def one(question: QuestQuestion) -> _Done:
            done = await self._work_one(question, work, journal)
            self._count(n_done=1)
            return done

        return await ado_many(one, questions, self._at_once, paid=Exception)

    async def _work_one(
        self, question: QuestQuestion, work: Callable[[QuestQuestion, Tools], Any], journal: Journal
    ) -> _Done:
        kept = journal.entries.get(question.id)
        if kept is not None and kept["question"] == question.to_dict():
            kept["papers"] = self._share(kept["papers"])
            return _Done(question.id, kept)
        try:
            found: Outcome = await work(question, self._tools())
        except AnswerError as error:
            reason = Rejection.of("rewrite", question, "unusable_reply", str(error))
            return _Done(question.id, None, rejection=reason)
        except CallError as error:
            return _Done(question.id, None, failure=str(error))
        entry = {
            "question": question.to_dict(),
            "judgements": found.judgements,
            "papers": self._share(found.papers),
            "record": found.record,
        }
        if found.n_failed:
            failed = ", ".join(f"{n} of {who}" for who, n in found.record["failed_calls"].items())
            return _Done(question.id, entry, failure=f"calls failed: {failed}")
        journal.put(question.id, entry)
        return _Done(question.id, entry)

    def _share(self, papers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return papers, those that other questions have, too, as the same objects in memory."""
        known = ((self._papers.setdefault(one["id"], one), one) for one in papers)
        return [first if first == one else one for first, one in known]

    def _write(self, written: Written, done: Sequence[_Done], made_of: Mapping[str, Any]) -> Built:
        entries = {one.id: one.entry for one in done if one.entry is not None}
        rejected = [*written.rejected, *(one.rejection for one in done if one.rejection)]
        worked = [one for one in written.questions if one.id in entries]
        kept, thin = reject_thin(worked, entries, self._plan)
        failed = written.failed | {one.id: one.failure for one in done if one.failure}
        with self._shell.write(*FILES) as rows:
            log = ReasonLog(rows[REJECTED])
            for one in (*rejected, *thin):
                log.append(one)
            if not kept:
                raise DatasetError(f"no question is left: {explain_empty(log, failed)}")
            n_written = written.n_written or len(written.questions)
            manifest = {
                **begin_manifest(self._plan.to_dict(), made_of, PACKAGE),
                **describe_outcome(n_written, kept, entries, log),
                "usage": self._sum_usage(entries),
            }
            write_rows(rows, worked=worked, kept=kept, entries=entries, tau=self._plan.tau)
            return self._shell.finish(manifest, rows, failed=failed)

    def _sum_usage(self, entries: Mapping[str, Any]) -> dict[str, dict[str, int]]:
        """Return what replies took when they were new, by step: of topics, and of questions."""
        total: dict[str, Counter[str]] = {
            step: Counter(plain_usage(used)) for step, used in self._models[0].used.items()
        }
        for entry in entries.values():
            for step, used in entry["record"]["usage"].items():
                total.setdefault(step, Counter()).update(used)
        return {step: dict(used) for step, used in sorted(total.items())}


def _without_place(backend: Backend) -> dict[str, Any]:
    return {name: one for name, one in describe_model(backend).items() if name != "server"}
