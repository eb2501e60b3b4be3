"""The options of `deepera bench study`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from deepera_graph.cli import options
from deepera_graph.cli.bench import study_options as given
from deepera_graph.cli.exits import CODES
from deepera_graph.cli.extras import needing

EPILOG = f"""[bold]Studies:[/bold]

  [bold]main[/bold]         every ranker on every data set, and what look-alikes cost it

  [bold]ranks[/bold]        what stands at each rank, question by question

  [bold]look-alikes[/bold]  each type: how many are kept, moved up, above the golden passage

  [bold]threshold[/bold]    what the filter keeps at each threshold

  [bold]cutoff[/bold]       what the first n hold, with and without the filter

  [bold]ablations[/bold]    without intent recognition, filter, summaries; in retrieval order

  [bold]embeddings[/bold]   retrieval from a store with look-alikes in it: NRS and CDR

  [bold]stability[/bold]    whether a ranker says the same when it is asked again

  [bold]drift[/bold]        whether a score means the same in every subject

  [bold]cost[/bold]         seconds, calls and tokens a question

  [bold]all[/bold]          all of them, each in a folder of its name

[bold]Examples:[/bold]

  deepera bench study threshold lakes.jsonl --out threshold --keep rankings

  deepera bench study main base.jsonl ssli.jsonl --rankers bm25,deepera:local --keep rankings

  deepera bench study threshold ssli.jsonl --rankers deepera:llm --thresholds 0.6,0.7,0.8,0.9
  --model qwen3 --base-url http://localhost:8000/v1 --generator llm --answer-judge openai:gpt-5

  deepera bench study all base.jsonl ssli.jsonl --out studies --keep rankings --limit 100

FOLDER gets NAME.md, each table as CSV, each figure as SVG and PNG, and a
manifest. With --keep a second run asks no ranker again and writes the same bytes.

It needs more packages: pip install 'deepera-graph\\[bench]'.

{CODES}"""


class Study(StrEnum):
    """Names of the studies."""

    MAIN = "main"
    RANKS = "ranks"
    LOOK_ALIKES = "look-alikes"
    THRESHOLD = "threshold"
    CUTOFF = "cutoff"
    ABLATIONS = "ablations"
    EMBEDDINGS = "embeddings"
    STABILITY = "stability"
    DRIFT = "drift"
    COST = "cost"
    ALL = "all"


def study(
    name: Annotated[Study, typer.Argument(metavar="NAME", help="Which study, see below.")],
    data: given.Data,
    *,
    rankers: given.Rankers = None,
    metrics: given.Metrics = None,
    threshold: given.Threshold = None,
    top_n: given.TopN = None,
    thresholds: given.Thresholds = None,
    cutoffs: given.Cutoffs = None,
    shares: given.Shares = None,
    embeddings: given.EmbeddingNames = None,
    base: given.Base = None,
    repeats: given.Repeats = None,
    sample: given.Sampled = None,
    resamples: given.Resamples = None,
    seed: given.Seed = None,
    strict: given.Strict = False,
    generator: given.Generator = "",
    answer_judge: given.AnswerJudge = "",
    limit: given.Limit = None,
    split: given.Split = "test",
    candidates: given.Candidates = 100,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Where tables, figures and a manifest go.",
            show_default="nowhere",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace results in FOLDER.")
    ] = False,
    keep: given.Keep = None,
    model: options.ModelName = None,
    base_url: options.BaseUrl = None,
    api_key_env: options.KeyVariable = None,
    max_concurrency: options.MaxConcurrency = None,
    requests_per_minute: options.RequestsPerMinute = None,
    tokens_per_minute: options.TokensPerMinute = None,
    cache: options.CachePlace = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_seconds: options.MaxSeconds = None,
    max_cost: options.MaxCost = None,
    input_price: options.InputPrice = None,
    output_price: options.OutputPrice = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Run one of the benchmark's experiments: tables, figures and what was found."""
    with needing("bench", "bench"):
        from deepera_graph.cli.work.bench import study as work  # noqa: PLC0415 - keeps --help quick

    work.run(
        name.value,
        work.Request(
            data=tuple(data),
            rankers=rankers,
            metrics=metrics,
            threshold=threshold,
            top_n=top_n,
            thresholds=thresholds,
            cutoffs=cutoffs,
            shares=shares,
            embeddings=embeddings,
            base=base,
            n_repeats=repeats,
            n_sampled=sample,
            n_resamples=resamples,
            seed=seed,
            strict=strict,
            generator=generator,
            answer_judge=answer_judge,
            limit=limit,
            split=split,
            n_candidates=candidates,
            keep=keep,
        ),
        work.ChatModels(
            model=model,
            base_url=base_url,
            api_key_env=api_key_env,
            max_concurrency=max_concurrency,
            limits=options.limits_of(
                requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute
            ),
            budget=options.limits_of(
                max_calls=max_calls,
                max_tokens=max_tokens,
                max_seconds=max_seconds,
                max_cost=max_cost,
                input_price=input_price,
                output_price=output_price,
            ),
            cache=cache,
        ),
        out=out,
        overwrite=overwrite,
        as_json=as_json,
        quiet=quiet,
    )
