"""The live client against a loopback server in the place of OpenAlex."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pyalex
import pytest

from deepera_graph.bench.data.documents import SUBJECTS, find_by_subject, find_works
from deepera_graph.bench.data.instance import DatasetError
from deepera_graph.errors import BackendError, SettingsError


class OpenAlex:
    """Serves `records` in pages, as the service does."""

    def __init__(self, records):
        self.records = records
        self.status = 200
        self.asked = []

    def answer(self, path, headers):
        query = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        self.asked.append((urlsplit(path).path, query, dict(headers)))
        if self.status != 200:
            return self.status, {"error": "Invalid query parameters error.", "message": "no field"}
        start = 0 if query["cursor"] == "*" else int(query["cursor"])
        end = start + int(query["per-page"])
        following = str(end) if end < len(self.records) else None
        return 200, {
            "meta": {"count": len(self.records), "next_cursor": following},
            "results": self.records[start:end],
        }


@pytest.fixture
def openalex(monkeypatch) -> Iterator[OpenAlex]:
    service = OpenAlex([work(number) for number in range(450)])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = service.answer(self.path, self.headers)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setitem(
        pyalex.config, "openalex_url", f"http://127.0.0.1:{server.server_address[1]}"
    )
    yield service
    server.shutdown()
    thread.join()
    server.server_close()


def work(number):
    return {
        "id": f"https://openalex.org/W{number}",
        "display_name": f"Lake {number}",
        "abstract_inverted_index": {"Lake": [0], str(number): [1], "froze.": [2]},
    }


def test_works_come_page_by_page_until_there_are_enough(openalex):
    found = list(find_works("frozen lakes", n=250))
    assert [one.id for one in found] == [f"W{number}" for number in range(250)]
    assert found[7].text == "Lake 7 froze."
    assert [query["cursor"] for _, query, _ in openalex.asked] == ["*", "100", "200"]


def test_no_more_works_than_there_are(openalex):
    assert len(list(find_works("lakes", n=10_000))) == 450


def test_the_query_the_filters_and_the_key_are_sent(openalex, monkeypatch):
    monkeypatch.setitem(pyalex.config, "api_key", "k-1")
    list(find_works("frozen lakes", n=1, filters={"publication_year": 2020}))
    ((path, query, headers),) = openalex.asked
    assert path == "/works"
    assert query["search"] == "frozen lakes"
    assert query["filter"] == "has_abstract:true,publication_year:2020"
    assert query["per-page"] == "1"
    assert "abstract_inverted_index" in query["select"].split(",")
    assert "concepts" not in query["select"]
    assert headers["Authorization"] == "Bearer k-1"


def test_works_without_an_abstract_can_be_asked_for(openalex):
    list(find_works(n=1, filters={"has_abstract": False}))
    assert openalex.asked[0][1]["filter"] == "has_abstract:false"
    assert "search" not in openalex.asked[0][1]


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [(400, SettingsError, "no field"), (429, BackendError, "429"), (503, BackendError, "503")],
)
def test_a_refusal_is_told(openalex, status, error, message):
    openalex.status = status
    with pytest.raises(error, match=message):
        list(find_works("lakes", n=1))


def test_no_service_is_told(monkeypatch):
    monkeypatch.setitem(pyalex.config, "openalex_url", "http://127.0.0.1:9")
    with pytest.raises(BackendError, match="OpenAlex does not answer"):
        list(find_works("lakes", n=1))


def test_what_is_no_work_is_named(openalex):
    openalex.records = [{"id": "https://openalex.org/W1", "abstract_inverted_index": ["lake"]}]
    with pytest.raises(DatasetError, match="W1': abstract_inverted_index"):
        list(find_works("lakes", n=1))


def test_no_works_at_all_are_refused():
    with pytest.raises(SettingsError, match="n must be >= 1, got 0"):
        list(find_works("lakes", n=0))


def test_works_of_each_subject_come_under_its_name_and_once(openalex):
    both = {"biology": "C86803240", "physics": "C121332964"}
    found = list(find_by_subject(n_each=3, subjects=both, filters={"publication_year": 2020}))
    assert [(one.id, one.subject) for one in found] == [
        ("W0", "biology"), ("W1", "biology"), ("W2", "biology"),
    ]  # fmt: skip
    asked = [query["filter"] for _, query, _ in openalex.asked]
    assert ["concepts.id:C86803240" in one for one in asked] == [True, False]
    assert ["concepts.id:C121332964" in one for one in asked] == [False, True]
    assert all("publication_year:2020" in one and "has_abstract:true" in one for one in asked)


def test_there_are_ten_subjects_unless_others_are_named():
    assert len(set(SUBJECTS.values())) == 10
    assert {"biology", "chemistry", "geography", "mathematics", "physics"} < set(SUBJECTS)
