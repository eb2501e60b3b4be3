"""`deepera bench` and its commands."""

import typer

from deepera_graph.cli.bench import table

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=table.EPILOG)


@app.callback()
def bench() -> None:
    """Measure rerankers on labelled questions."""


app.command(epilog=table.EPILOG)(table.table)
