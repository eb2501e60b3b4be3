"""The options of `deepera bench build`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from deepera_graph.cli import options
from deepera_graph.cli.exits import CODES
from deepera_graph.cli.extras import needing
from deepera_graph.cli.given import given_options

_MAKE = "What is made"
_CORPUS = "Corpus"
EPILOG = f"""[bold]Examples:[/bold]

  deepera bench build abstracts.jsonl --out lakes --model openai:gpt-5-mini --questions 200

  deepera bench build scifact/ -o ssli --model qwen3 --base-url http://localhost:8000/v1 --dry-run

  deepera bench build works.jsonl -o ours --model qwen3 --base-url http://localhost:8000/v1
  --generator file:lmqg.jsonl,guided --distractors 5 --seed 7

[bold]Documents[/bold] are JSON lines with "id", "text" and perhaps "title" and "subject"; OpenAlex
works; a folder with corpus.jsonl in the layout of BEIR, or of articles; PubMedQA's JSON.

[bold]What it does:[/bold] documents are cut into chunks of whole sentences and embedded, those that
are like no others are left out, the model makes questions, the nearest chunks are a question's
pool, and the model writes look-alikes of the answer that must pass gates. Written are
GENERATOR.SETTING.jsonl for `deepera bench table`, manifest.json, dropped.jsonl and rejected.jsonl.

With --manifest a build is made again; with FOLDER/work of the first one beside it nothing is asked,
and the bytes are the same.

A build that ends early goes on where it was when the same command is run again: answers are kept
in FOLDER/work, by prompt, model and options, whatever the server's address.

It needs more packages: pip install 'deepera-graph\\[bench]'.

{CODES}"""


def build(
    ctx: typer.Context,
    documents: Annotated[Path, typer.Argument(metavar="DOCUMENTS", help="A file or a folder.")],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the data sets go.")
    ],
    model: options.ModelName = None,
    base_url: options.BaseUrl = None,
    api_key_env: options.KeyVariable = None,
    max_concurrency: options.MaxConcurrency = None,
    requests_per_minute: options.RequestsPerMinute = None,
    tokens_per_minute: options.TokensPerMinute = None,
    questions: Annotated[
        int,
        typer.Option(metavar="N", help="Questions of each generator.", rich_help_panel=_MAKE),
    ] = 100,
    generator: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Who makes the questions: [b]lmqg[/b], from one passage; [b]guided[/b], from "
            "notes on methods, results and significance; [b]file:PATH[/b], pairs made elsewhere: "
            'JSON lines of "document" and "pairs", a list of (question, answer).',
            rich_help_panel=_MAKE,
        ),
    ] = "lmqg,guided",
    settings: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="[b]base[/b]: pools as retrieved. [b]ssli[/b]: with look-alikes.",
            rich_help_panel=_MAKE,
        ),
    ] = "base,ssli",
    contexts: Annotated[
        int, typer.Option(metavar="N", help="Passages in a pool.", rich_help_panel=_MAKE)
    ] = 30,
    distractors: Annotated[
        int, typer.Option(metavar="N", help="Look-alikes in a pool.", rich_help_panel=_MAKE)
    ] = 3,
    attempts: Annotated[
        int,
        typer.Option(metavar="N", help="Most tries at one look-alike.", rich_help_panel=_MAKE),
    ] = 3,
    golden: Annotated[
        Literal["insert", "record"],
        typer.Option(
            help="When retrieval misses the passage that answers: put it in, or name it beside "
            "the pool.",
            rich_help_panel=_MAKE,
        ),
    ] = "insert",
    per_document: Annotated[
        int,
        typer.Option(metavar="N", help="Most questions of one document.", rich_help_panel=_MAKE),
    ] = 1,
    seed: Annotated[
        int, typer.Option(metavar="S", help="Of all that is by chance.", rich_help_panel=_MAKE)
    ] = 0,
    max_chunk: Annotated[
        int, typer.Option(metavar="N", help="Most tokens of a chunk.", rich_help_panel=_CORPUS)
    ] = 200,
    min_similarity: Annotated[
        float | None,
        typer.Option(
            metavar="C",
            help="Least cosine that connects two documents.",
            show_default="what 19 of 20 documents reach",
            rich_help_panel=_CORPUS,
        ),
    ] = None,
    min_group: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Connected documents needed for them to stay; 1 keeps all.",
            rich_help_panel=_CORPUS,
        ),
    ] = 2,
    embeddings: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FACTORY|openai:MODEL",
            help="A function that returns LangChain Embeddings, or a model of OpenAI.",
            show_default="LSA over the corpus: no model",
            rich_help_panel=_CORPUS,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Only the first N documents.",
            show_default="all",
            rich_help_panel=_CORPUS,
        ),
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Build again what an earlier manifest.json describes: its settings, generators, "
            "number of documents, and its model unless --model is given; what comes out otherwise "
            "is told, with code 1.",
            show_default=False,
            rich_help_panel=_MAKE,
        ),
    ] = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_seconds: options.MaxSeconds = None,
    max_cost: options.MaxCost = None,
    input_price: options.InputPrice = None,
    output_price: options.OutputPrice = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what it would ask of the model.")
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace data sets in FOLDER; kept answers are used."),
    ] = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Build a benchmark from documents: questions, pools and look-alikes, by a chat model."""
    with needing("bench build", "bench"):
        from deepera_graph.cli.work.bench import build as work  # noqa: PLC0415 - keeps --help quick

    request = work.Request(
        documents=documents,
        out=out,
        limit=limit,
        generators=generator,
        settings=settings,
        embeddings=embeddings,
        max_concurrency=max_concurrency,
        plan={
            "n_questions": questions,
            "seed": seed,
            "n_contexts": contexts,
            "n_distractors": distractors,
            "per_document": per_document,
            "max_tokens": max_chunk,
            "golden": golden,
            "attempts": attempts,
            "min_similarity": min_similarity,
            "min_group": min_group,
        },
        budget=options.limits_of(
            max_calls=max_calls,
            max_tokens=max_tokens,
            max_seconds=max_seconds,
            max_cost=max_cost,
            input_price=input_price,
            output_price=output_price,
        ),
        overwrite=overwrite,
    )
    writer = work.Writer(
        model=model,
        base_url=base_url,
        api_key_env=api_key_env,
        limits=options.limits_of(
            requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute
        ),
    )
    if manifest is not None:
        request, writer = work.as_before(manifest, request, writer, given_options(ctx))
    work.run(request, writer, dry_run=dry_run, as_json=as_json, quiet=quiet)
