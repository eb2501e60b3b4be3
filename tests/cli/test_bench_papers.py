"""`deepera-lab study papers`."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

from deepera_graph.papers import PaperBase
from deepera_graph.papers.calls import answer_call
from support.planted_papers import write_world

pytestmark = pytest.mark.full

QUICK = ("--resamples", "20", "--quiet")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A base of planted papers and a file of queries."""
    folder = tmp_path_factory.mktemp("planted")
    papers, queries = write_world(folder)
    PaperBase.build(folder / "planted.papers", papers).close()
    return folder / "planted.papers", queries


@pytest.fixture
def runs(tmp_path, world):
    """A run of another system, of half the queries."""
    lines = [json.loads(one) for one in world[1].read_text(encoding="utf-8").splitlines()]
    path = tmp_path / "other.jsonl"
    kept = [{"id": one["id"], "ranked": one["gold"][:2]} for one in lines[::2]]
    path.write_text("".join(json.dumps(one) + "\n" for one in kept), encoding="utf-8")
    return path


def test_a_base_is_compared_with_other_runs(deepera_lab, world, runs):
    base, queries = world
    result = deepera_lab(
        "study", "papers", queries, "-l", base, "--runs", f"other={runs}", "--judges", "1,0.8",
        *QUICK, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    tables = {one["name"]: one["rows"] for one in found["tables"]}
    assert [row[0] for row in tables["systems"]] == ["sparse", "other"]
    assert tables["systems"][1][-1] == 10  # missing
    assert [row[1] for row in tables["judges"][:3]] == ["none", "1", "0.8"]
    assert "other: 10 of 20 queries count 0" in found["findings"][0]


def test_papers_are_one_by_any_id_and_answers_that_no_base_has_are_named(
    deepera_lab, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    records = [
        {"id": "lee", "title": "Wax and apples", "doi": "10.1000/apples.1"},
        {"id": "roy", "title": "Wax and pears", "arxiv": "2101.00001"},
    ]
    papers, queries, run = (tmp_path / f"{one}.jsonl" for one in ("papers", "queries", "run"))
    papers.write_text("".join(json.dumps(one) + "\n" for one in records))
    gold = ["10.1000/APPLES.1", "lee", "arXiv:2101.00001v2", "nobody"]
    queries.write_text(json.dumps({"id": "q", "query": "wax", "gold": gold}))
    run.write_text(json.dumps({"id": "q", "ranked": ["doi:10.1000/apples.1", "roy"]}))
    library = tmp_path / "deepera" / "papers" / "wax.sqlite"
    library.parent.mkdir(parents=True)
    PaperBase.build(library, papers).close()
    result = deepera_lab(
        "study", "papers", queries, "-l", "wax", "--runs", f"other={run}", *QUICK, "--json"
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["findings"][0].startswith("1 of 3 answers are not in the base")
    rows = found["tables"][0]["rows"]
    assert [(row[0], row[1]["mean"]) for row in rows] == [
        ("sparse", pytest.approx(2 / 3)), ("other", pytest.approx(2 / 3))
    ]  # fmt: skip


def test_as_many_queries_of_each_intent_are_drawn(deepera_lab, world, tmp_path, monkeypatch):
    base, queries = world
    monkeypatch.setattr("deepera_graph.lab.studies.run.write_study", lambda *_: None)  # figures
    monkeypatch.setattr("deepera_graph.lab.cli.papers._write_beside", lambda *_: None)

    def draw(seed):
        out = tmp_path / seed
        how = ("--draw", "2", "--seed", seed, "--out", out)
        result = deepera_lab("study", "papers", queries, "--library", base, *how, *QUICK)
        assert result.exit_code == 0, result.output
        lines = (out / "sparse.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(one)["id"] for one in lines if "ranked" in json.loads(one)]

    known = [json.loads(one) for one in queries.read_text(encoding="utf-8").splitlines()]
    intents = {one["id"]: one["intent"] for one in known}
    first, second = draw("1"), draw("2")
    assert sorted(intents[id] for id in first) == ["method", "method", "scope", "scope"]
    assert first != second
    both = deepera_lab("study", "papers", queries, "--library", base, "--draw", "2", "--limit", "3")
    assert (both.exit_code, "--draw or --limit" in both.output) == (2, True)


def test_an_agent_tells_its_calls(deepera_lab, world):
    base, queries = world
    result = deepera_lab(
        "study", "papers", queries, "--library", base, "--systems", "sparse,agent:rules",
        "--limit", "2", *QUICK, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    tables = {one["name"]: one["rows"] for one in json.loads(result.stdout)["tables"]}
    assert "failures" not in tables
    plain, agent = tables["process"]
    assert plain[1:5] == [1, 1, 0, 1]
    assert agent[4] > 1
    assert agent[2] + agent[3] == agent[4]  # searches, and citations that were followed


def test_a_failed_query_is_told_by_the_exit_code(deepera_lab, world, tmp_path):
    base, queries = world
    lines = [json.loads(one) for one in queries.read_text(encoding="utf-8").splitlines()[:3]]
    lines[1]["constraints"] = {"year_from": 2022, "year_to": 2019}
    path = tmp_path / "queries.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    result = deepera_lab("study", "papers", path, "--library", base, *QUICK, "--json")
    assert result.exit_code == 1
    tables = {one["name"]: one["rows"] for one in json.loads(result.stdout)["tables"]}
    ((system, query, why),) = tables["failures"]
    assert (system, query) == ("sparse", "plan-01")
    assert "year_from is after year_to" in why


def test_all_is_written_and_a_run_is_not_lost(deepera_lab, world, tmp_path):
    base, queries = world
    out = tmp_path / "out"
    args = ("study", "papers", queries, "--library", base, "--out", out)
    result = deepera_lab(*args, "--limit", "3", "--resamples", "20")
    assert result.exit_code == 0, result.output
    assert "# Searches for papers" in result.stdout
    written = {one.name for one in out.iterdir()}
    assert {"papers.md", "report.html", "provenance.csv", "sparse.jsonl", "budget.png"} <= written
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["queries"]["queries"] == 3
    assert manifest["base"]["papers"] == 96
    first = (out / "sparse.jsonl").read_bytes().splitlines()
    assert deepera_lab(*args, *QUICK).exit_code == 2  # it is not overwritten
    (out / "papers.md").rename(tmp_path / "papers.md")
    for name in ("report.html", "provenance.csv", "manifest.json"):
        (out / name).unlink()
    lost = deepera_lab(*args, *QUICK)
    assert lost.exit_code == 2
    assert "--resume goes on with it" in lost.stderr
    longer = deepera_lab(*args, *QUICK, "--resume")
    assert longer.exit_code == 0, longer.output
    assert (out / "sparse.jsonl").read_bytes().splitlines()[:4] == first
    other = deepera_lab(*args, *QUICK, "--resume", "--depth", "10")
    assert other.exit_code == 2
    assert "depth was 100 and is 10" in other.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "--library must name a base of papers, --runs files"),
        (("--runs", "pasa"), "--runs must be NAME=FILE"),
        (("--runs", "a=b.jsonl"), "no such file: 'b.jsonl'"),
        (("--systems", "sparse"), "--systems are searches of a base"),
        (("--library", "BASE", "--systems", "spares"), "did you mean"),
        (("--library", "BASE", "--systems", "dense"), "has no vectors"),
        (("--library", "BASE", "--systems", "agent:scout"), "agent:scout needs --model"),
        (("--library", "BASE", "--model", "openai:x"), "--model goes with --systems agent:pasa"),
        (("--library", "BASE", "--systems", "agent:none"), "got 'none'"),
        (("--library", "BASE", "--resume"), "--resume goes with --out"),
        (("--library", "BASE", "--judges", "1.5"), "must be in [0, 1], got 1.5"),
        (("--library", "BASE", "--baseline", "pasa"), "must be one of sparse, got 'pasa'"),
        (("--library", "BASE", "--show", "q99"), "unknown query 'q99'"),
    ],
)
def test_what_cannot_work_is_a_usage_error(deepera_lab, world, args, message):
    base, queries = world
    shown = [base if one == "BASE" else one for one in args]
    result = deepera_lab("study", "papers", queries, *shown, *QUICK)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_service_is_compared_by_its_address_and_its_papers_are_matched(
    deepera_lab, world, served_papers
):
    base, queries = world
    result = deepera_lab(
        "study", "papers", queries, "--library", base, "--services",
        f"by-id={served_papers}/v1/search,by-title={served_papers}/titles", *QUICK, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    tables = {one["name"]: one["rows"] for one in json.loads(result.stdout)["tables"]}
    rows = {row[0]: row for row in tables["systems"]}
    assert [*rows] == ["sparse", "by-id", "by-title"]
    assert rows["by-id"][1:4] == rows["by-title"][1:4] == rows["sparse"][1:4]
    assert rows["by-id"][-1] == 0


def test_a_service_that_fails_counts_0_and_is_told(deepera_lab, world, served_papers):
    result = deepera_lab(
        "study", "papers", world[1], "--services", f"gone={served_papers}/nothing", *QUICK,
        "--json",
    )  # fmt: skip
    assert result.exit_code == 1
    rows = json.loads(result.stdout)["tables"][0]["rows"]
    assert rows[0][-1] == 20
    assert "HTTP 404" in result.stdout


@pytest.mark.parametrize("services", ["x", "x=y", "a=http://h/1,a=http://h/2"])
def test_services_that_are_no_addresses_are_refused(deepera_lab, world, services):
    result = deepera_lab("study", "papers", world[1], "--services", services, *QUICK)
    assert result.exit_code == 2
    assert "--services must be NAME=URL" in result.stderr


@pytest.fixture
def served_papers(world):
    """The address of a base, and of a service that gives titles in another form."""
    with PaperBase.open(world[0]) as base:

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self):
                parts = urlsplit(self.path)
                asked = {name: one[0] for name, one in parse_qs(parts.query).items()}
                answer = answer_call(base, "search", asked)
                plain = json.loads(answer.text)
                if parts.path == "/titles":
                    titles = [{"title": one["paper"]["title"].upper()} for one in plain["hits"]]
                    plain = {"results": titles}
                text = json.dumps(plain).encode()
                self.send_response(404 if parts.path == "/nothing" else answer.code)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        server.server_close()
