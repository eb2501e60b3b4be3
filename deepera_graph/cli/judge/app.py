"""`deepera judge` and its commands."""

import typer

from deepera_graph.cli.judge import evaluate, export, train

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=train.EPILOG)


@app.callback()
def judge() -> None:
    """Train the local judge, measure it, and export its encoder."""


app.command(epilog=train.EPILOG)(train.train)
app.command(epilog=evaluate.EPILOG)(evaluate.evaluate)
app.command(epilog=export.EPILOG)(export.export)
