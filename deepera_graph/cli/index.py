"""`deepera index`: fill a library, with passages to ask and papers to search."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.console import count, progress_bar, say, tell
from deepera_graph.cli.shared.declaring import opt
from deepera_graph.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepera_graph.multihop.passages.graph import NeighbourGraph
    from deepera_graph.papers.library.building import NamedPapers
    from deepera_graph.retrieval.collections.passage_store import PassageStore

DAILY = {
    "index": (
        "library", "path", "qdrant_url", "mode", "embeddings", "neighbours", "max_words",
        "verbose", "as_json", "quiet",
    ),
}  # fmt: skip
_store = partial(opt, panel="Store")


@dataclass(frozen=True, kw_only=True)
class NewStoreOptions(places.StoreOptions):
    """Where passages go."""

    mode: Literal["sparse", "dense", "hybrid"] | None = _store(
        "[b]sparse[/b] finds passages by their words, and needs nothing. [b]dense[/b] finds them "
        "by meaning, [b]hybrid[/b] by both; these need --embeddings.",
        "--search",
        "--mode",
        brief="[b]sparse[/b] finds words; [b]dense[/b] and [b]hybrid[/b] need --embeddings.",
        metavar="HOW",
        shown="hybrid with --embeddings, else sparse",
    )
    neighbours: int | None = _store(
        "Also find the N nearest neighbours of every passage, e.g. 16, for `deepera ask "
        "--adaptive`. A library that has neighbours has them brought up to date whenever "
        "passages are added.",
        brief="Also find the N nearest neighbours of every passage, for `ask --adaptive`.",
        metavar="N",
        least=1,
    )
    neighbours_by: Literal["meaning", "words"] | None = _store(
        "With --neighbours: whether near is what means the same, or what has the same words.",
        metavar="HOW",
        shown="meaning if the library is searched by words, else words",
    )


@dataclass(frozen=True, kw_only=True)
class IndexOutputOptions(options.OutputOptions):
    """What is told."""

    verbose: bool = opt(
        "Name every record and file that was skipped, and why.",
        "--verbose",
        "-v",
        default=False,
    )


class _Noted:
    """The papers that records name; gathered from the first on, as their module takes a while."""

    @cached_property
    def papers(self) -> NamedPapers:
        from deepera_graph.papers.library.building import NamedPapers

        return NamedPapers()

    def note(self, record: Mapping[str, Any]) -> None:
        self.papers.note(record)


def index(
    source: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help="Files, folders, ZIP archives or patterns."),
    ],
    *,
    store: NewStoreOptions,
    keep: places.KeepOptions,
    reading: places.ReadOptions,
    output: IndexOutputOptions,
) -> None:
    """Put files or folders into a library: their passages, and the papers they are of."""
    from deepera_graph.cli.opening.sources import PassageSource, batches
    from deepera_graph.cli.opening.stores import (
        find_papers,
        keep_embedded,
        keep_with,
        open_collection,
    )

    keep_with(None, keep)  # says what is wrong with it
    if store.neighbours_by is not None and store.neighbours is None:
        raise SettingsError("--neighbours-by goes with --neighbours")
    noted = _Noted()
    read = PassageSource(*source, reading=reading, verbose=output.verbose, on_record=noted.note)
    read.check()
    from deepera_graph.papers.library.building import embed_papers
    from deepera_graph.papers.library.store import count_papers
    from deepera_graph.papers.library.writing import Writer

    file = Path(find_papers(store, store.library or ""))
    with open_collection(store, mode=store.mode, must_exist=False) as opened, ExitStack() as open_:
        if opened.embeddings_name and not opened.is_new and store.embeddings is None:
            made_by = f"{store.library!r} was made with embeddings ({opened.embeddings_name})"
            say(f"{made_by}, so these passages are embedded with them, too")
        embedded = keep_embedded(opened, keep)
        try:
            how = batches(opened.embeddings_name)
            n_indexed = read.fill(opened, quiet=output.quiet, embedded=embedded, **how)
        except BaseException:
            opened.drop_if_new()
            raise
        file.parent.mkdir(parents=True, exist_ok=True)
        writer = open_.enter_context(Writer(file, merge="titles"))
        noted.papers.put(writer)
        if (own := opened.vectorstore.embeddings) is not None:
            embed_papers(writer, own)
        n_papers = count_papers(writer.db)
        n_in_all, mode = opened.count(), opened.mode
        graph = _find_neighbours(opened, store, quiet=output.quiet)
    read.tell()
    plain: dict[str, Any] = {
        "mode": mode,
        "indexed": n_indexed,
        "passages": n_in_all,
        "papers": n_papers,
    }
    plain["files"] = dict(read.forms.most_common())
    if graph is not None:
        plain["neighbours"] = {"k": graph.k, "by": graph.kind, "passages": len(graph)}
    of_papers = f", of {count(n_papers, 'paper')}" if n_papers else ""
    skipped = [{"place": one.place, "reason": one.reason} for one in read.skipped]
    tell(
        output,
        {"library": store.library, **plain, "skipped": skipped},
        lambda: (
            f"{count(n_indexed, 'passage')} indexed in {store.library!r} ({mode}); "
            f"it holds {n_in_all} now{of_papers}{read.describe_files()}"
            + _describe_neighbours(graph)
        ),
    )
    raise typer.Exit(read.exit_code)


def _find_neighbours(
    opened: PassageStore, store: NewStoreOptions, *, quiet: bool
) -> NeighbourGraph | None:
    """Find the neighbours of what a library holds, or update them; None if unwanted."""
    from deepera_graph.cli.opening.stores import find_embeddings, neighbours_of

    folder = neighbours_of(store, store.library or "")
    if store.neighbours is None and not folder.is_dir():
        return None
    from deepera_graph.multihop.passages.graph import K, NeighbourGraph

    known, n = NeighbourGraph.load(folder) if folder.is_dir() else None, opened.count()
    own = opened.vectorstore.embeddings
    k = store.neighbours or (known.k if known is not None else K)
    if k >= n:
        has = f"{store.library!r} has {count(n, 'passage')}"
        again = f"give --neighbours {k} again when there are more"
        if n < 2:
            say(f"note: {has}, so it has no neighbours to find; {again}")
            return None
        if not quiet:
            say(f"note: {has}, so each gets {count(n - 1, 'neighbour')}, not {k}; {again}")
        k = n - 1
    with progress_bar("finding neighbours", total=n, hidden=quiet) as bar:

        def watch(n: int) -> None:
            bar.move(to=n, count=n)

        using = None if own is not None else find_embeddings("local")
        by = store.neighbours_by or (known.kind if known is not None else None)
        if known is not None and (k, by) == (known.k, known.kind):
            graph = known.update(opened, using, on_progress=watch)
        else:
            graph = NeighbourGraph.of_store(opened, k, by=by, embeddings=using, on_progress=watch)
    graph.save(folder)
    return graph


def _describe_neighbours(graph: NeighbourGraph | None) -> str:
    if graph is None:
        return ""
    return f"; {count(graph.k, 'neighbour')} of each by {graph.kind}"
