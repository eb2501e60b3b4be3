"""The options of `deepera bench table`."""

from pathlib import Path
from typing import Annotated

import typer

from deepera_graph.cli import options
from deepera_graph.cli.exits import CODES
from deepera_graph.cli.extras import needing

_MEASURE = "Measure"
_DATA = "Data"
EPILOG = f"""[bold]Examples:[/bold]

  deepera bench table sample-base sample-ssli

  deepera bench table lakes.jsonl --rankers first-stage,random,bm25,deepera:local

  deepera bench table scifact/ --baseline BM25 --out results --keep rankings --limit 100

  deepera bench table lakes.jsonl scifact/ --metrics HitRate@1,RP --json

  deepera bench table lakes.jsonl --rankers deepera:llm,rankgpt,llm-pointwise --keep rankings
  --model qwen3 --base-url http://localhost:8000/v1

[bold]Data[/bold] are JSON lines with "id", "question", "passages" and "golden", the ids of the
passages that answer; folders in the layout of BEIR (corpus.jsonl, queries.jsonl, qrels/);
folders of articles (passages.jsonl, questions.jsonl); PubMedQA's JSON; or
sample-base, sample-ssli, sample-hard-base and sample-hard-ssli: ten invented questions each, to
try things on.

[bold]Rankers[/bold] are first-stage, random, bm25, deepera:BACKEND, deepera-kept:BACKEND (only what
passed the filter), and oracle, the best order there can be.

A chat model (--model) is asked by deepera:llm (deepera:fused and deepera:grouped are its modes with
fewer calls), llm-pointwise, llm-listwise, rankgpt, paperqa and langchain-listwise; each takes
another one as rankgpt:PROVIDER:MODEL or rankgpt:MODEL@URL.

Models of other packages are dense:NAME and cross-encoder:NAME (sentence-transformers; a folder or a
name on the Hugging Face hub), dense:openai:MODEL, rerankers:TYPE/NAME, flashrank:NAME, cohere:NAME;
your own are dense:module:factory and compressor:module:factory. What cannot run here gets a line
that says why.

[bold]Metrics[/bold] are HitRate@K, RP, RP-linear, NRS@K, CDR, nDCG@K and Recall@K. Intervals are of
95 % over questions.

It needs more packages: pip install 'deepera-graph\\[bench]'.

{CODES}"""


def table(
    data: Annotated[list[Path], typer.Argument(metavar="DATA", help="Files and folders.")],
    *,
    rankers: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="What to compare.",
            show_default="first-stage,random,bm25,deepera:local,oracle; deepera:llm with --model; "
            "a dense one with deepera-graph[dense]",
            rich_help_panel=_MEASURE,
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="What to measure.",
            show_default="HitRate@1,HitRate@3,RP,nDCG@10",
            rich_help_panel=_MEASURE,
        ),
    ] = None,
    baseline: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Ranker the others are compared with.",
            show_default="none",
            rich_help_panel=_MEASURE,
        ),
    ] = "",
    repeats: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Runs of a ranker that differs from run to run.",
            rich_help_panel=_MEASURE,
        ),
    ] = 3,
    resamples: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Resamples for the intervals and tests.",
            show_default="10000",
            rich_help_panel=_MEASURE,
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            metavar="S",
            min=0,
            help="Of the random order and the resamples.",
            rich_help_panel=_MEASURE,
        ),
    ] = 0,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Only the first N questions of each.",
            show_default="all",
            rich_help_panel=_DATA,
        ),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Judgements of a BEIR folder to use.", rich_help_panel=_DATA
        ),
    ] = "test",
    candidates: Annotated[
        int,
        typer.Option(
            metavar="K",
            min=1,
            help="Documents BM25 finds for a question of a BEIR folder.",
            rich_help_panel=_DATA,
        ),
    ] = 100,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Where results.md, results.csv and manifest.json go.",
            show_default="nowhere",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace results in FOLDER.")
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep rankings here, and take those that are there already.",
            show_default="keep none",
        ),
    ] = None,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed", help="Rank kept questions anew of which a passage had failed."
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop when a ranker cannot run here.")
    ] = False,
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
    """Compare rankers on data sets: a table with intervals."""
    with needing("bench", "bench"):
        from deepera_graph.cli.work.bench import table as work  # noqa: PLC0415 - keeps --help quick

    work.run(
        work.Request(
            data=tuple(data),
            rankers=rankers,
            metrics=metrics,
            baseline=baseline,
            n_repeats=repeats,
            n_resamples=resamples,
            seed=seed,
            limit=limit,
            split=split,
            n_candidates=candidates,
            out=out,
            overwrite=overwrite,
            keep=keep,
            retry_failed=retry_failed,
            strict=strict,
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
        as_json=as_json,
        quiet=quiet,
    )
