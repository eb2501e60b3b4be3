"""`deepera-lab bench multihop`: compare retrieval on questions of several hops."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.console import needing, progress_bar, tell
from deepera_graph.cli.shared.declaring import given, opt, split_names
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli import running

if TYPE_CHECKING:
    from deepera_graph.lab.studies.multihop.answers import AnswerRow
    from deepera_graph.lab.studies.multihop.data import HopData
    from deepera_graph.lab.studies.multihop.methods import HopSearch

_measure = partial(opt, panel="Measure")


@dataclass(frozen=True, kw_only=True)
class MultihopOptions(running.ComparedOptions):
    """What is compared on questions of several hops."""

    methods: str | None = _measure(
        "What to compare: bm25, dense, rrf, rerank, nar, nar-rrf, nar-asu, quam-like, "
        "expansion, steps-bm25, steps-rrf, steps-rerank, steps-path, steps-expansion.",
        metavar="NAME,...",
        shown="all; those of steps where the data has sub-questions",
        many=str,
    )
    answers: str | None = _measure(
        "With --model: ways to answer, of one-search, given-steps, agent, agent-nar, agent-asu, "
        "agent-judge, searchain-like.",
        metavar="NAME,...",
        shown="the first four; given-steps where the data has sub-questions",
    )
    budget: int = _measure(
        "Passages that a method may read for a question.", metavar="N", default=50, least=1
    )
    baseline: str = _measure(
        "Method whose recall at 10 the others are compared with.", metavar="NAME", default="rrf"
    )
    embeddings: str = _measure(
        "What finds passages by meaning, see `deepera index --help`.",
        metavar="local|MODULE:FACTORY|openai:MODEL",
        default="local",
    )
    keep: Path | None = opt(
        "Keep vectors and neighbours here, and reuse those that are there already.",
        metavar="FOLDER",
        shown="keep none",
    )


def multihop(
    data: Annotated[list[Path], typer.Argument(metavar="FOLDER", help="Data sets.")],
    *,
    chosen: MultihopOptions,
    chat: options.ChatOptions,
    cache: options.CacheOptions,
    budget: options.BudgetOptions,
    output: options.OutputOptions,
) -> None:
    """Compare retrieval for questions whose evidence lies in several passages."""
    from deepera_graph.lab.studies.multihop.data import read_hop_data

    sets = [read_hop_data(folder, limit=chosen.limit) for folder in data]
    with needing("bench multihop", "bench"):
        from deepera_graph.cli.opening.judges import search_here
        from deepera_graph.cli.opening.stores import find_embeddings
        from deepera_graph.lab.studies.multihop.data import read_hop_data
        from deepera_graph.lab.studies.multihop.methods import HopSearch
        from deepera_graph.lab.studies.multihop.study import HopBench
        from deepera_graph.lab.studies.multihop.table import describe_methods, hop_table, plain_rows

    names = () if chosen.methods is None else split_names("--methods", chosen.methods)
    bench = HopBench(
        methods=tuple(names),
        budget=chosen.budget,
        baseline=chosen.baseline,
        n_resamples=chosen.resamples,
        seed=chosen.seed,
    )
    if chosen.answers is not None and not chat.model:
        raise SettingsError("--answers goes with --model")
    search_here()
    embeddings = find_embeddings(chosen.embeddings)
    assert embeddings is not None  # as a name is given
    rows, searches = [], []
    for one in sets:
        with progress_bar(
            f"{one.name}: vectors", total=len(one.passages), hidden=output.quiet
        ) as bar:
            search = HopSearch(one, embeddings, keep=chosen.keep, on_progress=bar.reach)
        with progress_bar(f"{one.name}: methods", hidden=output.quiet) as bar:
            rows += bench.measure(one, search, on_progress=bar.reach)
        searches.append(search)
    if not chat.model:
        tell(
            output,
            plain_rows(rows),
            lambda: f"{hop_table(rows)}\n{describe_methods(rows)}",
        )
        return
    from deepera_graph.lab.studies.multihop.answers import answer_table, plain_answers

    answers = _answer_hops(
        sets, searches, chosen=chosen, chat=chat, cache=cache, budget=budget, quiet=output.quiet
    )
    tell(
        output,
        {"retrieval": plain_rows(rows), "answers": plain_answers(answers)},
        lambda: f"{hop_table(rows)}\n{describe_methods(rows)}\n\n{answer_table(answers)}",
    )


def _answer_hops(
    sets: list[HopData],
    searches: list[HopSearch],
    *,
    chosen: MultihopOptions,
    chat: options.ChatOptions,
    cache: options.CacheOptions,
    budget: options.BudgetOptions,
    quiet: bool,
) -> list[AnswerRow]:
    """Have a chat model answer; what it may cost holds for all data sets together."""
    from deepera_graph.budget import Budget, Meter, with_meter
    from deepera_graph.cli.opening.judges import chat_backend, judgements_of
    from deepera_graph.lab.rankers.llm import MAX_CONCURRENCY
    from deepera_graph.lab.studies.multihop.answers import METHODS, measure_answers
    from deepera_graph.multihop.agent.roles import multihop_backend
    from deepera_graph.reranker import EvidenceReranker

    backend = chat_backend(chat)
    limits = Budget(**given(budget)) if given(budget) else None
    config = with_meter({}, Meter(limits))
    names = () if chosen.answers is None else split_names("--answers", chosen.answers)
    rows = []
    with judgements_of(backend, cache.cache) as kept:
        for one, search in zip(sets, searches, strict=True):
            total = len(one.questions) * len(names or METHODS)
            with progress_bar(f"{one.name}: answers", total=total, hidden=quiet) as bar:
                rows += measure_answers(
                    one,
                    search,
                    multihop_backend(backend),
                    methods=names,
                    judge=EvidenceReranker(backend, cache=kept, content="passage"),
                    n_resamples=chosen.resamples,
                    seed=chosen.seed,
                    cache=kept,
                    config=config,
                    at_once=chat.max_concurrency or MAX_CONCURRENCY,
                    on_progress=bar.reach,
                )
    return rows
