"""The command `deepera`."""

from typing import Annotated

import typer

from deepera_graph import __version__
from deepera_graph.cli import bench, cache, calibrate, demo, doctor, judge, rerank, search
from deepera_graph.cli.console import INTERRUPTED, Commands, ignore_dropped_coroutines, leave
from deepera_graph.cli.options import epilog, flatten

_EPILOG = epilog(
    """
    deepera demo
    deepera rerank questions.jsonl -o ranked.jsonl
    deepera index papers.jsonl --collection papers
    deepera ask "Does wax coating keep apples firm?" --collection papers --answer
    deepera calibrate labelled.jsonl -o curve.json
    deepera bench table lakes.jsonl --rankers first-stage,bm25,deepera:local
    deepera judge evaluate --data labelled.jsonl
    deepera cache stats
    deepera doctor
    """,
    "Each command has its own --help, and --json for programs. demo, rerank, index and ask have "
    "more options than --help shows: --help-all lists them.",
)

app = typer.Typer(
    name="deepera",
    cls=Commands,
    epilog=_EPILOG,
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=demo.EPILOG)(flatten(demo.demo, daily=demo.DAILY, more=demo.MORE))
app.command(epilog=rerank.EPILOG)(flatten(rerank.rerank, daily=rerank.DAILY, more=rerank.MORE))
app.command(epilog=search.INDEX_EPILOG)(
    flatten(search.index, daily=search.INDEX_DAILY, more=search.INDEX_MORE)
)
app.command(epilog=search.ASK_EPILOG)(
    flatten(search.ask, daily=search.ASK_DAILY, more=search.ASK_MORE)
)
app.command(epilog=calibrate.EPILOG)(flatten(calibrate.calibrate))
app.command(epilog=doctor.EPILOG)(flatten(doctor.doctor))
app.add_typer(bench.app, name="bench")
app.add_typer(judge.app, name="judge")
app.add_typer(cache.app, name="cache")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"deepera {__version__}")
        raise typer.Exit


@app.callback()
def deepera(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """DeepEra reads retrieved passages as evidence, and keeps those that prove something."""


def run() -> None:
    """Run the command line and end the process."""
    ignore_dropped_coroutines()
    try:
        app()
    except KeyboardInterrupt:
        leave(INTERRUPTED)
    except SystemExit as end:
        leave(end.code if isinstance(end.code, int) else 0)
