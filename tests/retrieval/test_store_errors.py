"""Stores that are missing, in use, broken, out of reach, or that refuse."""

import os
import pickle
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import format_exception

import pytest
from langchain_core.documents import Document
from qdrant_client import QdrantClient

from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.retrieval.collections.connection import connect
from deepera_graph.retrieval.collections.store import open_store

HOLD = """
import sys
from deepera_graph.retrieval.collections.store import open_store
with open_store("held", path=sys.argv[1]):
    print("open", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def answering(status, body=b'{"status": {"error": "no"}}'):
    """A server on loopback that gives every request the same answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_POST = do_GET  # noqa: N815 - names the base class looks for

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_missing_collection_is_named_with_those_that_exist(tmp_path):
    for name in ("whales", "birds"):
        open_store(name, path=tmp_path).close()
    with pytest.raises(StoreError, match=r"unknown library 'fish'; available: 'birds', 'whales'"):
        open_store("fish", path=tmp_path, must_exist=True)


def test_a_missing_collection_in_memory_is_an_error():
    with pytest.raises(StoreError, match="unknown library 'fish'; no libraries exist"):
        open_store("fish", must_exist=True)


def test_a_mistyped_folder_is_an_error_and_is_not_made(tmp_path):
    with pytest.raises(StoreError, match=r"no passage store in the folder .*typo"):
        open_store("fish", path=tmp_path / "typo", must_exist=True)
    assert not (tmp_path / "typo").exists()


@pytest.mark.full
def test_a_folder_open_in_another_process_is_refused_until_it_is_free(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreError, match=r"another process .* Qdrant server \(--qdrant-url\)"):
            open_store("held", path=tmp_path)
        holder.stdin.write("\n")
    with open_store("held", path=tmp_path, must_exist=True) as store:
        assert store.count() == 0


def test_qdrants_own_lock_is_told_the_same_way(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "deepera_graph.retrieval.collections.connection._refuse_if_locked", lambda folder: None
    )
    monkeypatch.setattr(QdrantClient, "__init__", raise_locked)
    with pytest.raises(StoreError, match="another process"):
        open_store("held", path=tmp_path)


def raise_locked(*args, **kwargs):
    raise RuntimeError("already accessed by another instance of Qdrant client")


def test_a_file_is_no_store(tmp_path):
    file = tmp_path / "passages.txt"
    file.write_text("hello")
    with pytest.raises(StoreError, match=r"passages\.txt.* cannot be opened"):
        open_store("c", path=file)


def test_a_broken_folder_is_no_store(tmp_path):
    (tmp_path / "meta.json").write_text("{broken")
    with pytest.raises(StoreError, match="cannot be opened as a passage store"):
        open_store("c", path=tmp_path)


def test_an_unreachable_server_is_named(closed_port):
    url = f"http://127.0.0.1:{closed_port}"
    with pytest.raises(StoreError, match=f"the Qdrant server at {url} cannot be reached: "):
        open_store("c", url=url)


def test_a_login_in_the_address_is_not_shown(closed_port):
    with pytest.raises(StoreError) as error:
        open_store("c", url=f"http://me:s3cret@127.0.0.1:{closed_port}")
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_an_error_without_the_key(status):
    with answering(status) as url, pytest.raises(StoreError) as error:
        open_store("c", url=url, api_key="s3cret")
    assert str(error.value) == f"the Qdrant server at {url} refuses the API key (HTTP {status})"


@pytest.mark.parametrize("status", [200, 404, 500])
def test_a_key_that_a_server_repeats_is_not_shown(status):
    key = "-".join(["s3cret", "key"])  # as the traceback shows lines of this file, too
    body = b'{"status": {"error": "api-key: %s"}}' % key.encode()
    with answering(status, body) as url, pytest.raises(StoreError) as error:
        open_store("c", url=url, api_key=key)
    assert key not in "".join(format_exception(error.value))


