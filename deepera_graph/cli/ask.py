"""The options of `deepera ask`."""

from typing import Annotated

import typer

from deepera_graph.cli import options
from deepera_graph.cli.exits import CODES

EPILOG = f"""[bold]Examples:[/bold]

  deepera ask "Does wax coating keep apples firm?" papers.jsonl

  deepera ask "Does wax coating keep apples firm?" --collection papers --answer

  deepera ask "Does wax coating keep apples firm?" -c papers --where year='{{"gte": 2015}}'

  deepera ask "Does wax coating keep apples firm?" notes/ --model openai:gpt-5-mini --json

SOURCE is a file or folder as `deepera index` reads it, indexed in memory for this one question.
With the local backend an answer is the evidence sentences themselves, with their citations.
When no passage passes, the best of those dropped are shown, and what to try.

{CODES}"""


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What is asked.")],
    source: Annotated[
        str | None,
        typer.Argument(metavar="[SOURCE]", help="A file or folder, instead of --collection."),
    ] = None,
    *,
    collection: options.Collection = None,
    path: options.StorePath = None,
    qdrant_url: options.QdrantUrl = None,
    embeddings: options.EmbeddingsName = None,
    retrieve: Annotated[
        int,
        typer.Option(metavar="K", min=1, help="Candidates retrieved.", rich_help_panel="Store"),
    ] = 30,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE",
            help="Only passages with this metadata; VALUE may be JSON: a list, or a range as "
            '{"gte": 2015}. May be repeated.',
            rich_help_panel="Store",
        ),
    ] = None,
    answer: Annotated[
        bool, typer.Option("--answer", help="Draw an answer from what is kept.")
    ] = False,
    backend: options.BackendName = None,
    model: options.ModelName = None,
    base_url: options.BaseUrl = None,
    api_key_env: options.KeyVariable = None,
    domain: options.DomainName = None,
    mode: options.CallMode = None,
    group_size: options.GroupSize = None,
    cascade: options.Cascade = None,
    max_concurrency: options.MaxConcurrency = None,
    requests_per_minute: options.RequestsPerMinute = None,
    tokens_per_minute: options.TokensPerMinute = None,
    cache: options.CachePlace = None,
    threshold: options.Threshold = None,
    curve: options.CurvePath = None,
    probability: options.Probability = None,
    top_n: options.TopN = None,
    order: options.Order = None,
    on_empty: options.OnEmpty = None,
    on_error: options.OnError = None,
    enough: options.Enough = None,
    wave_size: options.WaveSize = None,
    no_summaries: options.NoSummaries = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the evidence for a question in a collection, a file or a folder."""
    from deepera_graph.cli.work import ask as work  # noqa: PLC0415 - keeps --help quick

    work.run(
        question,
        work.Search(
            source=source,
            place=work.Place(
                collection=collection,
                path=path,
                qdrant_url=qdrant_url,
                mode=None,
                embeddings=embeddings,
            ),
            retrieve=retrieve,
            where=where or [],
        ),
        work.Judge(
            name=backend,
            model=model,
            base_url=base_url,
            api_key_env=api_key_env,
            domain=domain,
            mode=mode,
            group_size=group_size,
            cascade=cascade,
            limits=options.limits_of(
                requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute
            ),
        ),
        work.with_threshold(
            options.settings_of(
                answer=answer,
                no_summaries=no_summaries,
                max_concurrency=max_concurrency,
                threshold=threshold,
                top_n=top_n,
                order=order,
                on_empty=on_empty,
                on_error=on_error,
                enough=enough,
                wave_size=wave_size,
            ),
            curve,
            probability,
        ),
        cache=cache,
        as_json=as_json,
        quiet=quiet,
    )
