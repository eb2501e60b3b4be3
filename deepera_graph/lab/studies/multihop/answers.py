"""Answers to questions of several hops: ways to get them from one chat model, compared.

`one-search` searches once and answers; `given-steps` takes the sub-questions of the data; `agent`
has the model find them; `agent-nar` searches along neighbours for each of them, and `agent-asu`
puts batches behind from which answers of several meanings are drawn; `agent-judge` has the model
judge the passages of a step in the light of the path; `searchain-like` verifies a chain of guesses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableLambda

from deepera_graph.budget import stream_many
from deepera_graph.calibration.statistics import MAX_FAILED_SHARE, Interval, Values, bootstraps
from deepera_graph.errors import FailedShareError, SettingsError
from deepera_graph.lab.metrics.answers import answer_tokens, token_overlap
from deepera_graph.lab.studies.multihop.chain import chain_backend
from deepera_graph.lab.studies.multihop.data import HopData, HopQuestion
from deepera_graph.lab.studies.multihop.methods import BATCH_SIZE, BUDGET, N_FIRST, HopSearch
from deepera_graph.lab.tables import MetricEstimate, format_cell, format_rows
from deepera_graph.multihop.agent.agent import MultiHopAgent
from deepera_graph.multihop.agent.roles import HopPlanTask, MultiHopBackend, Plan
from deepera_graph.multihop.agent.state import READ_AT_ONCE, MultiHopResult
from deepera_graph.multihop.agent.uncertainty import Uncertainty
from deepera_graph.multihop.passages.retriever import AdaptiveRetriever
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.settings import check_at_least
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.stores.words import name_passage
from deepera_graph.thresholds import check_share
from deepera_graph.usage import Usage

METHODS = ("one-search", "given-steps", "agent", "agent-nar")
COSTLY = ("agent-asu", "agent-judge", "searchain-like")  # only where they are named
_K = 10
_NOT_JUDGED = ("failed", "budget_stop")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """One way to answer on one data set.

    Attributes:
        cover_em: Share of questions whose answer contains a right one, word for word. A question
            that failed has no answer, which counts as wrong, as does "insufficient evidence".
        f1: Overlap of words with the nearest right answer; 0 where there is none.
        recall: Share of supporting passages among the first 10 that were read.
        insufficient: Share of questions with "insufficient evidence".
        likely: Share of questions whose answer is marked as likely, not proven.
        n_failed: Questions that have no answer as calls failed or the budget was spent.
        calls, tokens, seconds: A question, on average.
    """

    dataset: str
    method: str
    n_questions: int
    cover_em: Interval
    f1: Interval
    recall: Interval
    insufficient: float
    likely: float
    n_failed: int
    calls: float
    tokens: float
    seconds: float


def cover_match(answer: str, gold: Sequence[str]) -> bool:
    """Whether an answer contains a right one, after normalisation, in whole words.

    Source:
        SUNAR, section on measures ("cover exact match"); the normalisation is SQuAD's.
    """
    said = f" {' '.join(answer_tokens(answer))} "
    wanted = (" ".join(answer_tokens(one)) for one in gold)
    return any(one and f" {one} " in said for one in wanted)


def measure_answers(
    data: HopData,
    search: HopSearch,
    backend: MultiHopBackend,
    *,
    methods: Sequence[str] = (),
    judge: EvidenceReranker | None = None,
    max_steps: int = 6,
    n_resamples: int = 10_000,
    seed: int = 0,
    cache: JudgementCache | None = None,
    config: RunnableConfig | None = None,
    at_once: int = 1,
    max_failed_share: float = MAX_FAILED_SHARE,
    on_progress: Callable[[int], None] | None = None,
) -> list[AnswerRow]:
    """Have questions answered in several ways, and return a row for each.

    Args:
        data: Questions with their right answers.
        search: Where passages are looked for: by words and by meaning, fused.
        backend: The roles of one chat model.
        methods: Of `METHODS` and `COSTLY`; if empty all of the first that the data has
            sub-questions for.
        judge: Who judges the passages of a step, for ``agent-judge``.
        max_steps: Most sub-questions of a question.
        n_resamples: Resamples for the intervals.
        seed: Of the resampling.
        cache: Where replies are kept.
        config: A LangChain config; a budget in it holds for all questions together.
        at_once: Questions that are answered at the same time, >= 1; `seconds` are of each.
        max_failed_share: Share of questions without an answer, as calls failed or the budget was
            spent, in [0, 1], above which there are no figures.
        on_progress: Called with the questions answered so far, over all methods.

    Raises:
        FailedShareError: Too many questions of one way to answer failed.
        SettingsError: A method is unknown or needs sub-questions, or a question has no answer.
    """
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
            max_steps=max_steps,
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
    max_steps: int,
    cache: JudgementCache | None,
) -> MultiHopAgent:
    def find(asked: str, k: int) -> list[Document]:
        return search.documents(search.by_both(asked, k))

    retriever: Any = SimpleNamespace(search=find)
    more: dict[str, Any] = {"max_steps": max_steps, "cache": cache}
    if name == "searchain-like":  # a guess would else stand in for what was not read yet
        backend = chain_backend(backend)
        more = {"max_steps": max_steps, "read_at_once": _K}
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
    given = {"one-search": [question.text], "given-steps": _asked(question)}.get(name)
    if given is None:
        return MultiHopAgent(backend, retriever, **more)
    roles = replace(backend, planner=RunnableLambda(lambda task: _next(given, task)))
    at_once = _K if name == "one-search" else READ_AT_ONCE
    return MultiHopAgent(roles, retriever, max_steps=len(given), read_at_once=at_once)


def _asked(question: HopQuestion) -> list[str]:
    return [one.question.replace(" >> ", " ") for one in question.steps]


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
) -> AnswerRow:
    judged = [result.outcome not in _NOT_JUDGED for _, result, _ in results]
    texts = [result.text if ok else "" for ok, (_, result, _) in zip(judged, results, strict=True)]
    asked = [one for one, _, _ in results]
    matches = [
        float(cover_match(text, one.answers)) for text, one in zip(texts, asked, strict=True)
    ]
    overlaps = [
        max(token_overlap(text, gold).f1 for gold in one.answers)
        for text, one in zip(texts, asked, strict=True)
    ]
    recalls = [_recall(one, result) for one, result, _ in results]
    columns = [Values.of(matches), Values.of(overlaps), Values.of(recalls)]
    cover_em, f1, recall = bootstraps(columns, n_resamples=n_resamples, seed=seed)
    used = [result.total_usage for _, result, _ in results]
    return AnswerRow(
        dataset=data.name,
        method=name,
        n_questions=len(results),
        cover_em=cover_em,
        f1=f1,
        recall=recall,
        insufficient=float(
            np.mean([result.outcome == "insufficient_evidence" for _, result, _ in results])
        ),
        likely=float(np.mean([result.support == "likely" for _, result, _ in results])),
        n_failed=judged.count(False),
        calls=float(np.mean([one.calls for one in used])),
        tokens=float(np.mean([one.tokens for one in used])),
        seconds=float(np.mean([seconds for _, _, seconds in results])),
    )


def _recall(question: HopQuestion, result: MultiHopResult) -> float:
    """Return recall of the evidence, filled up by the steps' passages in turn, ten in all."""
    lists = [[name_passage(one) for one in step["passages"]] for step in result.steps]
    turns = (name for turn in zip_longest(*lists) for name in turn if name is not None)
    names = list(dict.fromkeys([*map(name_passage, result.evidence), *turns]))[:_K]
    return len(question.supporting.intersection(names)) / len(question.supporting)


