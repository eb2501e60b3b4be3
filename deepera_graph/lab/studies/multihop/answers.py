"""Answers to questions of several hops: ways to get them from one chat model, compared.

`one-search` searches once and answers; `given-steps` takes the sub-questions of the data; `agent`
has the model find them; `agent-nar` searches along neighbours for each of them, and `agent-asu`
puts batches behind from which answers of several meanings are drawn; `agent-judge` has the model
judge the passages of a step in the light of the path; `searchain-like` verifies a chain of guesses.

The chain of guesses is after Xu, Pang, Shen, Cheng and Chua (2024), Search-in-the-Chain: the chat
model writes all sub-questions with its own answers, what passages say takes the place of a guess,
and where they say nothing it stays. Later sub-questions take the corrected answer, where SearChain
has the rest of the chain written anew.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import Field

from deepera_graph.agents.role import LlmRole
from deepera_graph.calibration.statistics import MAX_FAILED_SHARE, Values
from deepera_graph.chat.client import request_reply
from deepera_graph.chat.parsing import ReplyModel, sanitize_line
from deepera_graph.errors import FailedShareError, SettingsError
from deepera_graph.lab.data.readers import HopData, HopQuestion
from deepera_graph.lab.metrics.answers import answer_tokens, token_overlap
from deepera_graph.lab.studies.experiment import Resampling
from deepera_graph.lab.studies.multihop.methods import (
    BATCH_SIZE,
    BUDGET,
    N_FIRST,
    HopSearch,
    take_in_turn,
)
from deepera_graph.lab.tables import Column, Grid, Row
from deepera_graph.multihop.agent.agent import MultiHopAgent
from deepera_graph.multihop.agent.roles import (
    HopPlanTask,
    MultiHopBackend,
    Plan,
    ReplyTask,
    StepAnswer,
    fill_plan,
)
from deepera_graph.multihop.agent.state import MultiHopResult
from deepera_graph.multihop.passages.retriever import AdaptiveRetriever
from deepera_graph.multihop.path import path_block
from deepera_graph.multihop.settings import READ_AT_ONCE, Uncertainty
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.settings.budget import stream_many
from deepera_graph.settings.ranges import check_at_least, check_share
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.stores.words import name_passage
from deepera_graph.usage import Usage

METHODS = ("one-search", "given-steps", "agent", "agent-nar")
COSTLY = ("agent-asu", "agent-judge", "searchain-like")  # only where they are named
_K = 10
_NOT_JUDGED = ("failed", "budget_stop")


def cover_match(answer: str, gold: Sequence[str]) -> bool:
    """Whether an answer contains a right one, after normalisation, in whole words."""
    # Source: SUNAR, section on measures ("cover exact match"); the normalisation is SQuAD's.
    said = f" {' '.join(answer_tokens(answer))} "
    wanted = (" ".join(answer_tokens(one)) for one in gold)
    return any(one and f" {one} " in said for one in wanted)


def measure_answers(
    data: HopData,  # questions with their right answers
    search: HopSearch,  # where passages are looked for: by words and by meaning, fused
    backend: MultiHopBackend,  # the roles of one chat model
    *,
    # of `METHODS` and `COSTLY`; if empty all of the first that the data has sub-questions for
    methods: Sequence[str] = (),
    judge: EvidenceReranker | None = None,  # who judges the passages of a step, for ``agent-judge``
    n_resamples: int = 10_000,  # resamples for the intervals
    seed: int = 0,  # of the resampling
    cache: JudgementCache | None = None,  # where replies are kept
    # a LangChain config; a budget in it holds for all questions together
    config: RunnableConfig | None = None,
    at_once: int = 1,  # questions that are answered at the same time, >= 1; `seconds` are of each
    # share of questions without an answer, as calls failed or the budget was spent, in [0, 1],
    # above which no figures are given
    max_failed_share: float = MAX_FAILED_SHARE,
    # called with the questions answered so far, over all methods
    on_progress: Callable[[int], None] | None = None,
) -> list[Row]:
    """Have questions answered in several ways, and return a row of `answer_table` for each."""
    # Raises `FailedShareError` if too many questions of one way to answer failed; `SettingsError`
    # if a method is unknown or needs sub-questions, or a question has no answer.
    check_share("max_failed_share", max_failed_share)
    chosen = _choose(data, methods)
    if judge is None and "agent-judge" in chosen:
        raise SettingsError("agent-judge needs a judge")
    check_at_least("at_once", at_once, 1)
    rows, n_done = [], 0
    for name in chosen:
        make = partial(
            _agent_of,
            name,
            data=data,
            search=search,
            backend=backend,
            judge=judge,
            cache=cache,
        )
        by_id: dict[str, _Answered] = {}
        for one in stream_many(partial(_solve, make, config), data.questions, at_once):
            by_id[one[0].id] = one
            n_done += 1
            if on_progress is not None:
                on_progress(n_done)
        results = [by_id[question.id] for question in data.questions]
        _check_failures(data, name, results, max_failed_share)
        rows.append(_row(data, name, results, n_resamples, seed))
    return rows


def _solve(
    make: Callable[[HopQuestion], MultiHopAgent],
    config: RunnableConfig | None,
    question: HopQuestion,
) -> "_Answered":
    started = perf_counter()
    return question, make(question).solve(question.text, config=config), perf_counter() - started


def _choose(data: HopData, methods: Sequence[str]) -> list[str]:
    has_steps = all(question.steps for question in data.questions)
    for name in methods:
        if name not in (*METHODS, *COSTLY):
            every = ", ".join((*METHODS, *COSTLY))
            raise SettingsError(f"ways to answer are {every}, got {name!r}")
        if name == "given-steps" and not has_steps:
            raise SettingsError(f"{name} needs sub-questions, and {data.name} has none")
    unanswered = next((one.id for one in data.questions if not one.answers), None)
    if unanswered is not None:
        raise SettingsError(f"{data.name}: question {unanswered!r} has no answer to compare with")
    return [*(methods or [one for one in METHODS if has_steps or one != "given-steps"])]


def _agent_of(
    name: str,
    question: HopQuestion,
    *,
    data: HopData,
    search: HopSearch,
    backend: MultiHopBackend,
    judge: EvidenceReranker | None,
    cache: JudgementCache | None,
) -> MultiHopAgent:
    def find(asked: str, k: int) -> list[Document]:
        return search.documents(search.by_both(asked, k))

    retriever: Any = SimpleNamespace(search=find)
    more: dict[str, Any] = {"cache": cache}
    if name == "searchain-like":  # a guess would else stand in for what was not read yet
        backend = chain_backend(backend)
        more = {"read_at_once": _K}
    if name == "agent-judge":
        more["judge"] = judge
    if name == "agent-asu":
        more["uncertainty"] = Uncertainty()
    if name in ("agent-nar", "agent-asu"):
        retriever = AdaptiveRetriever(
            first_stage=RunnableLambda(
                lambda asked: search.documents(search.by_both(asked, N_FIRST))
            ),
            graph=search.graph,
            judge=search.embeddings,
            passages=data.passages,
            budget=BUDGET,
            batch_size=BATCH_SIZE,
        )
    steps = [one.question.replace(" >> ", " ") for one in question.steps]
    given = {"one-search": [question.text], "given-steps": steps}.get(name)
    if given is None:
        return MultiHopAgent(backend, retriever, **more)
    roles = replace(backend, planner=RunnableLambda(lambda task: _next(given, task)))
    at_once = _K if name == "one-search" else READ_AT_ONCE
    return MultiHopAgent(roles, retriever, max_steps=len(given), read_at_once=at_once)


def _next(given: Sequence[str], task: HopPlanTask) -> Plan:
    """Plan the rest of the given sub-questions, at no cost."""
    return Plan(questions=list(given[len(task["path"]) :]), is_complete=True, usage=Usage())


_Answered = tuple[HopQuestion, MultiHopResult, float]


def _check_failures(data: HopData, name: str, results: Sequence[_Answered], most: float) -> None:
    failed = [result for _, result, _ in results if result.outcome in _NOT_JUDGED]
    if len(failed) > most * len(results):
        raise FailedShareError(
            f"{name} on {data.name}: {len(failed)} of {len(results)} questions have no answer, "
            f"more than {100 * most:g} %: {failed[-1].answer['cause'] or failed[-1].outcome}"
        )


def _row(
    data: HopData, name: str, results: Sequence[_Answered], n_resamples: int, seed: int
) -> Row:
    judged = [result.outcome not in _NOT_JUDGED for _, result, _ in results]
    said = [
        (one.answers, result.text if ok else "")
        for ok, (one, result, _) in zip(judged, results, strict=True)
    ]
    matches = [float(cover_match(text, gold)) for gold, text in said]
    overlaps = [max(token_overlap(text, one).f1 for one in gold) for gold, text in said]
    recalls = [_recall(one, result) for one, result, _ in results]
    columns = [Values.of(matches), Values.of(overlaps), Values.of(recalls)]
    used = [result.total_usage for _, result, _ in results]
    insufficient = [result.outcome == "insufficient_evidence" for _, result, _ in results]
    likely = [result.support == "likely" for _, result, _ in results]
    return (
        *(data.name, name),
        *Resampling(n_resamples=n_resamples, seed=seed).estimate(columns),
        *(float(np.mean(insufficient)), float(np.mean(likely)), judged.count(False)),
        float(np.mean([one.calls for one in used])),
        float(np.mean([one.tokens for one in used])),
        float(np.mean([seconds for _, _, seconds in results])),
    )


def _recall(question: HopQuestion, result: MultiHopResult) -> float:
    """Return recall of the evidence, filled up by the steps' passages in turn, ten in all."""
    lists = [[name_passage(one) for one in step["passages"]] for step in result.steps]
    names = list(dict.fromkeys([*map(name_passage, result.evidence), *take_in_turn(lists)]))[:_K]
    return len(question.supporting.intersection(names)) / len(question.supporting)


