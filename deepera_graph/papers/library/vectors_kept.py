"""Where the vectors of a base are kept: a file beside it, or a Qdrant server.

On a server there is a point a paper, under the number it has in the base. A base says where its
vectors are, what made them and how many there are; its collection says whose they are. Limits and
ties are settled by the base, so that both places give the same answers.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from deepera_graph.errors import InputError, SettingsError, StoreError
from deepera_graph.papers.library import count_vectors, read_about, vectors
from deepera_graph.papers.library.vectors import VectorsInfo
from deepera_graph.stores.embeddings import Floats

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

    from deepera_graph.papers.library.writing import Writer


_MOVED_AT_ONCE = 2_000
KEY_VARIABLE = "QDRANT_API_KEY"
_FIRST, _GROWTH = 256, 8  # points asked for, and how many times as many if they do not do
_PUT_AT_ONCE = 512


def check_url(url: str) -> str:
    """Return the address of a server as a base keeps it."""
    head, _, rest = url.partition("://")
    if head not in ("http", "https") or not rest.strip("/"):
        raise SettingsError(f"the vectors' server must be an http:// or https:// address: {url!r}")
    if "@" in rest.partition("/")[0]:
        raise SettingsError(
            f"the address of a server of vectors is kept in the base and must hold no login; its "
            f"key is read from {KEY_VARIABLE}"
        )
    return url.rstrip("/")


class VectorServer:
    """The vectors of one base on a Qdrant server; safe in many threads at once.

    The key is in ``QDRANT_API_KEY``; a `StoreError` says that the server does not answer.
    """

    def __init__(self, info: VectorsInfo) -> None:
        from qdrant_client import models  # noqa: PLC0415 - slow

        from deepera_graph.retrieval.collections.connection import (  # noqa: PLC0415 - slow
            connect,
            describe_place,
            wrap_errors,
        )

        self.info, self.url = info, check_url(info.url)
        self.collection = f"papers-{info.base}"
        self.place = f"{describe_place(None, self.url)}, collection {self.collection!r}"
        key = os.environ.get(KEY_VARIABLE) or None
        self._models, self._asking = models, partial(wrap_errors, self.place)
        self._client: QdrantClient = connect(None, self.url, api_key=key, must_exist=False)

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def begin(self) -> None:
        """Make the collection anew, with nothing in it."""
        models = self._models
        # Vectors have length 1, so the dot product is the cosine, and none is scaled once more.
        size = models.VectorParams(size=self.info.dimensions, distance=models.Distance.DOT)
        record = {"mode": "dense", "embeddings": self.info.embeddings, "papers": self.info.base}
        with self._asking():
            self._client.delete_collection(self.collection)
            self._client.create_collection(
                self.collection, vectors_config=size, metadata={"deepera": record}
            )

    def put(self, numbers: Sequence[int], rows: Floats) -> None:
        """Write the vectors of papers, and wait until they can be found."""
        models = self._models
        for start in range(0, len(numbers), _PUT_AT_ONCE):
            some = slice(start, start + _PUT_AT_ONCE)
            points = [
                models.PointStruct(id=int(number), vector=[float(one) for one in row], payload={})
                for number, row in zip(numbers[some], rows[some], strict=True)
            ]
            with self._asking():
                self._client.upsert(self.collection, points=points, wait=True)

    def check(self, n: int) -> None:
        """See that the collection has the *n* vectors of the base."""
        with self._asking():
            if not self._client.collection_exists(self.collection):
                raise StoreError(f"{self.place} is missing; build the base again")
            config = self._client.get_collection(self.collection).config
            found = self._client.count(self.collection, exact=True).count
        told = dict((config.metadata or {}).get("deepera") or {})
        size = getattr(config.params.vectors, "size", None)
        for what, has, wanted in (
            ("base", told.get("papers"), self.info.base),
            ("embeddings", told.get("embeddings"), self.info.embeddings),
            ("size", size, self.info.dimensions),
        ):
            if has not in (None, wanted):
                raise StoreError(
                    f"the vectors of {self.place} are of another {what}: {has!r}, and the base's "
                    f"are {wanted!r}"
                )
        if found < n:
            raise StoreError(
                f"{self.place} has {found} vectors, and the base says {n}; build it again with "
                "overwrite"
            )

    def rank(
        self, query: Floats, allowed: Collection[int] | None
    ) -> Iterator[list[tuple[float, int]]]:
        """Yield cosine and number of the best papers, ever more, those that tie all together."""
        # The server compares all vectors (``exact``), not only those near in its graph.
        limit = _FIRST
        while True:
            found = self._ask(query, limit, allowed)
            is_all = len(found) < limit
            edge = None if is_all else found[-1][0]
            yield [one for one in found if one[0] != edge]  # more may tie with the last
            if is_all:
                return
            limit *= _GROWTH

    def _ask(
        self, query: Floats, limit: int, allowed: Collection[int] | None
    ) -> list[tuple[float, int]]:
        models, only = self._models, None
        if allowed is not None:
            only = models.Filter(must=[models.HasIdCondition(has_id=[*allowed])])
        with self._asking():
            found = self._client.query_points(
                self.collection,
                query=[float(one) for one in query],
                query_filter=only,
                limit=limit,
                search_params=models.SearchParams(exact=True),
                with_payload=False,
            )
        pairs = [(round(one.score, vectors.DECIMALS), int(one.id)) for one in found.points]
        return sorted(pairs, key=lambda one: (-one[0], one[1]))

    def drop(self) -> None:
        """Remove the collection."""
        with self._asking():
            self._client.delete_collection(self.collection)


def open_server(info: VectorsInfo, n: int) -> VectorServer:
    """Connect to the server that has the vectors of a base, and see that all *n* are there."""
    server = VectorServer(info)
    try:
        server.check(n)
    except BaseException:
        server.close()
        raise
    return server


def drop_vectors(told: str) -> None:
    """Remove the vectors that a base has on a server, if what it says of them names one."""
    info = VectorsInfo.from_json(told) if told else None
    if info is not None and info.url:
        with closing(VectorServer(info)) as server:
            server.drop()


class BaseVectors:
    """The vectors of a base that is being built; `open_vectors` makes it."""

    def __init__(self, writer: "Writer", info: VectorsInfo, server: VectorServer | None) -> None:
        self._writer, self.info, self._server = writer, info, server

    def put(self, rows: Floats, numbers: Sequence[int]) -> None:
        """Keep the vectors of papers, and commit that they are there."""
        if rows.shape[1] != self.info.dimensions:
            raise InputError(
                f"vectors must have {self.info.dimensions} dimensions, as others of the base have, "
                f"got {rows.shape[1]}"
            )
        if self._server is None:
            after = vectors.append_rows(vectors.vectors_path(self._writer.path), self.info, rows)
        else:
            self._server.put(numbers, rows)
            after = replace(self.info, count=self.info.count + len(rows))
        places = range(self.info.count, after.count)
        self._writer.place_vectors(zip(numbers, places, strict=True), after.to_json())
        self.info = after


@contextmanager
def open_vectors(writer: "Writer", embeddings: Any, url: str | None) -> Iterator[BaseVectors]:
    """Open the vectors of a base; begin them if it has none, or lost their file."""
    # Vectors that lie beside the base are moved to a server that is named later.
    info, server = prepare_vectors(writer, embeddings, url), None
    try:
        if info.url:
            server = VectorServer(info)
            info = _settle(writer, info, server)
        yield BaseVectors(writer, info, server)
    finally:
        if server is not None:
            server.close()


def prepare_vectors(writer: "Writer", embeddings: Any, url: str | None = None) -> VectorsInfo:
    """Return what the base says of its vectors, or is to say of those that begin now."""
    told = read_about(writer.db, "vectors")
    wanted = check_url(url) if url else ""
    path = vectors.vectors_path(writer.path)
    if told:
        info = VectorsInfo.from_json(told)
        if info.url or path.is_file():
            vectors.check_embeddings(info, embeddings, str(writer.path))
            if not info.url:
                vectors.open_rows(path, info)
            return replace(info, url=wanted or info.url)
    writer.forget_vectors()
    path.unlink(missing_ok=True)
    first = vectors.probe(embeddings)
    return VectorsInfo(
        base=read_about(writer.db, "uid"),
        embeddings=vectors.name_of(embeddings),
        dimensions=len(first),
        probe=first,
        url=wanted,
    )


def _settle(writer: "Writer", info: VectorsInfo, server: VectorServer) -> VectorsInfo:
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


def _move(writer: "Writer", info: VectorsInfo, server: VectorServer) -> VectorsInfo:
    """Move vectors from the file to a server; the file goes when all of them are there."""
    path = vectors.vectors_path(writer.path)
    rows = vectors.open_rows(path, replace(info, url=""), checksum=False)
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
