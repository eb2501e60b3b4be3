"""The options of `deepera bench report`."""

from pathlib import Path
from typing import Annotated

import typer

from deepera_graph.cli import options
from deepera_graph.cli.bench import study_options as given
from deepera_graph.cli.exits import CODES
from deepera_graph.cli.extras import needing

EPILOG = f"""[bold]Examples:[/bold]

  deepera bench report base.jsonl ssli.jsonl --out report.html --keep rankings

  deepera bench report lakes.jsonl --out report.html --studies main,ranks --worst 30 --limit 100

The page needs no network and no other file; it works without JavaScript, in the dark, on a
telephone and on paper. It holds the tables and figures of all studies (see deepera bench study
--help), and for each ranker and data set the questions it got most wrong: the passage that won, and
the golden one, both with score and reason. With --keep a second run writes the same bytes.

It needs more packages: pip install 'deepera-graph\\[bench]'.

{CODES}"""


def report(
    data: given.Data,
    *,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="The page, e.g. report.html."),
    ],
    studies: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="What it shows; see `deepera bench study --help`.",
            show_default="all",
        ),
    ] = None,
    worst: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Worst questions it shows of each ranker and data set."
        ),
    ] = 15,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.")] = False,
    rankers: given.Rankers = None,
    metrics: given.Metrics = None,
    threshold: given.Threshold = None,
    top_n: given.TopN = None,
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
    quiet: options.Quiet = False,
) -> None:
    """Write one HTML page: tables, figures, and the worst questions to browse."""
    with needing("bench", "bench"):
        from deepera_graph.cli.work.bench import report as work  # noqa: PLC0415 - quick --help

    work.run(
        work.Request(
            data=tuple(data),
            rankers=rankers,
            metrics=metrics,
            threshold=threshold,
            top_n=top_n,
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
        studies=studies,
        n_worst=worst,
        overwrite=overwrite,
        quiet=quiet,
    )
