"""A Qdrant server on loopback that finds vectors: REST calls, answered by an embedded client."""

from qdrant_client import QdrantClient, models

from support.qdrant_server import QdrantServer


class QdrantVectors(QdrantServer):
    """Collections of vectors without names; `found` notes what each search asked for."""

    def __init__(self):
        super().__init__()
        self.client = QdrantClient(":memory:")
        self.found = []

    def __exit__(self, *error):
        super().__exit__(*error)
        self.client.close()

    def answer(self, method, path, body):
        """The result of a request."""
        _, _, name, *rest = path.split("/")
        calls = {
            ("GET", "exists"): lambda: {"exists": self.client.collection_exists(name)},
            ("GET",): lambda: self._describe_collection(name),
            ("PUT",): lambda: self._create(name, body),
            ("DELETE",): lambda: self.client.delete_collection(name),
            ("PUT", "points"): lambda: self._put(name, body),
            ("POST", "points", "count"): lambda: {"count": self.client.count(name).count},
            ("POST", "points", "query"): lambda: self._search(name, body),
        }
        return calls[(method, *rest)]()

    def _create(self, name, body):
        size = models.VectorParams(**body["vectors"])
        return self.client.create_collection(name, size, metadata=body["metadata"])

    def _put(self, name, body):
        self.client.upsert(name, [models.PointStruct(**one) for one in body["points"]])
        return {"operation_id": 1, "status": "completed"}

    def _describe_collection(self, name):
        config = self.client.get_collection(name).config
        self.made = {
            "vectors": config.params.vectors.model_dump(mode="json"),
            "sparse_vectors": None,
            "metadata": config.metadata,
        }
        return self._describe()

    def _search(self, name, body):
        self.found.append(body)
        only = body.get("filter")
        points = self.client.query_points(
            name,
            query=body["query"]["nearest"],
            query_filter=models.Filter.model_validate(only) if only else None,
            limit=body["limit"],
            with_payload=False,
        ).points
        return {"points": [one.model_dump(mode="json") for one in points]}
