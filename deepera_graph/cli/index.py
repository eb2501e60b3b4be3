"""The options of `deepera index`."""

from typing import Annotated, Literal

import typer

from deepera_graph.cli import options
from deepera_graph.cli.exits import CODES

EPILOG = f"""[bold]Examples:[/bold]

  deepera index papers.jsonl --collection papers

  deepera index notes/ --collection notes --path ./stores

  deepera index papers.csv --collection papers --qdrant-url http://localhost:6333

  deepera index papers.jsonl --collection papers --embeddings openai:text-embedding-3-small

[bold]A source[/bold] is a .jsonl file with an object a line, a .csv file with a header (fields
`text`, and if known `id`, `title`; others become metadata), a .txt or .md file, or a folder of
these. Texts above 200 words are cut between sentences. A passage replaces the one with the same
id, so indexing a source twice changes nothing.

Collections are kept in the folder $XDG_DATA_HOME/deepera, or ~/.local/share/deepera, for one
process at a time. A Qdrant server takes its key from the environment variable QDRANT_API_KEY.

{CODES}"""


def index(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A file or a folder.")],
    *,
    collection: options.NeededCollection,
    path: options.StorePath = None,
    qdrant_url: options.QdrantUrl = None,
    mode: Annotated[
        Literal["sparse", "dense", "hybrid"] | None,
        typer.Option(
            help="[b]sparse[/b] finds passages by their words, and needs nothing. [b]dense[/b] "
            "finds them by meaning, [b]hybrid[/b] by both; these need --embeddings.",
            show_default="hybrid with --embeddings, else sparse",
            rich_help_panel="Store",
        ),
    ] = None,
    embeddings: options.EmbeddingsName = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Put the passages of a file or folder into a collection that `deepera ask` can search."""
    from deepera_graph.cli.work import index as work  # noqa: PLC0415 - keeps --help quick

    work.run(
        source,
        work.Place(
            collection=collection,
            path=path,
            qdrant_url=qdrant_url,
            mode=mode,
            embeddings=embeddings,
        ),
        as_json=as_json,
        quiet=quiet,
    )
