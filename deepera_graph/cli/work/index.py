"""What `deepera index` does."""

import typer

from deepera_graph.cli.exits import SOME_FAILED, say
from deepera_graph.cli.work.place import Place
from deepera_graph.cli.work.terminal import progress_bar, write_json
from deepera_graph.errors import InputError
from deepera_graph.retrieval.sources import read_passages

__all__ = ["Place", "run"]


def run(source: str, place: Place, *, as_json: bool, quiet: bool) -> None:
    """Index a source.

    Raises:
        InputError: There is no such source.
        SettingsError: The options do not go together.
        StoreError: The store is missing, locked or unreachable.
    """
    passages = read_passages(source)
    with place.open(must_exist=False) as store:
        try:
            with progress_bar("indexing", hidden=quiet) as bar:
                n_indexed = store.add(passages, on_progress=lambda count: bar.move(count=count))
        except InputError as error:
            say(f"{error}; the passages before it may be indexed, none after it is")
            raise typer.Exit(SOME_FAILED) from error
        n_in_all, mode = store.count(), store.mode
    if as_json:
        write_json(
            {
                "collection": place.collection,
                "mode": mode,
                "indexed": n_indexed,
                "in_collection": n_in_all,
            }
        )
    elif not quiet:
        typer.echo(
            f"{n_indexed} passages indexed in {place.collection!r} ({mode}); "
            f"it holds {n_in_all} now"
        )