def answer_table(rows: Sequence[AnswerRow]) -> str:
    """Return a Markdown table of all rows, shares in percent."""
    head = (
        "data", "method", "cover-EM", "F1", "recall@10", "insufficient", "likely", "failed",
        "calls", "tokens", "s",
    )  # fmt: skip
    body = []
    for one in rows:
        intervals = (MetricEstimate(*share, 0.0) for share in (one.cover_em, one.f1, one.recall))
        shares = [format_cell(share, "percent") for share in intervals]
        some = [f"{100 * share:.0f}" for share in (one.insufficient, one.likely)]
        counted = [*some, str(one.n_failed), f"{one.calls:.1f}"]
        cells = [one.dataset, one.method, *shares, *counted, f"{one.tokens:.0f}"]
        body.append([*cells, f"{one.seconds:.1f}"])
    return format_rows(head, body, (True, True)).removesuffix("\n")


def plain_answers(rows: Sequence[AnswerRow]) -> list[Mapping[str, Any]]:
    """Return rows as plain data, shares in [0, 1]."""
    return [
        {
            "dataset": one.dataset,
            "method": one.method,
            "questions": one.n_questions,
            **{name: _plain(getattr(one, name)) for name in ("cover_em", "f1", "recall")},
            "insufficient": one.insufficient,
            "likely": one.likely,
            "failed": one.n_failed,
            "calls": one.calls,
            "tokens": one.tokens,
            "seconds": one.seconds,
        }
        for one in rows
    ]


def _plain(one: Interval) -> dict[str, float] | None:
    return one._asdict() if np.isfinite(one.mean) else None
