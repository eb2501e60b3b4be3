"""The command `deepera`."""

from typing import Annotated

import typer

from deepera_graph import __version__
from deepera_graph.cli import bench, cache, calibrate, demo, doctor, judge, options, rerank, search
from deepera_graph.cli.console import INTERRUPTED, Commands, ignore_dropped_coroutines, leave

app = typer.Typer(
    name="deepera",
    cls=Commands,
    epilog=options.page("deepera"),
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
options.register(app, demo.demo, daily=demo.DAILY)
options.register(app, rerank.rerank, daily=rerank.DAILY)
options.register(app, search.index, daily=search.INDEX_DAILY)
options.register(app, search.ask, daily=search.ASK_DAILY)
options.register(app, calibrate.calibrate)
options.register(app, doctor.doctor)
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
