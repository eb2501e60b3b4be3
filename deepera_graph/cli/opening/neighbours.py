"""The neighbours of a library: found, and brought up to date when its passages change."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from deepera_graph.cli.opening.stores import find_embeddings, neighbours_of
from deepera_graph.cli.shared import places
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import say
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.multihop.passages.graph import Kind, NeighbourGraph
    from deepera_graph.retrieval.collections.passage_store import PassageStore


def find_neighbours(
    opened: PassageStore,
    place: places.PlaceOptions,
    library: str,
    *,
    wanted: int | None,
    by: Kind | None,
    quiet: bool,
) -> NeighbourGraph | None:
    """Find the neighbours of what a library holds, or update them; None if unwanted."""
    folder = neighbours_of(place, library)
    if wanted is None and not folder.is_dir():
        return None
    from deepera_graph.multihop.passages.graph import K, NeighbourGraph

    known, n = NeighbourGraph.load(folder) if folder.is_dir() else None, opened.count()
    own = opened.vectorstore.embeddings
    k = wanted or (known.k if known is not None else K)
    if k >= n:
        has = f"{library!r} has {count(n, 'passage')}"
        again = f"give --neighbours {k} again when there are more"
        if n < 2:
            say(f"note: {has}, so it has no neighbours to find; {again}")
            shutil.rmtree(folder, ignore_errors=True)
            return None
        if not quiet:
            say(f"note: {has}, so each gets {count(n - 1, 'neighbour')}, not {k}; {again}")
        k = n - 1
    with progress_bar("finding neighbours", total=n, hidden=quiet) as bar:
        using = None if own is not None else find_embeddings("local")
        by = by or (known.kind if known is not None else None)
        if known is not None and (k, by) == (known.k, known.kind):
            graph = known.update(opened, using, on_progress=bar.reach)
        else:
            graph = NeighbourGraph.of_store(
                opened, k, by=by, embeddings=using, on_progress=bar.reach
            )
    graph.save(folder)
    return graph


def drop_neighbours(opened: PassageStore, place: places.PlaceOptions, library: str) -> None:
    """Leave passages out of the neighbours of a library that it does not hold any more."""
    folder = neighbours_of(place, library)
    if not folder.is_dir():
        return
    from deepera_graph.multihop.passages.graph import NeighbourGraph

    if opened.count() < 2:
        shutil.rmtree(folder)
    else:
        NeighbourGraph.load(folder).update(opened).save(folder)
