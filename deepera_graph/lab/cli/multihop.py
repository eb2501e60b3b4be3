"""`deepera-lab study multihop`: compare retrieval on questions of several hops."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from deepera_graph.cli.opening.judges import open_chat, search_here
from deepera_graph.cli.opening.stores import find_embeddings
from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import check_data, check_folder, needing
from deepera_graph.cli.shared.declaring import arg, given, opt, split_names
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli import running

if TYPE_CHECKING:
    from deepera_graph.lab.data.readers import HopData
    from deepera_graph.lab.studies.multihop.methods import HopSearch
    from deepera_graph.lab.tables import Row

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
        "Keep vectors and neighbours in this folder, and reuse those it already holds.",
        metavar="FOLDER",
        shown="keep none",
    )


def multihop(
    data: Annotated[list[Path], arg("FOLDER", "Data sets.")],
    *,
    chosen: MultihopOptions,
    chat: options.ModelOptions,
    results: running.ResultOptions,
    output: options.OutputOptions,
) -> None:
    """Compare retrieval for questions whose evidence lies in several passages."""
    check_data(data)
    from deepera_graph.lab.data.readers import read_hop_data

    sets = [read_hop_data(folder, limit=chosen.limit) for folder in data]
    check_folder(results.out, ("multihop.md", "manifest.json"), overwrite=results.overwrite)
    with needing("study multihop", "bench"):
        from deepera_graph.lab.studies.multihop import answers, methods
        from deepera_graph.lab.studies.run import describe_versions

    bench = methods.HopBench(
        methods=() if chosen.methods is None else split_names("--methods", chosen.methods),
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
    rows, searches = {}, []
    for one in sets:
        bar = partial(progress_bar, hidden=output.quiet)
        with bar(f"{one.name}: vectors", total=len(one.passages)) as moved:
            search = methods.HopSearch(one, embeddings, keep=chosen.keep, on_progress=moved.reach)
        with bar(f"{one.name}: methods") as moved:
            rows[one.name] = bench.measure(one, search, on_progress=moved.reach)
        searches.append(search)
    result = bench.study(rows)
    if chat.model:
        found = _answer_hops(sets, searches, chosen, chat, quiet=output.quiet)
        result = replace(result, grids=(*result.grids, answers.answer_table(found)))
    settings = {**asdict(chosen), "keep": None, "model": chat.model}
    setup = {
        **describe_versions("numpy", "bm25s", "PyStemmer"),
        "data": {one.name: len(one.questions) for one in sets},
        "settings": settings,
    }
    running.finish(methods.MULTIHOP, result, lambda: setup, results, output)


def _answer_hops(
    sets: list[HopData],
    searches: list[HopSearch],
    chosen: MultihopOptions,
    chat: options.ModelOptions,
    *,
    quiet: bool,
) -> list[Row]:
    """Have a chat model answer; what it may cost holds for all data sets together."""
    from deepera_graph.lab.asking import MAX_CONCURRENCY
    from deepera_graph.lab.studies.multihop.answers import METHODS, measure_answers
    from deepera_graph.multihop.agent.roles import multihop_backend
    from deepera_graph.reranker import EvidenceReranker
    from deepera_graph.settings.budget import Budget, Meter, with_meter

    spending = given(chat, of=options.BudgetOptions)
    config = with_meter({}, Meter(Budget(**spending) if spending else None))
    names = () if chosen.answers is None else split_names("--answers", chosen.answers)
    rows = []
    with open_chat(chat) as (backend, kept):
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
