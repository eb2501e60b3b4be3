"""The options of `deepera doctor`."""

from typing import Annotated

import typer

from deepera_graph.cli import options

EPILOG = """[bold]Examples:[/bold]

  deepera doctor

  deepera doctor --base-url http://localhost:8000/v1

  deepera doctor --model openai:gpt-5-mini

  deepera doctor --model qwen3 --base-url https://llm.example.org/v1 --api-key-env LLM_KEY

  deepera doctor --qdrant-url http://localhost:6333 --json

Without options nothing is sent over any network: versions, extras, the local backend, the
judgement cache and the folder of local collections are looked at, and nothing is left behind.
With --model or --base-url the server is asked [bold]at most 8 times[/bold], for at most --timeout
seconds each: 2 requests list its models, 4 try one way each of asking for a structured answer, and
one judgement is asked for, twice if its first answer is unusable. That costs about 4 000 tokens. A
key is never shown.

[bold]Exit codes:[/bold] 0 nothing failed (warnings are no failure), 1 a check failed, 2 usage,
3 the model's server or the passage store failed."""


def doctor(
    *,
    model: options.ModelName = None,
    base_url: options.BaseUrl = None,
    api_key_env: options.KeyVariable = None,
    timeout: Annotated[
        float,
        typer.Option(metavar="S", min=0.1, help="Longest wait for one answer of the model."),
    ] = 30.0,
    cache: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|off",
            help="Folder of the judgement cache to look at; [b]off[/b] leaves it out.",
            show_default="$XDG_CACHE_HOME/deepera or ~/.cache/deepera",
        ),
    ] = None,
    path: options.StorePath = None,
    qdrant_url: options.QdrantUrl = None,
    as_json: options.AsJson = False,
) -> None:
    """Check the installation, a model's server, the store and the cache; say what to do."""
    from deepera_graph.cli.work import doctor as work  # noqa: PLC0415 - keeps --help quick

    work.run(
        model=model,
        base_url=base_url,
        api_key_env=api_key_env,
        timeout=timeout,
        cache=cache,
        path=path,
        qdrant_url=qdrant_url,
        as_json=as_json,
    )