def answer_table(rows: Sequence[Row]) -> Grid:
    """Return the table of ways to answer."""
    return Grid.told(
        "answers",
        columns=(
            *Column.several("text", "data", "method"),
            *Column.several("percent", "cover-EM", "F1", "recall@10", "insufficient", "likely"),
            *Column.several("count", "failed", "calls", "tokens"),
            Column("a question", "seconds"),
        ),
        rows=tuple(rows),
    )


_NUMBER = re.compile(r"\\#\d+")  # of a step, after `re.escape`


class LinkReply(ReplyModel):
    """One link of the chain."""

    question: str = Field(description="The sub-question.")
    answer: str = Field(description="Your own answer; empty if you have none.")


class ChainReply(ReplyModel):
    """The chain."""

    links: list[LinkReply] = Field(description="The links, in their order.")


class ChainPlanner(LlmRole[HopPlanTask, Plan]):
    """Writes a chain, and keeps its guesses; for one question, as guesses are of that."""

    guesses: dict[str, str]

    async def _play(self, task: HopPlanTask, config: RunnableConfig | None) -> Plan:
        messages = fill_plan("chain", task, path_block(task["path"]))
        reply, notes = await request_reply(self.model, messages, ChainReply, config)
        links = [one for one in reply.links if one.question.strip()]
        self.guesses |= {_pattern(one.question): sanitize_line(one.answer) for one in links}
        asked = [sanitize_line(one.question) for one in links]
        return Plan(questions=asked, is_complete=True, **notes)

    def guess(self, question: str) -> str:
        """Return the model's own answer to a sub-question; empty if it has none."""
        found = (one for one in self.guesses if re.fullmatch(one, question))
        return next((self.guesses[one] for one in found), "")


