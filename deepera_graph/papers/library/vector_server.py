"""Vectors of papers on a Qdrant server: a point a paper, under the number it has in the base.

A base says where its vectors are, what made them and how many there are; its collection says whose
they are. Limits and ties are settled by the base, so that both places give the same answers.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.papers.library.vectors import DECIMALS, VectorsInfo
from deepera_graph.stores.vectors import Floats

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

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

    Args:
        info: What the base says of its vectors, `url` among it. The key of the server is read from
            the environment variable ``QDRANT_API_KEY``.

    Raises:
        StoreError: In every method: the server does not answer, or refuses.
    """

    def __init__(self, info: VectorsInfo) -> None:
        from deepera_graph.retrieval.collections.connection import connect, describe_place  # noqa: PLC0415 - slow

        self.info, self.url = info, check_url(info.url)
        self.collection = f"papers-{info.base}"
        self.place = f"{describe_place(None, self.url)}, collection {self.collection!r}"
        key = os.environ.get(KEY_VARIABLE) or None
        self._client: QdrantClient = connect(None, self.url, api_key=key, must_exist=False)

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def begin(self) -> None:
        """Make the collection anew, with nothing in it."""
        from qdrant_client import models  # noqa: PLC0415 - of a slow import

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
        from qdrant_client import models  # noqa: PLC0415 - of a slow import

        for start in range(0, len(numbers), _PUT_AT_ONCE):
            some = slice(start, start + _PUT_AT_ONCE)
            points = [
                models.PointStruct(id=int(number), vector=[float(one) for one in row], payload={})
                for number, row in zip(numbers[some], rows[some], strict=True)
            ]
            with self._asking():
                self._client.upsert(self.collection, points=points, wait=True)

    def check(self, n: int) -> None:
        """See that the collection has the *n* vectors of the base.

        Raises:
            StoreError: It is missing, of another base, other embeddings or another size, or has
                fewer vectors; or the server does not answer.
        """
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
        """Yield cosine and number of the best papers, ever more, those that tie all together.

        The server compares all vectors (``exact``), not only those near in its graph.
        """
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
        from qdrant_client import models  # noqa: PLC0415 - of a slow import

        only = None
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
        pairs = [(round(one.score, DECIMALS), int(one.id)) for one in found.points]
        return sorted(pairs, key=lambda one: (-one[0], one[1]))

    def drop(self) -> None:
        """Remove the collection."""
        with self._asking():
            self._client.delete_collection(self.collection)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        from deepera_graph.retrieval.collections.connection import wrap_errors  # noqa: PLC0415 - slow

        with wrap_errors(self.place):
            yield


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