def test_a_server_error_keeps_its_reason():
    body = b'{"status": {"error": "disk full"}}'
    with answering(500, body) as url, pytest.raises(StoreError, match=r"HTTP 500: .*disk full"):
        open_store("c", url=url)


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"[]"])
def test_a_server_that_is_no_qdrant_is_named(body):
    with answering(200, body) as url, pytest.raises(StoreError, match=f"server at {url} gave no"):
        open_store("c", url=url)


def test_a_key_over_plain_http_to_another_machine_still_warns():
    with pytest.warns(UserWarning, match="insecure connection"):
        connect(None, "http://192.0.2.1:6333", api_key="s3cret", must_exist=False).close()


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "http://[::1"])
def test_a_malformed_address_is_an_error(url):
    with pytest.raises(SettingsError, match="no address of a Qdrant server"):
        open_store("c", url=url)


def test_a_folder_and_a_server_together_are_an_error(tmp_path):
    with pytest.raises(SettingsError, match="in a folder or on a server"):
        open_store("c", path=tmp_path, url="http://127.0.0.1:6333")


@pytest.mark.parametrize("name", ["", "..", "a/b", "x" * 300])
def test_a_name_that_is_none_is_an_error(tmp_path, name):
    with pytest.raises(SettingsError, match="no library can be named"):
        open_store(name, path=tmp_path)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs POSIX users")
@pytest.mark.parametrize("has_lock", [True, False])
def test_a_collection_in_a_read_only_folder_can_be_asked_and_not_written(has_lock):
    with TemporaryDirectory() as folder:
        wax = [Document(id="a", page_content="Wax kept apples firm.")]
        with open_store("wax", path=folder) as store:
            store.add(wax)
        if not has_lock:
            Path(folder, ".lock").unlink()
        for one in (Path(folder), *Path(folder).rglob("*")):
            one.chmod(0o555 if one.is_dir() else 0o444)
        user = os.geteuid()
        os.seteuid(user or 65534)  # the superuser may write anywhere
        try:
            with (
                open_store("wax", path=folder, must_exist=True) as store,
                open_store("wax", path=folder, must_exist=True) as another,
            ):
                assert [one.id for one in store.search("apples", k=3)] == ["a"]
                assert [one.id for one in another.search("apples", k=3)] == ["a"]
                with pytest.raises(StoreError, match="readonly database"):
                    store.add(wax)
        finally:
            os.seteuid(user)
        assert sorted(one.name for one in Path(folder).iterdir() if one.name != ".lock") == [
            "collection",
            "meta.json",
        ]


def _run(file, *statements):
    with closing(sqlite3.connect(file)) as db, db:
        for one in statements:
            db.execute(*one)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda file: file.write_bytes(b""), "is missing, emptied or of another program"),
        (lambda file: file.unlink(), "is missing, emptied or of another program"),
        (
            lambda file: (file.unlink(), _run(file, ("CREATE TABLE other (a)",))),
            "is missing, emptied or of another program",
        ),
        (
            lambda file: _run(file, ("UPDATE points SET point = ?", (b"noise",))),
            "cannot be opened as a passage store",
        ),
        (
            lambda file: _run(file, ("UPDATE points SET point = ?", (pickle.dumps({"a": 1}),))),
            "cannot be opened as a passage store",
        ),
        (lambda file: file.write_bytes(b"noise" * 99), "cannot be opened as a passage store"),
    ],
    ids=["emptied", "gone", "foreign", "noise in a row", "another object in a row", "noise"],
)
def test_a_collection_whose_file_is_not_its_own_is_an_error_and_not_empty(tmp_path, spoil, told):
    with open_store("tea", path=tmp_path) as store:
        store.add([Document(page_content="Tea lowered glucose.", id="a")])
    [file] = tmp_path.rglob("storage.sqlite")
    spoil(file)
    for _ in range(2):
        with pytest.raises(StoreError, match=told):
            open_store("tea", path=tmp_path, must_exist=True)


def test_a_collection_that_has_no_passage_yet_is_opened(tmp_path):
    open_store("tea", path=tmp_path).close()
    with open_store("tea", path=tmp_path, must_exist=True) as store:
        assert store.search("tea") == []
