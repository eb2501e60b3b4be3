"""As much of a Qdrant server as an indexing asks of one: points by id, and how they are kept."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class QdrantServer:
    """One collection on loopback, which notes what changes it; use it in a `with` block."""

    def __init__(self):
        self.made = None  # the body that made the collection
        self.links = 16
        self.points = {}
        self.asked = []
        self.key = None  # what a request must bring, if anything
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def changes(self):
        """What was changed, in order: its kind, and the request's body."""
        return list(self.asked)

    def answer(self, method, path, body):
        """The result of a request."""
        last = path.rpartition("/")[2]
        if last == "exists":
            return {"exists": self.made is not None}
        if last == "count":
            return {"count": len(self.points)}
        if last == "points" and method == "POST":
            return [self.points[one] for one in body["ids"] if one in self.points]
        if last == "points":
            self.asked.append(("points", body))
            self.points |= {
                one["id"]: {"id": one["id"], "payload": one["payload"]} for one in body["points"]
            }
            return {"operation_id": 1, "status": "completed"}
        if method == "GET":
            return self._describe()
        self.asked.append(("create" if method == "PUT" else "update", body))
        self.made = self.made or body
        self.links = (body.get("hnsw_config") or {}).get("m", self.links)
        return True

    def _describe(self):
        params = {name: self.made[name] for name in ("vectors", "sparse_vectors")}
        hnsw = {"m": self.links, "ef_construct": 100, "full_scan_threshold": 10000}
        optimizer = {
            "deleted_threshold": 0.2,
            "vacuum_min_vector_number": 1000,
            "default_segment_number": 0,
            "flush_interval_sec": 5,
        }
        config = {"params": params, "hnsw_config": hnsw, "optimizer_config": optimizer}
        config["metadata"] = self.made["metadata"]
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "config": config,
            "payload_schema": {},
        }

    def _handler(self):
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size) or b"null")
                refused = owner.key is not None and self.headers.get("api-key") != owner.key
                path = self.path.partition("?")[0]
                found = None if refused else owner.answer(self.command, path, body)
                raw = json.dumps({"result": found, "status": "ok", "time": 0.0}).encode()
                self.send_response(401 if refused else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            do_PUT = do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - names the base class looks for

            def log_message(self, *args):
                pass

        return Handler
