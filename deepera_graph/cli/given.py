"""Which options of a command were given, and which have their defaults."""

import typer


def given_options(ctx: typer.Context) -> frozenset[str]:
    """Return the options that are on the command line, e.g. ``--seed``."""
    sources = {one: ctx.get_parameter_source(one.name or "") for one in ctx.command.params}
    return frozenset(
        one.opts[0]
        for one, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    )
