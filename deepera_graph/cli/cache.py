"""The options of `deepera cache`."""

from typing import Annotated

import typer

from deepera_graph.cli import options
from deepera_graph.cli.exits import CODES

EPILOG = f"""[bold]Examples:[/bold]

  deepera cache stats

  deepera cache prune --older-than 30 --max-mb 500

  deepera cache clear --cache ./judgements

Commands that ask a chat model keep its answers, and never pay for an equal one twice; --cache off
turns that off. An answer depends on the passage, the question, the model, the prompts and the
version of this package; keys are not kept.

{CODES}"""

Folder = Annotated[
    str | None,
    typer.Option(
        "--cache",
        metavar="DIR",
        help="Folder of the cache.",
        show_default="$XDG_CACHE_HOME/deepera or ~/.cache/deepera",
    ),
]

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=EPILOG)


@app.callback()
def cache() -> None:
    """Look into the judgement cache, or make it smaller."""


@app.command(epilog=EPILOG)
def stats(*, where: Folder = None, as_json: options.AsJson = False) -> None:
    """Say how many answers the cache holds, and how large it is."""
    from deepera_graph.cli.work import cache as work  # noqa: PLC0415 - keeps --help quick

    work.stats(where, as_json=as_json)


@app.command(epilog=EPILOG)
def clear(
    *, where: Folder = None, as_json: options.AsJson = False, quiet: options.Quiet = False
) -> None:
    """Remove every answer."""
    from deepera_graph.cli.work import cache as work  # noqa: PLC0415 - keeps --help quick

    work.clear(where, as_json=as_json, quiet=quiet)


@app.command(epilog=EPILOG)
def prune(
    *,
    older_than: Annotated[
        float | None,
        typer.Option(
            metavar="DAYS", min=0, help="Remove what was not used for so long.", show_default=False
        ),
    ] = None,
    max_mb: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Then remove what was not used for longest, until N megabytes are left.",
            show_default=False,
        ),
    ] = None,
    where: Folder = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Remove answers that were not used for long, or are too many."""
    from deepera_graph.cli.work import cache as work  # noqa: PLC0415 - keeps --help quick

    work.prune(where, older_than=older_than, max_mb=max_mb, as_json=as_json, quiet=quiet)
