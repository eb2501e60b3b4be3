"""Where the vectors of a base are kept while it is built: a file beside it, or a Qdrant server."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from deepera_graph.errors import InputError, StoreError
from deepera_graph.papers.library.store import count_vectors, read_about
from deepera_graph.papers.library.vector_server import VectorServer, check_url
from deepera_graph.papers.library.vectors import (
    VectorsInfo,
    append_rows,
    check_embeddings,
    name_of,
    open_rows,
    probe,
    vectors_path,
)
from deepera_graph.papers.library.writing import Writer
from deepera_graph.stores.vectors import Floats

_MOVED_AT_ONCE = 2_000


class BaseVectors:
    """The vectors of a base that is being built; `open_vectors` makes it."""

    def __init__(self, writer: Writer, info: VectorsInfo, server: VectorServer | None) -> None:
        self._writer, self.info, self._server = writer, info, server

    def put(self, rows: Floats, numbers: Sequence[int]) -> None:
        """Keep the vectors of papers, and commit that they are there."""
        if rows.shape[1] != self.info.dimensions:
            raise InputError(
                f"vectors must have {self.info.dimensions} dimensions, as others of the base have, "
                f"got {rows.shape[1]}"
            )
        if self._server is None:
            after = append_rows(vectors_path(self._writer.path), self.info, rows)
        else:
            self._server.put(numbers, rows)
            after = replace(self.info, count=self.info.count + len(rows))
        places = range(self.info.count, after.count)
        self._writer.place_vectors(zip(numbers, places, strict=True), after.to_json())
        self.info = after


@contextmanager
def open_vectors(writer: Writer, embeddings: Any, url: str | None) -> Iterator[BaseVectors]:
    """Open the vectors of a base; begin them if it has none, or lost their file.

    Vectors that lie beside the base are moved to a server that is named later.
    """
    info, server = prepare_vectors(writer, embeddings, url), None
    try:
        if info.url:
            server = VectorServer(info)
            info = _settle(writer, info, server)
        yield BaseVectors(writer, info, server)
    finally:
        if server is not None:
            server.close()


def prepare_vectors(writer: Writer, embeddings: Any, url: str | None = None) -> VectorsInfo:
    """Return what the base says of its vectors, or is to say of those that begin now."""
    told = read_about(writer.db, "vectors")
    wanted = check_url(url) if url else ""
    path = vectors_path(writer.path)
    if told:
        info = VectorsInfo.from_json(told)
        if info.url or path.is_file():
            check_embeddings(info, embeddings, str(writer.path))
            if not info.url:
                open_rows(path, info)
            return replace(info, url=wanted or info.url)
    writer.forget_vectors()
    path.unlink(missing_ok=True)
    first = probe(embeddings)
    return VectorsInfo(
        base=read_about(writer.db, "uid"),
        embeddings=name_of(embeddings),
        dimensions=len(first),
        probe=first,
        url=wanted,
    )


def _settle(writer: Writer, info: VectorsInfo, server: VectorServer) -> VectorsInfo:
    """See that a server has the vectors of a base: begun, as they were, or moved to it."""
    told = read_about(writer.db, "vectors")
    before = VectorsInfo.from_json(told).url if told else None
    if before is None:
        server.begin()
    elif not before:
        info = _move(writer, info, server)
    else:
        try:
            server.check(count_vectors(writer.db))
        except StoreError as error:
            if before == info.url:
                raise
            raise StoreError(
                f"the vectors of {str(writer.path)!r} are on {before}, not on {info.url}: {error}"
            ) from error
        if before != info.url:  # the server has another address now
            writer.place_vectors((), info.to_json())
    return info


def _move(writer: Writer, info: VectorsInfo, server: VectorServer) -> VectorsInfo:
    """Move vectors from the file to a server; the file goes when all of them are there."""
    path = vectors_path(writer.path)
    rows = open_rows(path, replace(info, url=""), checksum=False)
    places = writer.db.execute("SELECT n, place FROM vectors ORDER BY n").fetchall()
    server.begin()
    for start in range(0, len(places), _MOVED_AT_ONCE):
        some = places[start : start + _MOVED_AT_ONCE]
        server.put([n for n, _ in some], rows[[place for _, place in some]])
    server.check(len(places))
    moved = replace(info, count=len(places), checksum=0)
    writer.place_vectors(((n, place) for place, (n, _) in enumerate(places)), moved.to_json())
    del rows
    path.unlink()
    return moved