def _pattern(question: str) -> str:
    """Return what a sub-question matches once the answers of others stand in it."""
    return _NUMBER.sub(".+", re.escape(sanitize_line(question)))


def chain_backend(backend: MultiHopBackend) -> MultiHopBackend:
    """Return the roles of a chain of guesses, for one question."""
    if not isinstance(backend.planner, LlmRole):
        raise SettingsError(f"a chain of guesses needs a chat model, got {backend.name!r}")
    planner = ChainPlanner(backend.planner.model)
    planner.guesses = {}
    replier: Runnable[ReplyTask, StepAnswer] = backend.replier

    def fill(task: ReplyTask, answer: StepAnswer) -> StepAnswer:
        guess = planner.guess(task["question"])
        if not guess or (answer.text and answer.support != "none"):
            return answer
        told = {"text": guess, "support": "likely", "cited": [], "reason": "no passage says so"}
        return answer.model_copy(update=told)

    def reply(task: ReplyTask, config: RunnableConfig) -> StepAnswer:
        return fill(task, replier.invoke(task, config))

    async def areply(task: ReplyTask, config: RunnableConfig) -> StepAnswer:
        return fill(task, await replier.ainvoke(task, config))

    return replace(
        backend,
        planner=planner,
        replier=RunnableLambda(reply, afunc=areply),
        spec=None,  # guesses are live, so that no reply of these roles is kept for another question
    )
