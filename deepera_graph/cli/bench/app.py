"""`deepera bench` and its commands."""

import typer

from deepera_graph.cli.bench import build, natural, realism, report, study, table

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=table.EPILOG)


@app.callback()
def bench() -> None:
    """Measure rerankers on labelled questions."""


app.command(epilog=table.EPILOG)(table.table)
app.command(epilog=build.EPILOG)(build.build)
app.command(epilog=natural.EPILOG)(natural.natural)
app.command(epilog=realism.EPILOG)(realism.realism)
app.command(epilog=study.EPILOG)(study.study)
app.command(epilog=report.EPILOG)(report.report)
